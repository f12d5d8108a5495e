"""Which tensor gets which type in every mix, against llama.cpp's own quantiser.

``packaging/data/measure_mixes.py`` asked it (October 2026, ``--dry-run``, no importance matrix).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import gguf
import pytest

from engine.formats.gguf import TYPES
from engine.formats.mix_rules import MixFacts
from engine.formats.mixes import MIXES, mix_types

_EVIDENCE = Path(__file__).resolve().parents[1] / "evidence" / "gguf_mixes.jsonl"

_IN_F32 = ("_norm.weight", ".bias", "ffn_gate_inp.weight")
"""What is not listed, since it stays in F32."""

Row = dict[str, Any]


def _rows() -> list[Row]:
    with _EVIDENCE.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


_ROWS = _rows()


def _shapes(row: Row) -> list[tuple[str, tuple[int, ...]]]:
    found = [(name, tuple(shape)) for name, shape in row["outside"].items()]
    for block in range(row["num_layers"]):
        found += [(f"blk.{block}.{kind}", tuple(s)) for kind, s in row["block"].items()]
    return found


def _facts(row: Row) -> MixFacts:
    names = ("architecture", "num_layers", "num_heads", "num_kv_heads", "num_experts")
    return MixFacts(*(row[name] for name in names))


@pytest.mark.parametrize("number", range(len(_ROWS)))
def test_that_every_kind_of_tensor_gets_the_types_that_llama_quantize_names(number: int) -> None:
    row = _ROWS[number]
    for mix, stated in row["mixes"].items():
        got: dict[str, Counter[str]] = {}
        for name, kind in mix_types(mix, _shapes(row), _facts(row)).items():
            suffix = name.split(".", 2)[2] if name.startswith("blk.") else name
            got.setdefault(suffix, Counter())[kind] += 1
        for suffix, types in got.items():
            wanted = stated.get(suffix, stated[""])
            if isinstance(wanted, str):
                is_kept = suffix.endswith(_IN_F32)
                wanted = {"F32" if is_kept else wanted: sum(types.values())}
            assert types == wanted, (row["architecture"], mix, suffix)


def test_that_every_mix_was_asked_for() -> None:
    assert len(_ROWS) > 20
    for row in _ROWS:
        assert set(row["mixes"]) == set(MIXES) - {"F32"}


def test_that_blocks_are_those_of_the_gguf_package() -> None:
    theirs = {kind.name: sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    for name, (elements, size_bytes) in theirs.items():
        assert (TYPES[name].elements, TYPES[name].size_bytes) == (elements, size_bytes)
