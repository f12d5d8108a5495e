"""A report in German: what is a name stays as it is, what is a word is said in German."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.fit.solve import limits
from engine.formats.weights import FORMATS
from engine.report import markdown
from engine.report.compose import compose
from engine.sizing import size
from engine.words import choose
from tests.unit.report.test_compose import ABOUT
from tests.unit.report.test_compose import _real as real

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGLISH = re.compile(
    r"\b(?:the|of|with|is|by|from|as|default|newest|loaded|blocks|scale|where|for|each|counted)\b"
)
CITED = re.compile(
    r"nvidia-smi|out-of-memory text|Metal's recommended|hw\.memsize|w_kc|llama-kv-cache"
)
"""What a device's figures were read from is cited as it stands."""


@pytest.fixture(autouse=True)
def german() -> Iterator[None]:
    choose("de")
    yield
    choose("en")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("bf16", "BF16"),
        ("fp8", "FP8, eine Skala je Tensor"),
        ("fp8-block", "FP8, Blöcke 128×128"),
        ("awq-int4", "AWQ 4 Bit, g128"),
        ("gptq-int4-no-order", "GPTQ 4 Bit, g128, ohne Gruppenindex"),
        ("nf4", "NF4, doppelt quantisiert"),
    ],
)
def test_that_a_format_is_named_in_german(name: str, label: str) -> None:
    assert FORMATS[name].label == label


def test_that_every_format_is_named_without_english_words() -> None:
    assert not [f.label for f in FORMATS.values() if ENGLISH.search(f.label) or " bit" in f.label]


@pytest.mark.parametrize(
    ("runtime", "device"),
    [
        ("vllm", "RTX 4090"),
        ("sglang", "RTX 4090"),
        ("llama.cpp", "RTX 4090"),
        ("ollama", "RTX 4090"),
        ("transformers", "RTX 4090"),
        ("tgi", "RTX 4090"),
        ("mlx", "M3 Max 64GB"),
    ],
)
def test_that_no_sentence_of_a_report_is_english(runtime: str, device: str) -> None:
    plan = Deployment(runtime=runtime, max_model_len=8192)
    model = real(Deployment())[0].budget.model
    machine = catalogue.machine(catalogue.find(device))
    made = compose(size(model, plan, machine), limits(model, plan, machine), ABOUT)
    parts = re.split(r" \| |\n|; ", markdown.markdown(made))
    left = [part for part in parts if ENGLISH.search(part) and not CITED.search(part)]
    assert not [part for part in left if not part.startswith(("<!--", "plimsoll ", "vllm "))]
