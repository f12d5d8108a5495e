"""A real llama.cpp on this machine's CPU: what it prints and what it holds, against the plan."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Budget, Region
from engine.cancel import CancelToken
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly
from engine.formats.mix_rules import MixFacts
from engine.formats.mixes import mix_types
from engine.runtimes.llama_cpp import LlamaCpp
from engine.source import files
from engine.telemetry.probe import open_sampler
from engine.telemetry.snapshot import Missing, PoolKind
from engine.units import GIB, MIB
from tests.helpers import synthetic_gguf
from tests.helpers.llama_process import LlamaProcess

if TYPE_CHECKING:
    from pathlib import Path

    from engine.evidence import Estimate
    from tests.helpers.synthetic_gguf import Dense

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        importlib.util.find_spec("xllamacpp") is None
        or importlib.util.find_spec("gguf") is None
        or sys.platform != "linux",
        reason="needs xllamacpp (a llama.cpp wheel) and gguf, on Linux",
    ),
]
_PRINTED_BYTES = 0.0051 * MIB
"""The log has two decimals of a MiB."""
_LIBRARIES_BYTES = 64 * MIB
_TOKENS = 128
"""One whole micro-batch: enough to touch every buffer, little enough for a busy machine."""
_CASES: list[tuple[str, Dense, dict[str, Any]]] = [
    ("as served", synthetic_gguf.LLAMA_1B, {"n_seq_max": 4, "kv_unified": True}),
    ("as stored", synthetic_gguf.LLAMA_1B, {"n_seq_max": 1, "repack": False}),
    ("narrow rows", synthetic_gguf.QWEN_HALF_B, {"n_seq_max": 2, "type_k": "q8_0"}),
]


def _write(model: Dense, folder: Path) -> Path:
    facts = MixFacts(model.architecture, model.layers, model.heads, model.kv_heads)
    types = mix_types("Q4_K_M", model.tensors(), facts)
    return synthetic_gguf.write(model, types, folder / "synthetic.gguf")


def _plan(path: Path, settings: dict[str, Any]) -> Budget:
    model = read(files.read(path, CancelToken()))
    nothing = exactly(0, Basis.SETTING, "the process alone is compared")
    capacity = exactly(64 * GIB, Basis.SETTING, "not what this test is about")
    host = Slot(Device("host", Vendor.CPU, DeviceKind.HOST, "", 64 * GIB, capacity), nothing)
    deployment = Deployment(
        runtime="llama.cpp",
        n_ctx=4096,
        n_ubatch=_TOKENS,
        n_parallel=settings["n_seq_max"],
        kv_unified=settings.get("kv_unified", False),
        n_outputs_max=settings["n_seq_max"],
        cache_type_k=settings.get("type_k", "f16"),
        cache_type_v="f16",
        flash_attn="on",
        repack=settings.get("repack", True),
    )
    return LlamaCpp().plan(model, deployment, Machine("here", (host,), host, is_here=True))


def _held(pid: int) -> tuple[int, int]:
    """(memory that must stay, resident file pages) of one process, as the live room reads it."""
    sampler = open_sampler()
    try:
        readings = sampler.sample().devices
    finally:
        sampler.close()
    host = next(r for r in readings if r.pool is PoolKind.HOST)
    assert not isinstance(host.processes, Missing)
    row = next(p for p in host.processes if p.pid == pid)
    assert isinstance(row.used_bytes, int)
    assert isinstance(row.file_bytes, int)
    return row.used_bytes, row.file_bytes


def _region(budget: Budget, region: Region) -> Estimate:
    return budget.ranks[0].regions[region].estimate


@pytest.mark.parametrize(
    ("model", "settings"), [case[1:] for case in _CASES], ids=[case[0] for case in _CASES]
)
def test_that_a_real_run_stays_within_the_plan(
    model: Dense, settings: dict[str, Any], tmp_path: Path
) -> None:
    path = _write(model, tmp_path)
    budget = _plan(path, settings)
    planned = budget.ranks[0].planned
    asked = {"n_ctx": 4096, "n_ubatch": _TOKENS, "n_outputs_max": settings["n_seq_max"], **settings}
    with LlamaProcess(path, asked) as run:
        _compare_with_the_log(budget, run.buffers)
        copies = sum(b for name, b in run.buffers["model"].items() if "REPACK" in name)
        assert sum(_held(run.pid)) - copies <= planned.high_bytes

        assert run.decode(_TOKENS)["status"] == 0
        must_stay, mapped = _held(run.pid)
    weights = _region(budget, Region.WEIGHTS)
    assert weights.low_bytes <= mapped <= weights.low_bytes + _LIBRARIES_BYTES
    # File pages of repacked tensors stay mapped beside their copies: the same weights twice.
    assert planned.low_bytes <= must_stay + mapped - copies <= planned.high_bytes
    assert must_stay <= planned.high_bytes
    regions = [r.estimate for r in budget.ranks[0].regions.values()]
    assert sum(e.low_bytes for e in regions) == planned.low_bytes
    assert sum(e.high_bytes for e in regions) == planned.high_bytes


def _compare_with_the_log(budget: Budget, printed: dict[str, dict[str, float]]) -> None:
    """llama.cpp's own lines are the regions, to the last decimal they have."""
    mapped = sum(b for name, b in printed["model"].items() if "REPACK" not in name)
    assert mapped == pytest.approx(_region(budget, Region.WEIGHTS).likely_bytes, abs=_PRINTED_BYTES)
    cache = sum(printed["KV"].values())
    assert cache == pytest.approx(_region(budget, Region.KV_CACHE).likely_bytes, abs=_PRINTED_BYTES)
    compute, output = _region(budget, Region.ACTIVATIONS).parts
    work = sum(printed["compute"].values())
    assert compute.low_bytes - _PRINTED_BYTES <= work <= compute.high_bytes + _PRINTED_BYTES
    assert sum(printed["output"].values()) == pytest.approx(output.likely_bytes, abs=_PRINTED_BYTES)
