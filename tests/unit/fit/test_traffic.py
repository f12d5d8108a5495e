"""Sustained traffic, against a simulation of arrivals and departures one by one."""

from __future__ import annotations

from random import Random

import pytest

from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.contract.respond import respond
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError, PlimsollError
from engine.fit.traffic import Traffic, flow, under


def simulated(traffic: Traffic, moments: int, seed: int) -> tuple[list[int], list[float]]:
    """Requests that run and tokens that live at random moments of a long day."""
    random = Random(seed)
    spans: list[tuple[float, float, int, int]] = []
    time, end = 0.0, moments * 4.0
    while time < end:
        time += random.expovariate(traffic.arrival_rate)
        prompt = random.choice(traffic.prompt_lengths)
        out = random.choice(traffic.output_lengths)
        spans.append((time, time + out / traffic.tokens_per_second, prompt, out))
    longest = max(traffic.output_lengths) / traffic.tokens_per_second
    looks = sorted(random.uniform(longest, end - longest) for _ in range(moments))
    running, living, first = [], [], 0
    for look in looks:
        while spans[first][0] < look - longest:
            first += 1
        there = []
        for start, stop, prompt, _ in spans[first:]:
            if start > look:
                break
            if stop > look:
                there.append(prompt + (look - start) * traffic.tokens_per_second)
        running.append(len(there))
        living.append(sum(there))
    return sorted(running), sorted(living)


@pytest.mark.parametrize(
    ("rate", "prompts", "outputs"),
    [
        (1.0, (200, 1000, 8000), (100, 400, 900, 2000)),
        (0.2, (512,), (256,)),
        (4.0, (2000, 50_000), (300, 500, 700)),
    ],
)
def test_that_it_agrees_with_a_simulation(
    rate: float, prompts: tuple[int, ...], outputs: tuple[int, ...]
) -> None:
    traffic = Traffic(prompts, outputs, rate, 40.0)
    found = flow(traffic)
    running, living = simulated(traffic, 6000, seed=7)
    assert found.requests.mean == pytest.approx(sum(running) / 6000, rel=0.05)
    assert found.live_tokens.mean == pytest.approx(sum(living) / 6000, rel=0.06)
    assert abs(found.requests.p99 - running[5940]) <= 2
    assert found.live_tokens.p95 == pytest.approx(living[5700], rel=0.08)
    assert found.live_tokens.p99 == pytest.approx(living[5940], rel=0.1)


def test_that_littles_law_holds_by_hand() -> None:
    # Half a request a second, 400 tokens at 20 a second: 20 s each, 10 at once. Each holds its
    # prompt of 1,000 and on average half of its answer: 12,000 tokens.
    found = flow(Traffic((1000,), (400,), 0.5, 20.0))
    assert found.requests.mean == pytest.approx(10)
    assert found.live_tokens.mean == pytest.approx(12_000)
    assert found.longest == 1400
    # Of a Poisson variable with mean 10, 18 is the 99 % point (tables: P(X <= 18) = 0.9928).
    assert found.requests.p99 == 18


def test_that_the_plan_takes_the_peak() -> None:
    found = flow(Traffic((1000,), (400,), 0.5, 20.0))
    plan = under(Deployment(), found, counts_live_tokens=True)
    assert (plan.concurrency, plan.max_model_len) == (18, 1400)
    assert plan.live_tokens == found.live_tokens.p99
    assert under(Deployment(), found, counts_live_tokens=False).live_tokens is None
    with pytest.raises(DeploymentError, match="1,400 tokens") as caught:
        under(Deployment(max_model_len=1024), found, counts_live_tokens=True)
    assert caught.value.field == "max_model_len"


QUESTION = {
    "model": "meta-llama/Llama-3.1-8B",
    "gpu": "H100 SXM 80GB",
    "runtime": "vllm",
    "prompt_lengths": [1000],
    "output_lengths": [400],
    "arrival_rate": 0.5,
    "tokens_per_second": 20,
}


def test_that_a_request_states_its_traffic() -> None:
    answer, _ = respond(Desk(CancelToken()), QUESTION)
    traffic = answer["traffic"]
    assert isinstance(traffic, dict)
    assert traffic["requests"]["mean"] == pytest.approx(10)
    assert traffic["live_tokens"]["mean"] == pytest.approx(12_000)
    assert "sustained" in " ".join(str(line) for line in answer["assumptions"])  # pyright: ignore[reportGeneralTypeIssues]


@pytest.mark.parametrize("runtime", ["ollama", "lmstudio", "jan", "koboldcpp", "tgi"])
def test_that_programs_that_start_another_take_a_traffic_as_that_one_does(runtime: str) -> None:
    asked = {"runtime": runtime, "gpu": "L40S"}
    answer, _ = respond(Desk(CancelToken()), QUESTION | asked)
    assert isinstance(answer["traffic"], dict)


def test_that_each_model_beside_others_is_held_to_its_own_traffic() -> None:
    beside = {k: v for k, v in QUESTION.items() if k not in ("id", "gpu", "gpu_count")}
    asked = {"gpu": "2 x L40S", "devices": [0], "with": [beside | {"devices": [1]}]}
    tenants, _ = Desk(CancelToken()).tenants(parse(QUESTION | asked))
    alone = Desk(CancelToken()).plan(parse(QUESTION)).deployment.concurrency
    assert [each.deployment.concurrency for each in tenants] == [alone, alone]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"prompt_lengths": None}, "prompt_lengths"),
        ({"concurrency": 3}, "concurrency"),
        ({"live_tokens": 3}, "live_tokens"),
        ({"output_lengths": [0]}, "output_lengths"),
        ({"arrival_rate": 0}, "arrival_rate"),
        ({"tokens_per_second": -1}, "tokens_per_second"),
        ({"arrival_rate": None}, "arrival_rate"),
    ],
)
def test_that_half_a_traffic_is_refused(changed: dict[str, object], field: str) -> None:
    with pytest.raises(PlimsollError) as caught:
        respond(Desk(CancelToken()), QUESTION | changed)
    assert caught.value.field == field
