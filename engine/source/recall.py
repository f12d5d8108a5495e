r"""From a model to its origin, and the cautious way back.

``recall`` is for a file that may be a stranger's: it reads the bundled catalogue, the stores of
this computer and the regular file or folder that a path names (of weights the header only, as
always), and nothing else. It asks no server and starts no program. It does not touch a path whose
mere reading could reach further: one on another computer (``\\host\share``, ``//host/share``: on
Windows even looking at it logs in there), a device, or no whole path. Such a model waits for a
click, and the click is ``fetch``.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import SourceError
from engine.source import catalogue, files
from engine.source.by_hand import Measures, by_hand
from engine.source.origin import Located, Named, Origin, Pasted
from engine.source.reference import OllamaReference, PathReference, is_elsewhere, parse
from engine.source.resolve import resolve
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.source.hub import HubClient
    from engine.source.raw import RawModel

_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE
)
"""Names that Windows gives to devices, in every folder."""


def origin_of(said: str | Path | Origin, found: RawModel, endpoint: str = "") -> Origin:
    """Where ``found`` came from.

    Args:
        said: what the person typed, dropped, picked or entered; or the origin itself.
        found: what that was understood as.
        endpoint: a Hub of one's own, whose addresses are understood too.
    """
    if isinstance(said, Path):
        return _located(said, found)
    if not isinstance(said, str):
        return said
    return Pasted(said) if said.lstrip()[:1] == "{" else _of_text(said, found, endpoint)


def _of_text(said: str, found: RawModel, endpoint: str) -> Origin:
    match parse(said, endpoint):
        case PathReference(path):
            return _located(Path(path), found)
        case OllamaReference(name, tag):
            return Named(f"{name}:{tag}")
        case meant:
            name = said.strip().strip("\"'").strip()
    entry = catalogue.find(name)
    # What has a revision was read on the Hub, even where the catalogue has the name.
    if entry is not None and found.revision is None:
        return Named(entry.id)
    if entry is None and Path(name).exists():
        return _located(Path(name), found)
    if meant is None:
        return Named(name, found.revision)
    return Named(meant.repo_id, found.revision or meant.revision, meant.file)


def _located(path: Path, found: RawModel) -> Located:
    return Located(str(path.expanduser().absolute()), found.id)


def recall(origin: Origin, token: CancelToken) -> RawModel:
    """The model, from this computer alone.

    Raises:
        PlimsollError: it is not here, or is not read before the user asks; says which.
    """
    if isinstance(origin, Located):
        refuse_elsewhere(origin.path)
    return fetch(origin, token, None)


def fetch(origin: Origin, token: CancelToken, hub: HubClient | None) -> RawModel:
    """The model, from wherever it is; only after the user asked.

    Raises:
        PlimsollError: it is not there.
    """
    match origin:
        case Named():
            return resolve(origin.text, token, hub)
        case Pasted():
            return resolve(origin.text, token, None)
        case Measures():
            return by_hand(origin)
        case Located():
            raw = files.read(Path(origin.path), token)
            return replace(raw, id=origin.name) if origin.name else raw


def refuse_elsewhere(path: str) -> None:
    """Refuse a path whose mere reading could reach beyond this computer's own files.

    Raises:
        SourceError: it could, or it is no whole path here.
    """
    shown = printable(path, 80)
    if is_elsewhere(path):
        words = tr("{path} is on another computer: it is read only when you ask for it.")
        raise SourceError(words.format(path=shown))
    if not Path(path).is_absolute():
        raise SourceError(tr("{path} is no whole path on this computer.").format(path=shown))
    if os.name == "nt" and any(_DEVICE.fullmatch(part.rstrip(" .")) for part in Path(path).parts):
        raise SourceError(tr("{path} names a device, not a file.").format(path=shown))
