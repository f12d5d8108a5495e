"""How errors become the one sentence a person can act on, and the details they can copy."""

from __future__ import annotations

import errno
import platform
import traceback

from engine.cancel import JobCancelledError
from engine.errors import PlimsollError
from engine.redaction import redacted
from engine.text import printable
from engine.words import tr, tr_later

_SENTENCE_LIMIT = 400
_DETAILS_LIMIT = 20_000

_FORBIDDEN = tr_later("{name} may not be read or written by this user: check its permissions.")
_DISK = {
    errno.ENOENT: tr_later("There is no file {name}."),
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EISDIR: tr_later("{name} is a folder where a file was expected."),
    errno.ENOTDIR: tr_later("{name} lies below something that is not a folder."),
    errno.ENOSPC: tr_later("The disk is full: {name} could not be written."),
    errno.EROFS: tr_later("{name} lies on a read-only disk: choose another folder."),
}


def sentence(error: BaseException) -> str:
    """What is wrong and what to do, in one sentence that is safe to show.

    Our own errors carry their sentence; trouble with a file names the file; everything else
    is a fault of ours and says so.
    """
    if isinstance(error, PlimsollError):
        text = error.message
    elif isinstance(error, JobCancelledError):
        text = tr("Stopped.")
    elif isinstance(error, OSError):
        name = str(error.filename) if error.filename else tr("The file")
        known = _DISK.get(error.errno or 0)
        reason = error.strerror or type(error).__name__
        text = tr(known).format(name=name) if known else f"{name}: {reason}."
    elif isinstance(error, MemoryError):
        text = tr("There was not enough memory for this: close something and try again.")
    else:
        text = tr(
            "Something went wrong inside Plimsoll ({error}); "
            "the details can be copied for a report."
        ).format(error=type(error).__name__)
    return printable(" ".join(text.split()), _SENTENCE_LIMIT)


def details(error: BaseException) -> str:
    """The text behind "Copy details": the sentence, versions, and where it happened.

    Names of user and computer and secrets are masked, and home folders written as ``~``.
    """
    trace = "".join(traceback.format_exception(error))
    head = (
        f"{sentence(error)}\n"
        f"{type(error).__name__} on Python {platform.python_version()}, {platform.system()}\n\n"
    )
    lines = (printable(line) for line in trace.splitlines())
    return redacted(head + "\n".join(lines))[:_DETAILS_LIMIT]
