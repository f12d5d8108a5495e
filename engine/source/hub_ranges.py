"""Headers of files on the Hub, read by range requests that are checked, not believed.

Of a safetensors file exactly its header travels, since its length stands in front. A GGUF file
says nowhere how long its header is: it is read in pieces, each twice as long as the one before up
to ``_MOST_BYTES``, of which the last goes past its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import HubError, HubOfflineError, HubRateLimitedError, HubTimeoutError
from engine.source import safetensors
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.source.raw import HeaderTensor

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_FIRST_PIECE_BYTES = 2**19
_MOST_BYTES = 8 * 2**20
_NOT_OF_THE_ADDRESS = (HubOfflineError, HubRateLimitedError, HubTimeoutError)
"""Trouble with which another address of the same file would not help."""


class Fetched(NamedTuple):
    """What came back for a GET."""

    status: int
    headers: dict[str, str]
    """With names in small letters."""
    body: bytes
    """As much of it as was asked for."""
    url: str
    """The address that answered, after all redirects."""


@dataclass(slots=True)
class RemoteFile:
    """One file at one commit. Keeps nothing but its length."""

    name: str
    url: str
    stated_bytes: int | None
    """Length by the repository's list of files."""
    request: Callable[[str, dict[str, str], int], Fetched]
    """Sends a GET with headers for at most so many bytes of the body."""
    size_bytes: int = field(init=False, default=0)
    """Length by the answers; 0 before the first. ``known`` asks for it."""
    _next_bytes: int = field(init=False, default=_FIRST_PIECE_BYTES)
    _led_to: str = field(init=False, default="", repr=False)
    """Where the file lies, by the last answer. Often signed and good for some minutes only."""

    def known(self) -> RemoteFile:
        """The same file with its length; asks for the first byte where nothing is known."""
        if self.stated_bytes is not None:
            self.size_bytes = self.stated_bytes
        else:
            self.fetch(0, 1)
        return self

    def read_at(self, offset: int, length: int) -> bytes:
        """At least ``length`` bytes (``gguf.ByteSource``), each time more of them at once."""
        wanted = min(max(length, self._next_bytes), self.size_bytes - offset)
        self._next_bytes = min(2 * self._next_bytes, _MOST_BYTES)
        return self.fetch(offset, wanted) if wanted > 0 else b""

    def fetch(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``, fewer where the file ends.

        Raises:
            HubError: the answer is not the range that was asked for.
        """
        last = offset + length - 1
        status, headers, body, self._led_to = self._asked(f"bytes={offset}-{last}", length)
        if status != 206:
            raise HubError(
                tr(
                    "The server ignores ranges ({status}), so the header of "
                    "{name} cannot be read without downloading all of it."
                ).format(status=status, name=self.name)
            )
        match = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
        first, final, total = map(int, match.groups()) if match else (-1, -1, -1)
        if first != offset or final != min(last, total - 1) or len(body) != final - first + 1:
            raise HubError(
                tr("The server answered another part of {name} than was asked for.").format(
                    name=self.name
                )
            )
        expected = self.size_bytes or self.stated_bytes
        if expected is not None and total != expected:
            raise HubError(
                tr("The server contradicts itself: {name} has {total} bytes or {expected}.").format(
                    name=self.name, total=grouped(total), expected=grouped(expected)
                )
            )
        self.size_bytes = total
        return body

    def _asked(self, part: str, length: int) -> Fetched:
        """The answer of where the file lies, else of where the Hub leads to now.

        The token goes along to neither address but the Hub's own (``hub_transport``).
        """
        if self._led_to not in ("", self.url):
            try:
                return self.request(self._led_to, {"Range": part}, length)
            except _NOT_OF_THE_ADDRESS:
                raise
            except HubError:
                # A signed address that has run out by now is refused.
                pass
        return self.request(self.url, {"Range": part}, length)


def safetensors_header(file: RemoteFile) -> tuple[HeaderTensor, ...]:
    """Tensors of one safetensors file: asks for the header's length, then for just the header.

    Raises:
        HeaderError: the header is malformed, or disagrees with the file's size.
        HubError: the server does not answer ranges.
    """
    start = safetensors.LENGTH_BYTES
    first = file.fetch(0, start)
    length = safetensors.header_bytes(first, file.size_bytes, file.name)
    header = file.fetch(start, length) if length else b""
    return safetensors.parse(header, file.size_bytes - start - length, file.name)
