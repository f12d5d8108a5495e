"""The user's token for a Hub: from the system's keyring, from their login, or as typed.

A token is kept per address and sent to that address alone. It is never written to a file of
ours; where the system has no keyring, it lasts until the program ends.
"""

from __future__ import annotations

import os
import threading
from enum import StrEnum

from engine.errors import HubGatedError
from engine.words import tr

DEFAULT_ENDPOINT = "https://huggingface.co"
_SERVICE = "Plimsoll: token for the Hub"
_LONGEST = 512


class Origin(StrEnum):
    """Where the token comes from."""

    NONE = "none"
    KEYRING = "keyring"
    SESSION = "session"
    LOGIN = "login"
    """The login of the Hub's own tools, or ``HF_TOKEN``: read, never changed."""


class Access:
    """The token for one Hub. May be shared between threads; reads at the first question."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._token: str | None = None
        self._origin: Origin | None = None

    @classmethod
    def only(cls, token: str) -> Access:
        """One that has ``token`` and reads nothing: for trying it."""
        made = cls("")
        made._token, made._origin = token.strip(), Origin.SESSION
        return made

    @property
    def origin(self) -> Origin:
        """Where the token in force comes from. May wait for the keyring: not for a UI thread."""
        self._read()
        return self._origin or Origin.NONE

    @property
    def token(self) -> str | None:
        """The token in force. May wait for the keyring: not for a UI thread."""
        self._read()
        return self._token

    def keep(self, token: str) -> Origin:
        """Use ``token`` from now on. Returns whether the keyring has it or this program alone.

        Raises:
            HubGatedError: the text cannot be a token.
        """
        text = token.strip()
        if not text or len(text) > _LONGEST or not text.isascii() or not text.isprintable():
            message = tr("That is no token: it is one line of letters and digits, such as hf_…")
            raise HubGatedError(message, field="token")
        with self._lock:
            self._token, self._origin = text, Origin.SESSION
            if _written(self._endpoint, text):
                self._origin = Origin.KEYRING
            return self._origin

    def forget(self) -> None:
        """Drop the token that ``keep`` took, here and in the keyring."""
        with self._lock:
            _removed(self._endpoint)
            self._token, self._origin = None, None

    def _read(self) -> None:
        with self._lock:
            if self._origin is not None:
                return
            for origin, found in (
                (Origin.KEYRING, _stored(self._endpoint)),
                (Origin.LOGIN, _login(self._endpoint)),
            ):
                if found:
                    self._token, self._origin = found, origin
                    return
            self._origin = Origin.NONE


def _login(endpoint: str) -> str | None:
    """The token of the Hub's own tools, where ``endpoint`` is the Hub that they speak to."""
    theirs = (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
    if endpoint != theirs:
        return None
    from huggingface_hub import get_token

    return get_token()


def _stored(endpoint: str) -> str | None:
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(_SERVICE, endpoint)
    except (KeyringError, OSError, RuntimeError):
        return None


def _written(endpoint: str, token: str) -> bool:
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.set_password(_SERVICE, endpoint, token)
    except (KeyringError, OSError, RuntimeError):
        return False
    return True


def _removed(endpoint: str) -> None:
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.delete_password(_SERVICE, endpoint)
    except (KeyringError, OSError, RuntimeError):
        return
