"""LoRA adapters against the files that PEFT wrote (``packaging/data/measure_adapters.py``)."""

from __future__ import annotations

import json
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.adapter_tensors import tensors_of
from engine.architecture.read import read, specify
from engine.architecture.spec import Direction, Subject
from engine.config.facts import Facts
from engine.source.raw import HeaderTensor, RawAdapter, RawModel

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "evidence/adapters.jsonl").read_text().splitlines()
]
_FORMATS = {"F32": "fp32", "BF16": "bf16"}
_BYTES = {"F32": 4, "BF16": 2}


def _id(row: dict[str, Any]) -> str:
    asked = json.dumps(row["asked"]).replace('"', "")
    return f"{row['base']['model_type']}-{asked}"


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_every_tensor_follows_from_the_config(row: dict[str, Any]) -> None:
    found, _ = tensors_of(specify(row["base"]), Facts(row["adapter"]))
    ours: Counter[tuple[str, tuple[int, ...], str]] = Counter()
    for tensor in found:
        last = ".".join(tensor.name.split(".")[-2:])
        ours[_plain(last), tensor.shape, tensor.stored_as] += tensor.copies
    theirs: Counter[tuple[str, tuple[int, ...], str]] = Counter()
    for name, (dtype, shape) in row["tensors"].items():
        last = ".".join(name.replace(".base_layer.bias", ".bias").split(".")[-2:])
        theirs[_plain(last), tuple(shape), _FORMATS[dtype]] += 1
    assert ours == theirs


def _plain(last: str) -> str:
    """The stacks of experts are parameters of one module, which PEFT names by how it wraps them."""
    return last.rpartition(".")[2] if last.startswith("lora_") else last


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_a_header_counts_as_it_is(row: dict[str, Any]) -> None:
    tensors = tuple(
        HeaderTensor(name, dtype, tuple(shape), prod(shape) * _BYTES[dtype])
        for name, (dtype, shape) in row["tensors"].items()
    )
    raw = RawModel("base", "test", config=row["base"])
    base = read(raw)
    model = read(
        RawModel("lora", "test", config=row["base"], adapter=RawAdapter(row["adapter"], tensors))
    )
    more = sum(prod(t.shape) for t in tensors)
    assert model.parameters == base.parameters + more
    assert model.spec.direction(Subject.WEIGHTS) is None
    assert f"{more:,} parameters" in model.notes[0]


def test_names_of_single_experts_are_an_upper_bound() -> None:
    """Adapters of transformers 4 name the experts' modules, which transformers 5 stacks."""
    row = next(r for r in ROWS if r["asked"] == {"target_modules": "all-linear"}
               and r["base"]["model_type"] == "qwen3_moe")  # fmt: skip
    asked = {"peft_type": "LORA", "r": 4, "target_modules": "all-linear"}
    found, doubts = tensors_of(specify(row["base"]), Facts(asked))
    theirs = sum(prod(shape) for _, shape in row["tensors"].values())
    assert sum(t.parameters for t in found) >= theirs
    assert Direction.UPPER in {doubt.direction for doubt in doubts}
