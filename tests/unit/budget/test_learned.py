"""Budgets after this machine's own runs; changes worked out by hand from the rule's budget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.architecture.read import read
from engine.budget.learned import key_of
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.devices.device import DeviceKind
from engine.evidence import Basis
from engine.lessons import TOTAL, Lesson, Measured
from engine.sizing import size
from engine.source.raw import RawModel

if TYPE_CHECKING:
    from engine.devices.device import Machine

MIB = 2**20
LLAMA_8B = read(
    RawModel(
        id="meta-llama/Llama-3.1-8B",
        config={
            "model_type": "llama",
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
            "max_position_embeddings": 131072,
            "torch_dtype": "bfloat16",
        },
        source="a test",
    )
)
PLAN = Deployment("vllm", max_model_len=8192, gpu_memory_utilization=0.9)
TRANSFORMERS = Deployment("transformers", max_model_len=4096)


def planned(machine: Machine, plan: Deployment = PLAN) -> Budget:
    return size(LLAMA_8B, plan, machine).budget


def h100() -> Machine:
    return catalogue.machine(catalogue.find("H100 SXM"))


def lesson(budget: Budget, sizes: dict[str, int], half: int = 0, **key: object) -> Lesson:
    """A run of ``budget``'s plan that measured ``sizes``, by region or ``TOTAL``."""

    def measured(region: str, size_bytes: int) -> Measured:
        if region == TOTAL:
            return Measured(size_bytes, half, 0, 0, 0)
        rule = budget.ranks[0].regions[Region(region)].estimate
        return Measured(size_bytes, half, rule.low_bytes, rule.likely_bytes, rule.high_bytes)

    ranks = ({region: measured(region, size) for region, size in sizes.items()},)
    return Lesson(f"{len(sizes)}-{sizes}", 1.79e9, replace(key_of(budget), **key), ranks, "a test")


def region(budget: Budget, which: Region):
    return budget.ranks[0].regions[which].estimate


def taught(*lessons: Lesson) -> Machine:
    return replace(h100(), lessons=lessons)


def test_that_a_run_of_the_same_plan_goes_before_the_rule_and_says_what_the_rule_says():
    before = planned(h100())
    rule = region(before, Region.ACTIVATIONS)
    stated = rule.likely_bytes + 256 * MIB
    after = planned(taught(lesson(before, {"activations": stated}, half=5 * MIB)))
    learned = region(after, Region.ACTIVATIONS)
    assert (learned.low_bytes, learned.likely_bytes, learned.high_bytes) == (
        stated - 5 * MIB,
        stated,
        stated + 5 * MIB,
    )
    assert learned.basis is Basis.LEARNED
    assert "1 run of this plan on this machine; the rule says" in learned.source
    assert any("Learned from 1 run" in words for words in after.assumptions)


def test_that_a_pool_takes_what_a_larger_region_leaves_in_whole_blocks():
    before = planned(h100())
    stated = region(before, Region.ACTIVATIONS).likely_bytes + 256 * MIB
    after = planned(taught(lesson(before, {"activations": stated})))
    block = before.sequence_state.bytes_per_block
    assert block == 2 * 32 * 8 * 128 * 2 * 16  # K and V, layers, heads, width, bf16, tokens
    pool = after.sequence_state.pool_bytes
    old = before.sequence_state.pool_bytes
    assert pool is not None
    assert old is not None
    assert 256 * MIB <= old - pool <= 256 * MIB + block
    assert after.sequence_state.num_blocks == pool // block
    assert after.deployment == before.deployment


def test_that_several_runs_give_their_range_and_their_median():
    before = planned(h100())
    rule = region(before, Region.ACTIVATIONS).likely_bytes
    runs = [
        replace(lesson(before, {"activations": rule + extra * MIB}), id=str(extra))
        for extra in (10, 40, 20)
    ]
    learned = region(planned(taught(*runs)), Region.ACTIVATIONS)
    sizes = (learned.low_bytes, learned.likely_bytes, learned.high_bytes)
    assert sizes == (rule + 10 * MIB, rule + 20 * MIB, rule + 40 * MIB)
    assert "3 runs" in learned.source


def test_that_an_exact_rule_is_kept_where_the_run_agrees_and_told_where_it_does_not():
    before = planned(h100(), TRANSFORMERS)
    rule = region(before, Region.KV_CACHE)
    assert rule.is_point
    agreeing = lesson(before, {"kv_cache": rule.likely_bytes + MIB}, half=2 * MIB)
    assert region(planned(taught(agreeing), TRANSFORMERS), Region.KV_CACHE) == rule
    other = lesson(before, {"kv_cache": rule.likely_bytes + 9 * MIB}, half=2 * MIB)
    after = planned(taught(other), TRANSFORMERS)
    assert region(after, Region.KV_CACHE).likely_bytes == rule.likely_bytes + 9 * MIB
    assert any("KV cache" in words and "outside" in words for words in after.warnings)


def test_that_a_measured_total_settles_the_region_that_is_least_known():
    before = planned(h100(), TRANSFORMERS)
    own = [
        entry.estimate
        for which, entry in before.ranks[0].regions.items()
        if which not in {Region.FOREIGN, Region.HEADROOM}
    ]
    stated = sum(estimate.likely_bytes for estimate in own) + 100 * MIB
    after = planned(taught(lesson(before, {TOTAL: stated})), TRANSFORMERS)
    changed = {
        which
        for which in Region
        if region(after, which).likely_bytes != region(before, which).likely_bytes
    }
    assert len(changed) == 1
    (which,) = changed
    assert region(after, which).likely_bytes == region(before, which).likely_bytes + 100 * MIB
    widths = {w: region(before, w).high_bytes - region(before, w).low_bytes for w in Region}
    widths.pop(Region.FOREIGN)
    widths.pop(Region.HEADROOM)
    assert widths[which] == max(widths.values())


@pytest.mark.parametrize(
    "key",
    [
        {"runtime_version": "0.11.0"},
        {"devices": ("H100 PCIe · 85520809984",)},
        {"runtime": "sglang"},
    ],
)
def test_that_a_run_of_another_release_device_or_runtime_teaches_nothing(key):
    before = planned(h100())
    sizes = {"activations": 1, "runtime": 1}
    assert planned(taught(lesson(before, sizes, **key))).ranks == before.ranks


def test_that_a_run_near_this_one_narrows_the_range_and_never_leaves_it():
    before = planned(h100())
    rule = region(before, Region.RUNTIME)
    assert not rule.is_point
    inside = (rule.likely_bytes + rule.low_bytes) // 2
    near = lesson(before, {"runtime": inside}, model="another", settings=())
    narrowed = region(planned(taught(near)), Region.RUNTIME)
    assert rule.low_bytes <= narrowed.low_bytes <= inside <= narrowed.high_bytes
    assert narrowed.high_bytes - narrowed.low_bytes < rule.high_bytes - rule.low_bytes
    assert narrowed.basis is rule.basis
    assert "narrowed by 1 run" in narrowed.source
    far = lesson(before, {"runtime": rule.high_bytes * 4}, model="another", settings=())
    assert region(planned(taught(far)), Region.RUNTIME) == rule


def test_that_another_models_activations_teach_nothing_of_this_ones():
    before = planned(h100())
    rule = region(before, Region.ACTIVATIONS)
    near = lesson(before, {"activations": rule.likely_bytes}, model="another", settings=())
    assert region(planned(taught(near)), Region.ACTIVATIONS) == rule


def test_that_weights_and_cache_of_other_settings_are_never_learned():
    before = planned(h100())
    near = lesson(before, {"weights": 1, "kv_cache": 1, "foreign": 1}, settings=())
    after = planned(taught(near))
    assert after.ranks == before.ranks


def test_that_what_others_held_then_says_nothing_of_now():
    before = planned(h100())
    same = lesson(before, {"foreign": 5 * 2**30, "headroom": 7})
    assert planned(taught(same)).ranks == before.ranks


def test_that_settings_are_compared_with_every_default_filled_in():
    spelled = planned(h100(), replace(PLAN, max_num_seqs=None))
    budget = planned(h100(), PLAN.with_(max_num_seqs=spelled.deployment.max_num_seqs))
    assert key_of(spelled) == key_of(budget)
    assert key_of(spelled).runtime_version


def test_that_a_shared_memory_is_the_same_device_whatever_is_free_of_it():
    # An APU's ceiling is its carve-out and what can be had of the computer's memory now.
    machine = h100()
    (slot,) = machine.slots
    keys = set()
    for total in (60 * 2**30, 59 * 2**30):
        device = replace(slot.device, kind=DeviceKind.UNIFIED, total_bytes=total)
        apu = replace(machine, slots=(replace(slot, device=device, uuid="pci-0000:c5:00.0"),))
        keys.add(key_of(planned(apu, TRANSFORMERS)).devices)
    assert len(keys) == 1
