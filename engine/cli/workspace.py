"""A ``.plimsoll`` file named where a model is: its plan, under the options that are stated too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from engine.contract.request import Request

_SUFFIX = ".plimsoll"


def opened(options: argparse.Namespace) -> None:
    """Put the plan of the workspace, if one is named, in the place of its name.

    The options that are stated count for that plan; the models beside it, which start before it,
    go to ``options.before``. The Hub is then not asked: it would be for a model that the file
    names, not the user.

    Raises:
        PlimsollError: the file can't be read, or isn't one.
    """
    options.before = ()
    name: str | None = options.given.get("model")
    if name is None or not name.lower().endswith(_SUFFIX):
        return
    from dataclasses import replace  # noqa: PLC0415 - seldom needed
    from pathlib import Path  # noqa: PLC0415 - see above

    from engine.contract.workspace import as_request, read_file  # noqa: PLC0415 - see above

    own = {key: value for key, value in options.given.items() if key != "model"}
    plan = read_file(Path(name)).plan
    asked = as_request(replace(plan, beside=()))
    if "gpu" in own or "gpu_total_bytes" in own:
        asked.pop("baseline", None)
    options.given = asked | own
    options.before = tuple(map(as_request, plan.beside))
    options.offline = True


def earlier(options: argparse.Namespace) -> tuple[Request, ...]:
    """The models of the workspace that start before its plan; none where none is named."""
    from engine.contract.request import parse  # noqa: PLC0415 - seldom needed

    return tuple(map(parse, options.before))
