"""llama.cpp's buffers against every measured run of the first corpus (42 models, 2,842 runs).

The runs were made by the real library on synthetic files of real shapes; bytes are its own
memory breakdown. Shapes and type assignment come from the corpus's own programs, not from ours.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.model import GgufTensor, Model
from engine.architecture.spec import ArchitectureSpec
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly
from engine.runtimes.llama_cpp import LlamaCpp
from engine.units import GIB, MIB

_CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "truth" / "llama.cpp"

pytestmark = pytest.mark.skipif(
    not (_CORPUS / "records.jsonl").exists() or importlib.util.find_spec("gguf") is None,
    reason="needs the measured records beside the checkout, and the gguf package",
)
_NOTHING = exactly(0, Basis.SETTING, "an empty machine")
_PLAIN = ArchitectureSpec(
    model_type="", layers=(), outer=(), mtp=(), hidden_size=0, vocab_size=0,
    max_position_embeddings=None, dtype="float16", tie_word_embeddings=False, weight_format="",
)  # fmt: skip


def _slot(kind: DeviceKind, vendor: Vendor) -> Slot:
    capacity = exactly(80 * GIB, Basis.SETTING, "the stand-in device's 80 GiB")
    return Slot(Device("stand-in", vendor, kind, "", 80 * GIB, capacity), _NOTHING)


def _machine(gpus: int) -> Machine:
    host = _slot(DeviceKind.HOST, Vendor.CPU)
    cards = (_slot(DeviceKind.DISCRETE, Vendor.NVIDIA),) * gpus
    return Machine("stand-in", cards or (host,), host, is_here=False)


@cache
def _program(name: str) -> Any:
    """One of the corpus's programs, loaded without writing bytecode beside it."""
    sys.dont_write_bytecode = True
    path = _CORPUS / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def _model(name: str, file_type: str) -> Model:
    quantmix = _program("quantmix")
    shape = _program("shapes").all_specs()[name]
    metadata: dict[str, object] = {"general.architecture": shape.arch}
    for key, value in shape.kv.items():
        metadata[f"{shape.arch}.{key}"] = tuple(value) if isinstance(value, list) else value
    tensors = tuple(
        GgufTensor(tensor, kind.name, tuple(ne), quantmix.nbytes(kind, ne))
        for tensor, ne, kind in quantmix.assign(shape, file_type)
    )
    return Model(name, None, "corpus", _PLAIN, None, tensors, metadata)


def _budget(record: dict[str, Any]) -> Budget:
    settings, load = record["settings"], record["load"]
    model = _model(record["model"], record["file_type"])
    gpus = load.get("gpus", 1 if "GPU" in record["backend"] else 0)
    layers = load.get("n_gpu_layers", 0)
    if layers == -2:  # the corpus's word for "all but the output layer"
        layers = record["shape"]["n_layer"]
    split = load.get("tensor_split")
    deployment = Deployment(
        runtime="llama.cpp",
        n_ctx=settings["n_ctx"],
        n_batch=settings["n_batch"],
        n_ubatch=settings["n_ubatch"],
        n_parallel=settings["n_seq_max"],
        kv_unified=settings["kv_unified"],
        cache_type_k=settings["type_k"],
        cache_type_v=settings["type_v"],
        flash_attn=settings["fa"],
        swa_full=settings["swa_full"],
        n_outputs_max=settings["n_outputs_max"],
        n_gpu_layers=layers,
        n_cpu_moe=load.get("cpu_moe", 0),
        tensor_split=tuple(split) if split else None,
        split_mode="none" if load.get("split_mode") == 0 else None,
        offload_kqv=settings.get("offload_kqv", True),
        op_offload=settings.get("op_offload", True),
        mmap=False,
    )
    return LlamaCpp().plan(model, deployment, _machine(gpus))


@cache
def _records() -> tuple[dict[str, Any], ...]:
    with (_CORPUS / "records.jsonl").open(encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return tuple(r for r in found if "bytes" in r)


@cache
def _answers() -> tuple[tuple[dict[str, Any], Budget], ...]:
    return tuple((record, _budget(record)) for record in _records())


def _measured(record: dict[str, Any], device: str, part: str) -> int:
    """Bytes of one part on ``GPUn``, or on the host (every other buffer type together)."""
    return sum(
        held[part]
        for name, held in record["bytes"].items()
        if (name if name.startswith("GPU") and name != "GPU_Host" else "CPU") == device
    )


def _devices(budget: Budget) -> list[str]:
    gpus = [s for s in budget.machine.slots if s.device.kind is not DeviceKind.HOST]
    if budget.deployment.split_mode == "none":
        gpus = gpus[:1]
    return [*(f"GPU{i}" for i in range(len(gpus))), "CPU"]


def _by_device(budget: Budget, device: str, *regions: Region) -> int:
    rank = budget.ranks[_devices(budget).index(device)]
    return sum(rank.regions[r].estimate.likely_bytes for r in regions)


def test_that_model_buffers_are_exact_on_every_device() -> None:
    wrong = [
        (record["id"], device)
        for record, budget in _answers()
        for device in _devices(budget)
        if _by_device(budget, device, Region.WEIGHTS) != _measured(record, device, "model")
    ]
    assert wrong == []


def test_that_kv_cache_and_recurrent_state_are_exact_on_every_device() -> None:
    wrong = [
        (record["id"], device)
        for record, budget in _answers()
        for device in _devices(budget)
        if _by_device(budget, device, Region.KV_CACHE, Region.RECURRENT_STATE)
        != _measured(record, device, "context")
    ]
    assert wrong == []


def test_that_the_output_buffer_agrees_with_every_printed_value() -> None:
    for record, budget in _answers():
        assert budget.llama_cpp is not None
        printed = record["printed"]["output"][0][1] * MIB
        assert budget.llama_cpp.output_buffer == pytest.approx(printed, abs=0.0051 * MIB)


def test_that_compute_buffers_are_closer_than_the_corpus_documents() -> None:
    counts: Counter[str] = Counter()
    for record, budget in _answers():
        assert budget.llama_cpp is not None
        want = sum(held["compute"] for held in record["bytes"].values())
        off = abs(sum(budget.llama_cpp.compute_buffers.values()) - want)
        counts["exact"] += off == 0
        counts["8 MiB"] += off <= 8 * MIB
        counts["2 %"] += off < 0.02 * want
        counts["5 %"] += off < 0.05 * want
    share = {name: count / len(_answers()) for name, count in counts.items()}
    assert share["exact"] > 0.73
    assert share["8 MiB"] > 0.94
    assert share["2 %"] > 0.93
    assert share["5 %"] > 0.98


def test_that_the_stated_range_holds_the_measured_compute_buffer() -> None:
    outside: list[str] = []
    seen = 0
    for record, budget in _answers():
        for rank, device in zip(budget.ranks, _devices(budget), strict=True):
            part = rank.regions[Region.ACTIVATIONS].estimate.parts[0]
            measured = _measured(record, device, "compute")
            seen += 1
            if not part.low_bytes <= measured <= part.high_bytes:
                outside.append(f"{record['id']} {device}")
    assert len(outside) < 0.01 * seen, outside[:20]


def test_that_regions_add_up_to_the_plan_on_every_rank() -> None:
    for _, budget in _answers():
        for rank in budget.ranks:
            regions = [r.estimate.likely_bytes for r in rank.regions.values()]
            assert set(rank.regions) == set(Region)
            assert rank.planned.likely_bytes == sum(regions)
