"""Stored bytes per module class against files that the public quantisers wrote.

``packaging/data/measure_quantised.py`` made them: small models whose rows and columns are no
multiples of the usual groups.
"""

from __future__ import annotations

import json
from collections import Counter
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.weights import WeightLayout, weights
from engine.evidence import Basis
from engine.source.raw import HeaderTensor, RawModel

if TYPE_CHECKING:
    from engine.architecture.model import Model

_EVIDENCE = Path(__file__).resolve().parents[1] / "evidence" / "quantised_files.jsonl"
_WIDTHS = {"F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U32": 4, "I8": 1, "U8": 1}
_WIDTHS |= {"F8_E4M3": 1, "F8_E8M0": 1}
_DESCRIPTIONS = ("quant_state", "weight_format")
"""What bitsandbytes writes about a matrix, as text or as a number; no device holds it."""
_CLASSES = (
    ("embed_tokens", "embedding"),
    ("lm_head", "lm_head"),
    ("norm", "norm"),
    ("mlp.gate.", "router"),
    ("experts", "experts"),
    ("switch_mlp", "experts"),
    ("self_attn", "attention"),
    ("mlp", "mlp"),
)

Row = dict[str, Any]


def _rows() -> list[Row]:
    with _EVIDENCE.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


_ROWS = _rows()
_IDS = [f"{row['tool']}: {row['name']}" for row in _ROWS]


def _tensors(row: Row) -> tuple[HeaderTensor, ...]:
    found: list[HeaderTensor] = []
    for name, stated in row["tensors"].items():
        dtype, _, sizes = stated.partition(" ")
        shape = tuple(int(size) for size in sizes.split("x")) if sizes else ()
        found.append(HeaderTensor(name, dtype, shape, _WIDTHS[dtype] * prod(shape)))
    return tuple(found)


def _by_class(row: Row, *, described: bool = False) -> Counter[str]:
    sums: Counter[str] = Counter()
    for tensor in _tensors(row):
        if described or not any(part in tensor.name for part in _DESCRIPTIONS):
            sums[next(kind for part, kind in _CLASSES if part in tensor.name)] += tensor.size_bytes
    return sums


def _nested(row: Row) -> Counter[str]:
    """Matrices with nested statistics: the offset is text in the file, and 4 bytes when loaded."""
    found: Counter[str] = Counter()
    for name in row["tensors"]:
        if name.endswith("nested_absmax"):
            found[next(kind for part, kind in _CLASSES if part in name)] += 1
    return found


def _model(row: Row, *, with_header: bool = False) -> Model:
    tensors = _tensors(row) if with_header else ()
    source = "header" if with_header else None
    return read(
        RawModel(row["name"], "", config=row["config"], tensors=tensors, tensors_source=source)
    )


@pytest.mark.parametrize("row", _ROWS, ids=_IDS)
def test_that_the_config_alone_gives_the_bytes_of_every_class(row: Row) -> None:
    model = _model(row)
    assert not model.spec.doubts
    found = weights(model, WeightLayout())
    assert found.basis is Basis.EXACT
    got = {str(kind): size for kind, size in found.stages[0].by_module.items() if size}
    wanted = _by_class(row)
    for kind, matrices in _nested(row).items():
        wanted[kind] += 4 * matrices
    assert got == wanted


@pytest.mark.parametrize("row", _ROWS, ids=_IDS)
def test_that_the_header_wins_and_shows_the_parameters_of_the_config(row: Row) -> None:
    model = _model(row, with_header=True)
    assert not model.spec.doubts
    assert not model.notes
    found = weights(model, WeightLayout())
    assert found.basis is Basis.READ
    by_class = {str(kind): size for kind, size in found.stages[0].by_module.items() if size}
    assert by_class == _by_class(row, described=True)
    assert model.stored is not None
    # The unquantised model that all of them began with.
    plain = {k: v for k, v in row["config"].items() if not k.startswith("quantization")}
    assert model.stored.parameters == read(RawModel("x", "", config=plain)).spec.parameters


def test_that_every_tool_is_measured() -> None:
    tools = Counter(row["tool"].split()[0] for row in _ROWS)
    assert set(tools) == {
        "transformers",
        "bitsandbytes",
        "torchao",
        "compressed-tensors",
        "nvidia-modelopt",
        "amd-quark",
        "auto-round",
        "mlx-lm",
    }
    assert len(_ROWS) > 60
