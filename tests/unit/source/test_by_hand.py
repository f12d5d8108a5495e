"""A model entered by hand: what is known is kept, what is chosen is said."""

from __future__ import annotations

import pytest

from engine.architecture.read import read
from engine.budget.sequence_state import token_bytes
from engine.errors import ConfigError
from engine.source.by_hand import Measures, by_hand


@pytest.mark.parametrize(
    ("parameters", "layers", "heads", "width", "hidden", "feed_forward"),
    [
        # Llama 3.1 8B and 70B, as their configs have them.
        (8_030_261_248, 32, 8, 128, 4096, 14_336),
        (70_553_706_496, 80, 8, 128, 8192, 28_672),
    ],
)
def test_that_what_is_chosen_meets_the_models_that_are_known(
    parameters: int, layers: int, heads: int, width: int, hidden: int, feed_forward: int
) -> None:
    raw = by_hand(Measures(parameters, layers, heads, width))
    assert raw.config is not None
    assert raw.config["hidden_size"] == hidden
    assert raw.config["intermediate_size"] == feed_forward
    assert read(raw).parameters == parameters


def test_that_parameters_come_out_as_stated() -> None:
    for parameters in (350_000_000, 1_500_000_000, 7_000_000_000, 123_000_000_000):
        model = read(by_hand(Measures(parameters, 40, 8, 64, vocab_size=32_000)))
        assert abs(model.parameters - parameters) < 0.01 * parameters


def test_that_the_cache_follows_from_layers_and_heads_alone() -> None:
    # 2 x 48 layers x 4 heads x 128 x 2 B.
    model = read(by_hand(Measures(30_000_000_000, 48, 4, 128)))
    each = [token_bytes(attention, "bfloat16") for attention in model.spec.attentions]
    assert sum(each) == 2 * 48 * 4 * 128 * 2


def test_that_what_was_chosen_is_said() -> None:
    model = read(by_hand(Measures(8_030_261_248, 32, 8, 128, vocab_size=128_256)))
    (note,) = model.notes
    assert "hidden size 4,096" in note
    assert "vocabulary" not in note


def test_that_contradicting_measures_are_refused() -> None:
    with pytest.raises(ConfigError, match="too few for 80 layers"):
        by_hand(Measures(100_000_000, 80, 8, 128))
    with pytest.raises(ConfigError, match="beside a vocabulary of 500,000"):
        by_hand(Measures(200_000_000, 12, 12, 64, vocab_size=500_000))
