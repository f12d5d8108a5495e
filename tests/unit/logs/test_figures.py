"""Printed figures: what they are worth, and what is none."""

from __future__ import annotations

import pytest

from engine.logs.figures import value_of
from tests.helpers.logs import GIB, MIB, reading


@pytest.mark.parametrize("unit", ["GiB", "B", "count", "number", "size"])
@pytest.mark.parametrize(
    "text",
    [
        "1e999999", "1e-999999", "--", "-", "", " ", "١٢", "١٢ GiB", "nan", "sNaN", "inf", "0x10",
        "1_000", "on", "9" * 5_000, "9" * 5_000 + " GiB", "1.2.3", "12 GiB GiB", ",",
    ],
)  # fmt: skip
def test_that_what_is_no_figure_is_none(text: str, unit: str) -> None:
    assert value_of(text, unit) is None


@pytest.mark.parametrize(
    ("text", "unit", "value", "half"),
    [
        ("5.31", "GiB", round(5.31 * GIB), round(0.005 * GIB)),
        ("-0.25", "GiB", -GIB // 4, round(0.005 * GIB)),
        ("1,933,472", "count", 1_933_472, 0),
        ("59212694937", "B", 59_212_694_937, 0),
        ("1.026711552e+09", "B", 1_026_711_552, 0),
        ("787.5 MiB", "size", 825_753_600, round(0.05 * MIB)),
        ("24 GB", "size", 24_000_000_000, 500_000_000),
        ("0 bytes", "size", 0, 0),
        ("0.11223878", "number", 0.11223878, 0),
        ("2231.0", "count", 2231, 0),
        (".9", "number", 0.9, 0),
    ],
)
def test_that_a_figure_is_worth_what_it_says_and_as_exact_as_it_is_printed(
    text: str, unit: str, value: float, half: int
) -> None:
    assert value_of(text, unit) == (value, half)


@pytest.mark.parametrize(
    "line",
    [
        "llama_context: n_ctx = auto",
        "llama_context: n_ctx = -",
        "llama_context: n_ctx = 1_2_3_",
        "Model loading took ١٢.٥ GiB and 2 seconds",
        "load_tensors:        CUDA0 model buffer size = ١٢ MiB",
        "INFO [kv_cache_utils.py:1087] GPU KV cache size: ,,, tokens",
        'sglang:context_len{name="x"} 1e999',
    ],
)
def test_that_a_line_with_odd_figures_states_nothing_and_spoils_nothing(line: str) -> None:
    found = reading(f"{line}\nModel loading took 14.5 GiB and 2 seconds\n")
    facts = {name: fact.value for rank in found.ranks for name, fact in rank.facts.items()}
    assert facts["weights"] == round(14.5 * GIB)
    assert "n_ctx" not in found.whole
    assert not {"kv_pool", "kv_tokens", "max_model_len"} & (set(facts) | set(found.whole))


def test_that_a_setting_in_other_digits_is_no_setting() -> None:
    found = reading("non-default args: {'max_model_len': ١٢, 'max_num_seqs': 1_0, 'tp': 2}\n")
    assert found.settings == {"tensor_parallel_size": 2}
