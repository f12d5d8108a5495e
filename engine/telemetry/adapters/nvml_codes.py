"""What NVML's return codes mean, in words. Decisions rest on the codes, never on the words."""

from __future__ import annotations

from typing import Any, Final

from engine.text import printable
from engine.words import tr, tr_later

UNINITIALISED: Final = 1
NOT_SUPPORTED: Final = 3
NOT_FOUND: Final = 6
NO_LIBRARY: Final = 12
NO_FUNCTION: Final = 13
UPDATED: Final = 18
"""The library is newer than the driver that runs: both were updated, only one was loaded anew."""
DRIVER_GONE: Final = frozenset({UNINITIALISED, 9, UPDATED})
"""Nothing can be asked until the library is opened again."""
DEVICE_LOST: Final = frozenset({15, 16})
"""This device is gone, its neighbours are not."""
NEVER: Final = frozenset({NOT_SUPPORTED, NO_FUNCTION})
"""Asking again brings nothing while this driver is loaded."""
NOT_UNDERSTOOD: Final = NEVER | {2, 25}
"""This form of the question, which another may replace: invalid argument, unknown version."""

# Codes of nvmlReturn_t (nvml.h); the binding has them as constants of the same meaning.
_REASONS = {
    UNINITIALISED: tr_later("the driver was unloaded"),
    2: tr_later("the driver did not understand the question"),
    NOT_SUPPORTED: tr_later("not supported by this device or driver"),
    4: tr_later("no permission to read it"),
    9: tr_later("the NVIDIA driver is not loaded"),
    NO_LIBRARY: tr_later("no NVIDIA driver here (libnvidia-ml was not found)"),
    NO_FUNCTION: tr_later("this driver is too old to tell"),
    15: tr_later("the GPU fell off the bus"),
    16: tr_later("the GPU needs a reset"),
    25: tr_later("the driver did not understand the question"),
    UPDATED: tr_later("the driver was updated; restart the computer"),
}


def reason(error: Any) -> str:
    """Why an NVML call failed, in a phrase."""
    known = _REASONS.get(error.value)
    if known:
        return tr(known)
    return tr("the driver answered: {error}").format(error=printable(str(error), 80))
