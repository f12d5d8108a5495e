"""Which Python on this machine has torch and transformers: Plimsoll itself runs without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from engine.errors import VerifyError
from engine.verify.process import started
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.cancel import CancelToken

NEEDED = ("torch", "transformers")
HOW = tr_later(
    "Verifying needs PyTorch and transformers, which no Python found here "
    "has: pip install torch transformers, then name that Python with "
    "--python."
)
_LOOK = (
    "import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in sys.argv[1:]))"
)
_STEP_SECONDS = 0.2
_STEPS = 100


def find(token: CancelToken, named: str | None = None) -> str:
    """A Python that can build models: the one ``named``, else our own, else one on the path.

    Raises:
        VerifyError: there is none; the sentence says how to get one.
        JobCancelledError: the token was cancelled.
    """
    if named is not None:
        # As it is typed: a Path would drop the "./" that keeps it from the search path.
        path = shutil.which(os.path.expanduser(named))  # noqa: PTH111
        if path is None:
            message = tr("{named!r} is no program that can be started.").format(named=named[:200])
            raise VerifyError(message, field="python")
        if not _has_what_it_takes(path, token):
            message = tr(
                "{named} has no {names}: pip install torch transformers in "
                "it, or name another Python."
            ).format(named=named[:200], names=" and no ".join(NEEDED))
            raise VerifyError(message, field="python")
        return path
    frozen = bool(getattr(sys, "frozen", False))
    if not frozen and all(find_spec(module) is not None for module in NEEDED):
        return sys.executable
    for path in _on_the_path():
        token.raise_if_cancelled()
        if _has_what_it_takes(path, token):
            return path
    raise VerifyError(tr(HOW), field="python")


def _on_the_path() -> Iterator[str]:
    found = (shutil.which(name) for name in ("python3", "python"))
    yield from dict.fromkeys(path for path in found if path is not None)


def _has_what_it_takes(path: str, token: CancelToken) -> bool:
    try:
        with started([path, "-c", _LOOK, *NEEDED], subprocess.DEVNULL) as process:
            for _ in range(_STEPS):
                token.raise_if_cancelled()
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_STEP_SECONDS) == 0
    except OSError:
        pass
    return False
