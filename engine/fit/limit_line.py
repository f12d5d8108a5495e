"""The line where plans stop fitting, searched to the token on the real budget."""

from __future__ import annotations

from math import ceil, floor, log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.fit.plane import Axes, Plane

_ROWS_PER_OCTAVE = 2
"""Between these rows the limit is a straight line, as tokens times requests make it."""
_LARGEST_BLOCK = 256
_FIRST_REACH = 16
"""Tokens beside the place where the limit is expected."""


def limit_line(plane: Plane, shown: Axes) -> tuple[tuple[float, float], ...]:
    """The longest context that fits on each row, and where the line leaves the axes.

    Shapes:
        Result: (tokens, requests), contexts falling; empty where the line lies outside.
    """
    line: list[tuple[float, float]] = []
    previous, longest = 0, shown.most_context
    for requests in _rows(shown.most_requests):
        if plane.margin(shown.most_context, requests) >= 0:
            previous = requests
            continue
        if previous and not line:
            line.append(
                (shown.most_context, _crossing(plane, shown.most_context, previous, requests))
            )
        if not plane.margin(shown.least_context, requests) >= 0:
            if previous:
                crossing = _crossing(plane, shown.least_context, previous, requests)
                line.append((shown.least_context, crossing))
            break
        likely = _likely(longest, previous, requests) if line else ()
        longest = _longest(plane, requests, shown.least_context, shown.most_context, likely)
        line.append((longest, requests))
        previous = requests
    return tuple(line)


def _rows(most: int) -> list[int]:
    steps = ceil(log2(most) * _ROWS_PER_OCTAVE)
    spaced = (round(2 ** (n / _ROWS_PER_OCTAVE)) for n in range(steps))
    return sorted({*(n for n in spaced if n < most), most})


def _crossing(plane: Plane, context: int, fits: int, over: int) -> float:
    """Between two rows: where the margin at ``context`` passes 0."""
    spare, lacking = plane.margin(context, fits), plane.margin(context, over)
    return fits + (over - fits) * spare / (spare - lacking) if lacking < 0 else fits


def _longest(plane: Plane, requests: int, fits: int, over: int, likely: Iterable[int]) -> int:
    """The most tokens that fit, between a context that fits and one that doesn't.

    Exact: one token more is over. What is ``likely`` only saves plans.
    """
    for aim in likely:
        if fits < aim < over:
            fits, over = _narrowed(plane, requests, fits, over, aim)
        if fits == aim:
            fits, over = _narrowed(plane, requests, fits, over, aim + 1)
    reach = _FIRST_REACH
    while over - fits > 2 * reach:
        aim = _expected(plane, requests, fits, over)
        # A little beside what is expected, now above and now below, so that both ends close in.
        aim += reach if over - aim > aim - fits else -reach
        fits, over = _narrowed(plane, requests, fits, over, aim)
        reach *= 2
    fits, over = _narrowed(plane, requests, fits, over, _expected(plane, requests, fits, over))
    by_total = False
    while over - fits > 1:
        # Caches grow in blocks of round numbers of tokens, each request's own or all together.
        factor = requests if by_total else 1
        aim = roundest(fits * factor + 1, over * factor - 1) // factor
        fits, over = _narrowed(plane, requests, fits, over, aim)
        if fits == aim:
            fits, over = _narrowed(plane, requests, fits, over, aim + 1)
        by_total = not by_total
    return fits


def _likely(longest: int, before: int, requests: int) -> Iterator[int]:
    """What as many tokens in all as on the row before come to, in blocks as there."""
    block = min(longest & -longest, _LARGEST_BLOCK)
    each = longest * before // requests
    yield each // block * block
    yield each // block * block - block


def _expected(plane: Plane, requests: int, fits: int, over: int) -> int:
    """Where the margin passes 0 if it falls evenly."""
    spare, lacking = plane.margin(fits, requests), plane.margin(over, requests)
    share = spare / (spare - lacking) if lacking < 0 else 0.5
    return fits + floor((over - fits) * share)


def _narrowed(plane: Plane, requests: int, fits: int, over: int, aim: int) -> tuple[int, int]:
    if over - fits <= 1:
        return fits, over
    tried = min(max(aim, fits + 1), over - 1)
    return (tried, over) if plane.margin(tried, requests) >= 0 else (fits, tried)


def roundest(least: int, most: int) -> int:
    """Of the numbers from ``least`` to ``most`` the one that most powers of two divide."""
    shift = (least ^ most).bit_length()
    if least == most or not least & ((1 << shift) - 1):
        return least
    return most >> (shift - 1) << (shift - 1)
