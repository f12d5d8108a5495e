"""A report in German: what is a name stays as it is, what is a word is said in German."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from engine.formats.weights import FORMATS
from engine.words import choose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENGLISH = re.compile(
    r"\b(?:the|of|with|is|by|from|as|default|newest|loaded|blocks|scale|where|for|each|counted)\b"
)
CITED = re.compile(
    r"nvidia-smi|out-of-memory text|Metal's recommended|hw\.memsize|w_kc|llama-kv-cache"
)
"""What a device's figures were read from is cited as it stands."""


@pytest.fixture
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
@pytest.mark.usefixtures("german")
def test_that_a_format_is_named_in_german(name: str, label: str) -> None:
    assert FORMATS[name].label == label


@pytest.mark.usefixtures("german")
def test_that_every_format_is_named_without_english_words() -> None:
    assert not [f.label for f in FORMATS.values() if ENGLISH.search(f.label) or " bit" in f.label]


RUNTIMES = {
    "vllm": "RTX 4090", "sglang": "RTX 4090", "llama.cpp": "RTX 4090", "ollama": "RTX 4090",
    "transformers": "RTX 4090", "tgi": "RTX 4090", "mlx": "M3 Max 64GB",
}  # fmt: skip
PROGRAM = """
import sys
from engine.cli import main
from engine.words import choose
choose("de")
for runtime, device in {runtimes}.items():
    main(["report", "Qwen/Qwen2.5-7B-Instruct", "--offline", "--runtime", runtime, "--gpu", device,
          "--context", "8192", "-o", f"{folder}/{{runtime}}.md"])
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of a process of its own: a window speaks one language from its start."""
    folder = tmp_path_factory.mktemp("german")
    program = PROGRAM.format(runtimes=RUNTIMES, folder=folder)
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_that_no_sentence_of_a_report_is_english(reports: Path, runtime: str) -> None:
    parts = re.split(r" \| |\n|; ", (reports / f"{runtime}.md").read_text())
    assert len(parts) > 200
    left = [part for part in parts if ENGLISH.search(part) and not CITED.search(part)]
    assert not [part for part in left if not part.startswith(("<!--", "plimsoll ", "vllm "))]
