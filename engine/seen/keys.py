"""API keys of runtimes: kept per origin in the system's keyring, and sent to that origin alone.

Where the system has no keyring a key lasts until the program ends. None is ever written to a file
of ours.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from engine.errors import EndpointError
from engine.words import tr

if TYPE_CHECKING:
    from engine.telemetry.address import Address

_SERVICE: Final = "Plimsoll: API key of a runtime"
_LONGEST = 512


class Keys:
    """The keys of this session, for all threads but the UI's: the keyring may be waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}

    def of(self, address: Address) -> str:
        """The key for ``address``; empty where none was given. Asks the keyring once."""
        with self._lock:
            if address.origin not in self._known:
                self._known[address.origin] = _stored(address.origin)
            return self._known[address.origin]

    def keep(self, address: Address, key: str) -> bool:
        """Use ``key`` at ``address`` from now on. Returns whether the keyring has it as well.

        Raises:
            EndpointError: the text cannot be a key.
        """
        text = key.strip()
        if not text or len(text) > _LONGEST or not text.isascii() or not text.isprintable():
            message = tr("That is no API key: it is one line of letters, digits and signs.")
            raise EndpointError(message, field="key")
        with self._lock:
            self._known[address.origin] = text
        return _written(address.origin, text)

    def forget(self, address: Address) -> None:
        """Drop the key for ``address``, here and in the keyring."""
        with self._lock:
            self._known[address.origin] = ""
        _removed(address.origin)


def _stored(origin: str) -> str:
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(_SERVICE, origin) or ""
    except (KeyringError, OSError, RuntimeError):
        return ""


def _written(origin: str, key: str) -> bool:
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.set_password(_SERVICE, origin, key)
    except (KeyringError, OSError, RuntimeError):
        return False
    return True


def _removed(origin: str) -> None:
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.delete_password(_SERVICE, origin)
    except (KeyringError, OSError, RuntimeError):
        return
