"""A language changes words and never a figure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.words import LANGUAGES

ROOT = Path(__file__).resolve().parents[2]

# In a process for each language: what is remembered of a model is remembered with its words.
PROGRAM = """
import json, sys
from engine.words import choose
choose(sys.argv[1])
from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.respond import respond
from engine.errors import PlimsollError
from engine.source import catalogue
desk = Desk(CancelToken())
for number, entry in enumerate(catalogue.entries()):
    for runtime in ("vllm", "sglang", "llama.cpp", "transformers", "mlx", "ollama"):
        if (number + len(runtime)) % 9:
            continue
        gpu = "M4 Max 128 GB" if runtime == "mlx" else "RTX 4090"
        wanted = {"model": entry.id, "runtime": runtime, "gpu": gpu, "max_model_len": 4096}
        try:
            found, fit = respond(desk, wanted)
        except PlimsollError as error:
            found, fit = {"error": error.code, "field": error.field}, None
        print(json.dumps({"fit": fit and fit.value, "answer": found}))
"""
SAME = {"basis", "verdict", "region", "error", "field", "fit", "id", "model_type", "direction"}
"""Words of the contract, which no language changes."""


def answers(code: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def without_words(found: Any, key: str = "") -> Any:
    """``found`` with a mark in place of every text that a person reads."""
    if isinstance(found, dict):
        return {k: without_words(v, k) for k, v in found.items()}
    if isinstance(found, list):
        return [without_words(v, key) for v in found]
    return "words" if isinstance(found, str) and key not in SAME else found


@pytest.fixture(scope="module")
def in_english() -> list[Any]:
    return answers("en")


@pytest.mark.parametrize("code", [one.code for one in LANGUAGES[1:]])
def test_that_every_figure_is_the_same_in_every_language(in_english, code):
    translated = answers(code)
    assert len(translated) == len(in_english) > 200
    for here, there in zip(in_english, translated, strict=True):
        assert without_words(there) == without_words(here)
    assert translated != in_english
