"""``plimsoll verify``: our parameters beside those of the model built without weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.hub import opener
from engine.cli.look import Look, fitted, wrapped
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.contract.verify import classes_of, outcome, remark, verify_answer
from engine.verify.meta import verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from engine.verify.meta import Verification

AGREES, DIFFERS = 0, 1
_TABLE = 2 + 16 + 3 * 18 + 2


def run(options: argparse.Namespace) -> int:
    """Build the model and show both counts; 0 where they are equal, 1 where not."""
    token = CancelToken()
    model = Desk(token, opener(options)).model(parse(options.given))
    streams.progress("Building the model without weights …")
    found = verify(model, token, options.python)
    output = streams.output()
    if options.json:
        output.write(encode(verify_answer(found)) + "\n")
    else:
        look = Look.of(output)
        look.write(_describe(found, look), output)
    return AGREES if found.agrees else DIFFERS


def _describe(found: Verification, look: Look) -> Iterator[str]:
    yield look.strong(look.line(found.model))
    how = (
        f"{found.model_class} of transformers {found.transformers} on the meta device, "
        f"torch {found.torch}"
    )
    yield from wrapped(how, look.width, first="  ", rest="    ")
    yield ""
    if look.width >= _TABLE:
        yield look.faint(_row("", "counted here", "built", "difference"))
    rows = [
        (module.value.replace("_", " "), ours, built) for module, ours, built in classes_of(found)
    ]
    for name, ours, built in rows:
        yield from _compared(name, ours, built, look)
    total = _compared("all", found.our_parameters, found.built_parameters, look)
    yield from map(look.strong, total)
    yield ""
    yield from wrapped(f"{outcome(found)} {remark(found)}", look.width, first="  ", rest="  ")
    for reason in found.doubts:
        yield from wrapped(f"Ours is a bound: {reason}.", look.width, first="  ", rest="  ")


def _compared(name: str, ours: int, built: int, look: Look) -> Iterator[str]:
    """Both counts in a row, or in words where the terminal is too narrow for one."""
    if look.width >= _TABLE:
        yield _row(name, f"{ours:,}", f"{built:,}", _signed(ours - built))
        return
    apart = _signed(ours - built)
    text = f"{name}: {ours:,} counted here, {built:,} built, difference {apart}"
    yield from wrapped(text, look.width, first="  ", rest="    ")


def _row(name: str, ours: str, built: str, difference: str) -> str:
    columns = (fitted(text, 18, right=True) for text in (ours, built, difference))
    return f"  {fitted(name, 16)}{' '.join(columns)}"


def _signed(number: int) -> str:
    return f"{number:+,}" if number else "0"
