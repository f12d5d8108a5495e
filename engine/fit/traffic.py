"""Sustained concurrency: how many requests run and how many tokens live under a traffic.

Requests arrive at random (a Poisson process) and each runs at once, at its own speed: then the
number that runs is Poisson with mean rate × duration (Little's law; the M/G/∞ queue), and each
of them is caught at a random moment of its run. Peaks are quantiles over time: at 99 % the
plan's memory is enough 99 % of the time, and requests wait for a moment in the rest.

Source:
    Little, Operations Research 9 (1961); Takács, Introduction to the Theory of Queues (1962),
    chapter 3; quantiles of the sum by Cornish and Fisher's expansion to the third moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, lgamma, log, sqrt
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.deployment.spec import Deployment

_Z = {95: 1.6448536, 99: 2.3263479}
_BY_TABLE = 1000.0
"""Up to this mean the Poisson distribution is summed, beyond it is normal to within a part."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What users send. The two lists are samples that stand for their distributions."""

    prompt_lengths: tuple[int, ...]
    """Tokens of prompts."""
    output_lengths: tuple[int, ...]
    """Tokens of answers. As many as prompts: pairs of one request each; else independent."""
    arrival_rate: float
    """Requests a second."""
    tokens_per_second: float
    """Of one request while it runs: its own speed, not the server's."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure that varies with time."""

    mean: float
    p95: int
    p99: int


@dataclass(frozen=True, slots=True)
class Flow:
    """What runs at once."""

    requests: Spread
    live_tokens: Spread
    """Prompt and what is answered so far, over all requests that run."""
    longest: int
    """Tokens of the longest request at its end."""


def flow(traffic: Traffic) -> Flow:
    """The steady state of ``traffic``.

    Raises:
        DeploymentError: no lengths, or a rate or speed that isn't positive.
    """
    _check(traffic)
    pairs = _pairs(traffic.prompt_lengths, traffic.output_lengths)
    weight = 1 / len(pairs)
    busy = traffic.arrival_rate / traffic.tokens_per_second
    running = sum(out for _, out in pairs) * weight * busy
    # Moments of what a request holds, over its run of ``out`` tokens: p + u·out, u even.
    first = sum(out * (p + out / 2) for p, out in pairs) * weight * busy
    second = sum(out * (p * p + p * out + out * out / 3) for p, out in pairs) * weight * busy
    third = sum(_third(p, out) for p, out in pairs) * weight * busy
    deviation = sqrt(second)
    skewness = third / deviation**3
    longest = max(p + out for p, out in pairs)
    peaks = {
        percent: max(_quantile(first, deviation, skewness, z), 0.0) for percent, z in _Z.items()
    }
    return Flow(
        requests=Spread(running, _poisson(running, 0.95), _poisson(running, 0.99)),
        live_tokens=Spread(first, ceil(peaks[95]), ceil(peaks[99])),
        longest=longest,
    )


def under(deployment: Deployment, found: Flow, *, counts_live_tokens: bool) -> Deployment:
    """``deployment`` for the peak of the traffic, 99 % of the time.

    Args:
        deployment: the plan; what it states itself stays.
        found: the traffic's steady state.
        counts_live_tokens: whether the runtime holds only live tokens (a paged pool).

    Raises:
        DeploymentError: the longest request is longer than ``max_model_len``.
    """
    context = deployment.max_model_len
    if context is not None and 0 < context < found.longest:
        message = tr(
            "The longest request has {longest} tokens, more than "
            "max_model_len {context}: raise it or leave it out."
        ).format(longest=grouped(found.longest), context=grouped(context))
        raise DeploymentError(message, field="max_model_len")
    requests = max(found.requests.p99, 1)
    plan = deployment.with_(max_model_len=context or found.longest, concurrency=requests)
    if counts_live_tokens:
        plan = plan.with_(live_tokens=max(found.live_tokens.p99, found.longest))
    return plan


def _check(traffic: Traffic) -> None:
    lengths = {
        "prompt_lengths": traffic.prompt_lengths,
        "output_lengths": traffic.output_lengths,
    }
    for name, found in lengths.items():
        if not found:
            message = tr(
                "{name} is missing: a traffic needs lengths of prompts and of answers."
            ).format(name=name)
            raise DeploymentError(message, field=name)
    if sum(traffic.output_lengths) == 0:
        message = tr("output_lengths are all 0: then nothing runs for any time.")
        raise DeploymentError(message, field="output_lengths")
    speeds = {
        "arrival_rate": traffic.arrival_rate,
        "tokens_per_second": traffic.tokens_per_second,
    }
    for name, value in speeds.items():
        if not 0 < value < 1e9:
            message = tr("{name} is {value}; it has to be more than 0.").format(
                name=name, value=figures(format(value, "g"))
            )
            raise DeploymentError(message, field=name)


def _pairs(prompts: Sequence[int], outputs: Sequence[int]) -> list[tuple[int, int]]:
    if len(prompts) == len(outputs):
        return list(zip(prompts, outputs, strict=True))
    return [(p, out) for p in prompts for out in outputs]


def _third(prompt: int, out: int) -> float:
    """``out`` × the mean of (prompt + u·out)³ over u from 0 to 1."""
    if out == 0:
        return 0.0
    return ((prompt + out) ** 4 - prompt**4) / 4


def _quantile(mean: float, deviation: float, skewness: float, z: float) -> float:
    return mean + deviation * (z + (z * z - 1) * skewness / 6)


def _poisson(mean: float, share: float) -> int:
    """The smallest number that at least ``share`` of the time isn't exceeded."""
    if mean > _BY_TABLE:
        z = _Z[round(share * 100)]
        return ceil(mean + z * sqrt(mean))
    reached, number = exp(-mean), 0
    while reached < share:
        number += 1
        reached += exp(number * log(mean) - mean - lgamma(number + 1))
    return number
