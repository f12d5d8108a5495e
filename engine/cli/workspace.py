"""A ``.plimsoll`` file named where a model is: its plan, under the options that are stated too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

_SUFFIX = ".plimsoll"


def opened(options: argparse.Namespace) -> None:
    """Put the plan of the workspace, if one is named, in the place of its name.

    The Hub is then not asked: it would be for a model that the file names, not the user.

    Raises:
        PlimsollError: the file can't be read, or isn't one.
    """
    name: str | None = options.given.get("model")
    if name is None or not name.lower().endswith(_SUFFIX):
        return
    from pathlib import Path  # noqa: PLC0415 - seldom needed

    from engine.contract.workspace import as_request, read_file  # noqa: PLC0415 - see above

    own = {key: value for key, value in options.given.items() if key != "model"}
    asked = as_request(read_file(Path(name)).plan)
    if "gpu" in own or "gpu_total_bytes" in own:
        asked.pop("baseline", None)
    options.given = asked | own
    options.offline = True
