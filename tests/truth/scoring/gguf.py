"""llama.cpp's buffers: every measured run on the file it was made with."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from engine.architecture.model import GgufTensor, Model
from engine.architecture.spec import ArchitectureSpec
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly, total
from engine.runtimes.llama_cpp import LlamaCpp
from engine.units import GIB, MIB
from tests.truth.scoring import records
from tests.truth.scoring.scores import Score, law_of, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.budget.model import Budget
    from engine.evidence import Estimate

_NOTHING = exactly(0, Basis.SETTING, "an empty machine")
_PLAIN = ArchitectureSpec(
    model_type="", layers=(), outer=(), mtp=(), hidden_size=0, vocab_size=0,
    max_position_embeddings=None, dtype="float16", tie_word_embeddings=False, weight_format="",
)  # fmt: skip
_DEFAULTS: dict[str, Any] = {
    "n_ctx": 8192, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "type_k": "f16",
    "type_v": "f16", "fa": "on", "swa_full": False, "kv_unified": False, "n_outputs_max": 0,
}  # fmt: skip
"""Settings of most runs; ``packaging/data/record_llama_cpp.py`` writes down what differs."""
PARTS = ("model", "cache and state", "compute")


def _slot(kind: DeviceKind, vendor: Vendor) -> Slot:
    capacity = exactly(80 * GIB, Basis.SETTING, "the stand-in device's 80 GiB")
    return Slot(Device("stand-in", vendor, kind, "", 80 * GIB, capacity), _NOTHING)


@cache
def _machine(gpus: int) -> Machine:
    host = _slot(DeviceKind.HOST, Vendor.CPU)
    cards = (_slot(DeviceKind.DISCRETE, Vendor.NVIDIA),) * gpus
    return Machine("stand-in", cards or (host,), host, is_here=False)


@cache
def _model(name: str, file_type: str) -> Model:
    shape = records.shapes()[name, file_type]
    metadata: dict[str, object] = {
        key: tuple(item for item, count in value["runs"] for _ in range(count))
        if isinstance(value, dict)
        else value
        for key, value in shape["metadata"].items()
    }
    tensors = tuple(
        GgufTensor(name.replace("#", str(layer)), kind, tuple(ne), size)
        for name, kind, ne, size, spans in shape["tensors"]
        for first, last in spans or [[0, 0]]
        for layer in range(first, last + 1)
    )
    return Model(name, None, "measured shape", _PLAIN, None, tensors, metadata)


def planned(run: dict[str, Any]) -> Budget:
    """The budget of a run: its model's file, settings and load."""
    settings, load = _DEFAULTS | run["settings"], run["load"]
    model = _model(run["model"], run["file_type"])
    gpus = load.get("gpus", 1 if "GPU" in run["backend"] else 0)
    layers = load.get("n_gpu_layers", 0)
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


def scores() -> Iterator[Score]:
    """Model, cache and state, compute of every device of every run, and its output buffer."""
    for run in records.runs():
        budget = planned(run)
        names = _devices(budget)
        for rank, name in zip(budget.ranks, names, strict=True):
            regions = {kind: region.estimate for kind, region in rank.regions.items()}
            held = (regions[Region.KV_CACHE], regions[Region.RECURRENT_STATE])
            ours = (
                (regions[Region.WEIGHTS],),
                held,
                (regions[Region.ACTIVATIONS].parts[0],),
            )
            for part, estimates in enumerate(ours):
                wanted, found = _measured(run, name, part), total(estimates)
                if wanted or found.likely_bytes:
                    yield _score(run, f"{PARTS[part]} buffers", (wanted, 0), found)
        assert budget.llama_cpp is not None
        size = budget.llama_cpp.output_buffer
        printed = (run["output_mib"] * MIB, 0.0051 * MIB)
        output = exactly(size, Basis.EXACT, "llama-context.cpp: output_reserve")
        yield _score(run, "output buffers", printed, output)


def _score(run: dict[str, Any], figure: str, printed: tuple[float, float], ours: Estimate) -> Score:
    architecture = records.shapes()[run["model"], run["file_type"]]["metadata"]
    return Score(
        run["id"],
        "llama.cpp",
        run["build"],
        architecture["general.architecture"],
        figure,
        printed[0],
        *span(ours),
        printed[1],
        is_region=True,
        release=run["build"],
        law=law_of([ours]),
    )


def _devices(budget: Budget) -> list[str]:
    gpus = [s for s in budget.machine.slots if s.device.kind is not DeviceKind.HOST]
    if budget.deployment.split_mode == "none":
        gpus = gpus[:1]
    return [*(f"GPU{i}" for i in range(len(gpus))), "CPU"]


def _measured(run: dict[str, Any], device: str, part: int) -> int:
    """Bytes of one part on ``GPUn``, or on the host (every other buffer type together)."""
    return sum(
        held[part]
        for name, held in run["bytes"].items()
        if (name if name.startswith("GPU") and name != "GPU_Host" else "CPU") == device
    )
