"""``plimsoll size``: status, answer, and what people read."""

from __future__ import annotations

import io
import json

import jsonschema
import pytest

from engine.budget.model import Region
from engine.cli import main
from engine.cli.look import Look, cells
from tests.unit.cli.conftest import LLAMA_8B, published

CARD = ("--gpu", "RTX 4090")


def test_that_the_answer_follows_the_published_schema_and_the_known_figures(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, *CARD, "--context", "8k", "--json")
    assert ran.status == 0
    answer = ran.answer
    jsonschema.validate(answer, published("budget"))
    assert answer["model"]["parameters"] == 8_030_261_248
    assert answer["model"]["weights_bytes"] == 16_060_522_496
    assert answer["sequence_state"]["bytes_per_token"] == 131_072
    assert answer["sequence_state"]["architecture_bytes_per_sequence"] == 2**30
    rank = answer["ranks"][0]
    assert list(rank["regions"]) == [region.value for region in Region]
    assert rank["planned_bytes"] == sum(r["likely"] for r in rank["regions"].values())
    assert rank["free_bytes"] == rank["allocatable_bytes"] - rank["planned_bytes"]


@pytest.mark.parametrize(
    ("context", "concurrency", "status", "verdict"),
    [
        (1024, 1, 0, {"fits", "tight"}),
        # Sixteen requests of 8,192 tokens and BF16 weights take 33.2 GB: no 24 GB card holds that.
        (8192, 16, 1, {"does_not_fit"}),
    ],
)
def test_that_the_exit_status_is_the_verdict(
    plimsoll, llama_8b, context, concurrency, status, verdict
):
    plan = ("--context", context, "--concurrency", concurrency)
    ran = plimsoll("size", llama_8b, *CARD, *plan, "--json")
    assert ran.status == status
    assert ran.answer["verdict"] in verdict


def test_that_a_model_known_only_in_part_is_answered_as_a_bound_with_status_3(plimsoll, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B | {"model_type": "never_seen_before"}))
    ran = plimsoll("size", path, "--gpu", "RTX 4090", "--context", "128k", "--json")
    jsonschema.validate(ran.answer, published("budget"))
    assert ran.status == 3
    assert ran.answer["verdict"] == "unknown"
    assert any("never_seen_before" in text for text in ran.answer["warnings"])


def test_that_aliases_mean_the_same_as_the_runtimes_own_names(plimsoll, llama_70b):
    long = plimsoll(
        "size", llama_70b, "--gpu", "H100 SXM 80GB", "--max-model-len", 4096,
        "--tensor-parallel-size", 4, "--pipeline-parallel-size", 2, "--json",
    )  # fmt: skip
    short = plimsoll(
        "size", llama_70b, "--gpu", "H100 SXM 80GB", "-c", "4k", "--tp", 4, "--pp", 2, "--json"
    )
    assert len(long.answer["ranks"]) == 8
    assert short.answer == long.answer


def test_that_what_was_not_given_is_listed_as_assumed(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, "--json")
    text = " ".join(ran.answer["assumptions"])
    assert "runtime" in text
    assert "this machine" in text.lower() or "this computer" in text.lower()
    assert "concurrency 1" in text
    named = plimsoll("size", llama_8b, *CARD, "--runtime", "vllm", "--json").answer["assumptions"]
    assert not any(text.startswith(("runtime", "Device")) for text in named)


def test_that_an_unnamed_gpu_gets_no_capacity_and_no_verdict(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, "--gpu-count", 8, "--tp", 8, "--runtime", "vllm", "--json")
    jsonschema.validate(ran.answer, published("budget"))
    assert ran.status == 3
    assert ran.answer["verdict"] == "unknown"
    assert {rank["total_bytes"] for rank in ran.answer["ranks"]} == {None}


def test_that_people_read_the_verdict_the_regions_and_the_limits(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, *CARD, "--context", "8k", "--concurrency", 16)
    assert ran.status == 1
    assert "Doesn't fit" in ran.output or "Doesn’t fit" in ran.output
    for region in Region:
        assert region.label in ran.output
    assert "16.00" in ran.output  # GiB of KV cache that sixteen such requests need
    assert "131,072 B a token" in ran.output
    assert "Limits" in ran.output
    assert "\x1b" not in ran.output  # no colour where it is no terminal


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_that_no_line_is_wider_than_the_terminal(llama_70b, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    stream = _Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    main(["size", str(llama_70b), "--gpu", "H100 SXM 80GB", "--tp", "8", "--context", "32k"])
    text = stream.getvalue()
    assert "\x1b[" in text
    plain = _without_colour(text)
    assert max(cells(line) for line in plain.splitlines()) <= width


def test_that_colour_stays_away_where_it_is_not_wanted(llama_8b, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = _Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    main(["size", str(llama_8b), *CARD])
    assert "\x1b" not in stream.getvalue()


def test_that_a_terminal_without_unicode_gets_ascii():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    look = Look.of(stream)
    look.write(["✓ Fits, 1 – 2 × 3 · 日本"], stream)
    assert stream.buffer.getvalue() == rb"+ Fits, 1 - 2 x 3 - \u65e5\u672c" + b"\n"


def _without_colour(text: str) -> str:
    parts = text.split("\x1b[")
    return parts[0] + "".join(part.split("m", 1)[1] for part in parts[1:])


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True
