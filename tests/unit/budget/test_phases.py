"""Four peaks per rank: sums of what is held at the time, never of the worst of all times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.budget.model import Moments, RankBudget, Region
from engine.budget.phases import Phase, PhasePeak, peaks
from engine.deployment.spec import Deployment
from engine.evidence import Basis, Estimate, exactly
from engine.sizing import size
from tests.helpers.published import GIB, MIB, RTX_4090, machine, model


def rank(runtime: str = "transformers", **changed: object) -> RankBudget:
    plan = Deployment(runtime=runtime, max_model_len=8192)
    here = machine(RTX_4090, foreign_bytes=GIB)
    found = size(model("Llama-3.1-8B"), plan, here).budget.ranks[0]
    return replace(found, **changed)  # pyright: ignore[reportArgumentType]


def by_phase(found: RankBudget) -> dict[Phase, PhasePeak]:
    return {peak.phase: peak for peak in peaks(found)}


def likely(found: RankBudget, *regions: Region) -> int:
    return sum(found.regions[region].estimate.likely_bytes for region in regions)


def some(mib: int, label: str) -> Estimate:
    return Estimate(0, mib * MIB, 2 * mib * MIB, Basis.ASSUMED, "given by the test", label=label)


def test_that_a_load_holds_weights_and_context_and_what_is_on_its_way() -> None:
    found = rank(moments=Moments(load=(some(500, "largest tensor on its way"),)))
    load = by_phase(found)[Phase.LOAD]
    held = likely(found, Region.FOREIGN, Region.WEIGHTS, Region.RUNTIME)
    assert load.estimate.likely_bytes == held + 500 * MIB
    assert "14.96 GiB of weights" in load.driver
    assert "largest tensor on its way (0.49 GiB)" in load.driver


def test_that_a_decode_step_takes_its_own_activations() -> None:
    step = exactly(3 * MIB, Basis.FITTED, "given by the test")
    found = rank(moments=Moments(decode=step))
    phases = by_phase(found)
    without = likely(found, *(r for r in Region if r not in (Region.ACTIVATIONS, Region.HEADROOM)))
    assert phases[Phase.DECODE].estimate.likely_bytes == without + 3 * MIB
    prefill = without + likely(found, Region.ACTIVATIONS)
    assert phases[Phase.PREFILL].estimate.likely_bytes == prefill


def test_that_the_first_requests_add_what_no_start_shows() -> None:
    found = rank(moments=Moments(sustained=(some(394, "workspace"), some(10, "tables"))))
    phases = by_phase(found)
    prefill, sustained = phases[Phase.PREFILL].estimate, phases[Phase.SUSTAINED].estimate
    assert sustained.likely_bytes - prefill.likely_bytes == 404 * MIB
    assert sustained.high_bytes - prefill.high_bytes == 808 * MIB
    assert sustained.low_bytes == prefill.low_bytes
    assert "workspace (0.38 GiB)" in phases[Phase.SUSTAINED].driver


def test_that_a_pool_takes_what_the_rest_of_its_share_leaves() -> None:
    # The share is one sum: whichever part is larger, the pool is smaller by as much.
    found = rank("vllm")
    outside = [found.regions[r].estimate for r in (Region.RUNTIME, Region.ALLOCATOR)]
    prefill = by_phase(found)[Phase.PREFILL].estimate
    assert prefill.high_bytes - prefill.likely_bytes == sum(
        e.high_bytes - e.likely_bytes for e in outside
    )


def test_that_a_pool_that_the_weights_leave_nothing_is_not_called_none() -> None:
    plan = Deployment(runtime="vllm", max_model_len=8192)
    full = size(model("Llama-3.1-70B"), plan, machine(RTX_4090)).budget.ranks[0]
    assert by_phase(full)[Phase.DECODE].driver == "the weights: they leave the cache nothing"


@pytest.mark.parametrize("runtime", ["vllm", "llama.cpp", "transformers"])
def test_that_every_phase_has_its_driver_and_none_counts_headroom(runtime: str) -> None:
    found = rank(runtime)
    phases = peaks(found)
    assert [peak.phase for peak in phases] == list(Phase)
    assert all(peak.driver for peak in phases)
    for peak in phases:
        assert all(part.label != Region.HEADROOM.label for part in peak.estimate.parts)
        assert peak.estimate.likely_bytes <= likely(found, *Region) - likely(
            found, Region.HEADROOM
        ) + sum(e.likely_bytes for e in (*found.moments.load, *found.moments.sustained))
