"""What makers' C libraries have in common: loading, codes that mean failure, lists of handles."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any, Final

from engine.errors import TelemetryError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST: Final = 256
NO_REASONS: Final[Mapping[int, str]] = {}


def loaded(*names: str) -> Any:
    """The first of the libraries that is there.

    Raises:
        OSError: none of them is.
    """
    for name in names[:-1]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return ctypes.CDLL(names[-1])


def checked(call: str, status: int, reasons: Mapping[int, str] = NO_REASONS) -> None:
    """Nothing where ``status`` is 0.

    Raises:
        TelemetryError: it is another; ``reasons`` has words for some.
    """
    if status:
        code = status & 0xFFFFFFFF
        why = f" ({reasons[code]})" if code in reasons else ""
        message = f"{call} answered 0x{code:x}{why}"
        raise TelemetryError(message)


def handles(
    call: str, ask: Callable[..., int], reasons: Mapping[int, str] = NO_REASONS
) -> list[c_void_p]:
    """A list that is asked for its length first, then with room for it.

    Raises:
        TelemetryError: it is refused.
    """
    count = c_uint32(0)
    checked(call, ask(byref(count), POINTER(c_void_p)()), reasons)
    count = c_uint32(min(count.value, _MOST))
    room = (c_void_p * max(count.value, 1))()
    checked(call, ask(byref(count), room), reasons)
    return [c_void_p(handle) for handle in room[: min(count.value, len(room))]]
