"""Several models on one machine: the next one finds taken what the last one holds."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.respond import respond
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError, PlimsollError
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.together import Tenant, holders, together
from tests.helpers.published import GIB, H100, RTX_4090, machine, model

CHAT = Tenant(model("Llama-3.1-8B"), Deployment(runtime="transformers", max_model_len=8192))
DRAFT = Tenant(model("Llama-3.2-1B"), Deployment(runtime="transformers", max_model_len=4096))


def held(placed_rank: object) -> int:
    regions = placed_rank.regions  # pyright: ignore[reportAttributeAccessIssue]
    outside = (Region.HEADROOM, Region.FOREIGN)
    return sum(e.estimate.likely_bytes for r, e in regions.items() if r not in outside)


def test_that_the_second_finds_what_the_first_holds() -> None:
    found = together((CHAT, DRAFT), machine(RTX_4090, foreign_bytes=GIB))
    first, second = (placed.sizing.budget.ranks[0] for placed in found.placed)
    assert first.slot.foreign.likely_bytes == GIB
    assert second.slot.foreign.likely_bytes == GIB + held(first)
    # 16.06 GB and 2.47 GB of weights, and little else at these lengths, in 23.64 GiB.
    assert found.machine.slots[0].foreign.likely_bytes == GIB + held(first) + held(second)
    assert found.outcome in (Fit.FITS, Fit.TIGHT)


def test_that_each_goes_where_it_leaves_the_largest_hole() -> None:
    # Two cards: the 8B fills one, the 1B fits beside it, and the other stays free for the third.
    third = Tenant(model("Llama-3.1-8B"), Deployment(runtime="transformers", max_model_len=8192))
    found = together((CHAT, DRAFT, third), machine(RTX_4090, 2))
    assert [placed.devices for placed in found.placed] == [(0,), (0,), (1,)]
    assert found.outcome in (Fit.FITS, Fit.TIGHT)


def test_that_a_share_of_the_whole_device_leaves_no_room_for_a_second() -> None:
    # Twice 0.9 of a card is more than the card, whatever the two need.
    plan = Deployment(max_model_len=2048, gpu_memory_utilization=0.9)
    both = (Tenant(model("Llama-3.2-1B"), plan), Tenant(model("Llama-3.2-1B"), plan))
    found = together(both, machine(RTX_4090))
    assert found.placed[0].sizing.verdict.fit in (Fit.FITS, Fit.TIGHT)
    assert found.placed[1].sizing.verdict.fit is Fit.DOES_NOT_FIT
    assert found.outcome is Fit.DOES_NOT_FIT
    smaller = plan.with_(gpu_memory_utilization=0.4)
    again = together((Tenant(model("Llama-3.2-1B"), smaller),) * 2, machine(RTX_4090))
    assert again.outcome in (Fit.FITS, Fit.TIGHT)


def test_that_experts_on_the_host_are_taken_from_the_host() -> None:
    plan = Deployment(runtime="llama.cpp", weight_format="Q4_K_M", max_model_len=4096)
    offloaded = Tenant(model("gpt-oss-120b"), plan.with_(weight_format="auto", n_cpu_moe=36))
    found = together((offloaded, DRAFT), machine(RTX_4090))
    on_host = next(r for r in found.placed[0].sizing.budget.ranks if r.rank == 1)
    assert found.machine.host.foreign.likely_bytes == held(on_host) > 50 * GIB


def test_that_ranks_lie_on_the_devices_they_are_given() -> None:
    tp = Tenant(model("Llama-3.1-8B"), Deployment(tensor_parallel_size=2), devices=(3, 1))
    found = together((tp,), machine(H100, 4))
    taken = [slot.foreign.likely_bytes > 0 for slot in found.machine.slots]
    assert taken == [False, True, False, True]


def test_that_one_alone_is_sized_as_without_the_others() -> None:
    here = machine(RTX_4090)
    alone = size(CHAT.model, CHAT.deployment, here)
    assert together((CHAT,), here).placed[0].sizing.verdict == alone.verdict


PAIR = {
    "model": "meta-llama/Llama-3.1-8B",
    "gpu": "RTX 4090",
    "runtime": "transformers",
    "max_model_len": 8192,
    "with": [{"model": "Qwen/Qwen3-0.6B", "runtime": "transformers", "max_model_len": 2048}],
}


def test_that_a_request_may_hold_several_models() -> None:
    answer, fit = respond(Desk(CancelToken()), PAIR)
    beside = answer["together"]
    assert isinstance(beside, dict)
    assert beside["verdict"] == fit.value == "fits"
    assert [entry["devices"] for entry in beside["models"]] == [[0], [0]]
    first, second = (entry["answer"]["ranks"][0] for entry in beside["models"])
    assert second["regions"]["foreign"]["likely"] == first["planned_bytes"]


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"with": [{"runtime": "vllm"}]}, "model", "No model is named"),
        ({"with": [{"model": "a", "gpu": "H100"}]}, "with[0].gpu", "shares the machine"),
        ({"with": ["a"]}, "with[0]", "an object"),
        ({"with": "a"}, "with", "a list"),
        ({"devices": [4], "gpu_count": 2, "with": []}, "devices", "has 0 to 1"),
        ({"devices": [0.5]}, "devices", "whole number"),
        ({"baseline": "tomorrow"}, "baseline", "now, empty"),
        ({"baseline": "empty"}, "baseline", "isn't this machine"),
        ({"instead_of": [7]}, "instead_of", "isn't this machine"),
    ],
)
def test_that_a_wrong_companion_is_named(
    changed: dict[str, object], field: str, words: str
) -> None:
    with pytest.raises(PlimsollError, match=words.replace("[", r"\[")) as caught:
        respond(Desk(CancelToken()), PAIR | changed)
    assert caught.value.field == field


def test_that_an_impossible_plan_is_named_with_its_model() -> None:
    impossible = Tenant(CHAT.model, Deployment(tensor_parallel_size=7))
    with pytest.raises(DeploymentError, match=r"^Llama-3\.1-8B: ") as raised:
        together((DRAFT, impossible), machine(RTX_4090, 8))
    assert raised.value.field == "tensor_parallel_size"


def test_that_what_it_holds_is_told_model_by_model() -> None:
    found = together((CHAT, DRAFT), machine(RTX_4090, foreign_bytes=GIB))
    before, *models = holders(found.machine.slots[0].foreign)
    assert before.likely_bytes == GIB
    ranks = [placed.sizing.budget.ranks[0] for placed in found.placed]
    assert [m.likely_bytes for m in models] == [held(rank) for rank in ranks]
    assert [m.label for m in models] == [CHAT.model.id, DRAFT.model.id]
    assert [placed.held_bytes for placed in found.placed] == [held(rank) for rank in ranks]
