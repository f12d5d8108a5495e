"""``plimsoll size --batch``: JSON Lines in, one answer a line, in constant memory."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn, cast

from engine.cli import streams
from engine.cli.encode import encode
from engine.contract.answer import error_answer
from engine.contract.request import request_id
from engine.contract.respond import respond
from engine.errors import PlimsollError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from engine.contract.desk import Desk
    from engine.contract.request import RequestId

LONGEST_LINE_BYTES = 32 * 2**20
"""A request with the 60,000 tensors of the largest models takes 8 MiB."""

_CHUNK_BYTES = 2**20


def answer_lines(name: str, desk: Desk) -> int:
    """Answer every line of the file ``name``, or of standard input for ``-``.

    A line that cannot be answered is answered with its error; nothing stops the rest.
    """
    output = streams.output()
    with _opened(name) as stream:
        for number, line in enumerate(_lines(stream), 1):
            output.write(encode(_answer(number, line, desk)) + "\n")
            output.flush()
    return 0


@contextmanager
def _opened(name: str) -> Generator[IO[bytes]]:
    if name == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # None without a console
            message = "There is no standard input to read: name a file."
            raise UsageError(message, field="batch")
        yield sys.stdin.buffer
        return
    path = Path(name)
    if path.is_dir():
        message = f"{name} is a folder: --batch takes a file of JSON Lines, or - for stdin."
        raise UsageError(message, field="batch")
    if not path.exists():
        message = f"There is no file {name} to take requests from."
        raise UsageError(message, field="batch")
    if path.is_char_device() or path.is_block_device():
        message = f"{name} is a device: --batch takes a file of JSON Lines, or - for stdin."
        raise UsageError(message, field="batch")
    with path.open("rb") as stream:
        yield stream


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Each line; None for one longer than anyone means, which is read past in pieces."""
    while line := stream.readline(LONGEST_LINE_BYTES + 1):
        if len(line) <= LONGEST_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        del line
        # Answered before the rest of it is read past: that may take for ever.
        yield None
        while (rest := stream.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
            continue


def _answer(number: int, line: bytes | None, desk: Desk) -> dict[str, object]:
    identity: RequestId = None
    try:
        request = _decoded(number, line)
        identity = request_id(request)
        return respond(desk, request)[0]
    except PlimsollError as error:
        return error_answer(identity, error)
    except (MemoryError, RecursionError):
        message = f"Line {number} is too large or too deeply nested to be a request."
        return error_answer(identity, UsageError(message))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not cost the other lines
        cause = f"{type(error).__name__}: {error}"[:160]
        fault = _FaultError(f"Line {number} met a fault in Plimsoll ({cause}); please report it.")
        return error_answer(identity, fault)


class _FaultError(PlimsollError):
    code = "internal"


def _decoded(number: int, line: bytes | None) -> dict[str, object]:
    if line is None:
        size = LONGEST_LINE_BYTES // 2**20
        _refuse(f"Line {number} is longer than {size} MiB: that is no request.")
    try:
        # Published configs hold Infinity; the request and the config check their own numbers.
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reason = "it is empty" if not line.strip() else _reason(error)
        _refuse(f"Line {number} is not a JSON object: {reason}.")
    if not isinstance(value, dict):
        _refuse(f'Line {number} is not a JSON object: write {{"model": …}} or {{"config": …}}.')
    return cast("dict[str, object]", value)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    # Python refuses integers of more than 4,300 digits with a plain ValueError.
    return "it holds a number too long to be one"


def _refuse(message: str) -> NoReturn:
    raise UsageError(message)
