"""Headers of files on the Hub, read by range requests that are checked, not believed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import HeaderError, HubError
from engine.source import safetensors
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.source.raw import HeaderTensor

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
FIRST_BYTES = 2**17
"""Holds the whole header of most shards, so that one request does."""
_MOST_BYTES = 8 * 2**20


@dataclass(slots=True)
class RemoteFile:
    """One file at one commit. Keeps nothing but its length."""

    name: str
    url: str
    stated_bytes: int | None
    """Length by the repository's list of files."""
    request: Callable[[str, dict[str, str], int], tuple[int, dict[str, str], bytes]]
    """Sends a GET with headers: status, headers, at most so many bytes of the body."""
    size_bytes: int = field(init=False, default=0)
    """Length by the answers; 0 before the first. ``known`` asks for it."""
    _next_bytes: int = field(init=False, default=2**19)

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
        status, headers, body = self.request(self.url, {"Range": f"bytes={offset}-{last}"}, length)
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


def safetensors_header(file: RemoteFile) -> tuple[HeaderTensor, ...]:
    """Tensors of one safetensors file, in one request or two.

    Raises:
        HeaderError: the header is malformed, or disagrees with the file's size.
        HubError: the server does not answer ranges.
    """
    first = file.fetch(0, min(FIRST_BYTES, file.stated_bytes or FIRST_BYTES))
    length = safetensors.header_bytes(first, file.size_bytes, file.name)
    end = safetensors.LENGTH_BYTES + length
    header = first[safetensors.LENGTH_BYTES : end]
    if len(first) < end:
        header += file.fetch(len(first), end - len(first))
    if len(header) != length:
        raise HeaderError(tr("{name} ended while its header was read.").format(name=file.name))
    return safetensors.parse(header, file.size_bytes - end, file.name)
