"""A walk through the bytes of a GGUF header that never holds more than a piece of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.errors import HeaderError
from engine.words import grouped, tr

if TYPE_CHECKING:
    from typing import BinaryIO

    from engine.cancel import CancelToken

_MAX_HEADER_BYTES = 512 * 2**20
"""The largest vocabularies with merges and scores take some 20 MB."""
_MAX_NAME_BYTES = 65_535
"""Of a key (``docs/gguf.md``); ggml's own tensor names stay under 64."""
_MAX_TEXT_BYTES = 2**20
"""Longer texts (none is known; chat templates take some 50 KB) are left out."""
_MAX_KEPT_VALUES = 4096
"""Arrays up to one value a layer are kept, arrays of tokens are not."""
_MAX_TEXTS = 5_000_000
"""In one array; the largest vocabularies have some 500,000 merges."""
SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
"""``struct`` form of each number by its GGUF type."""
TEXT = 8
ARRAY = 9


class ByteSource(Protocol):
    """Bytes of a file by position: a local file, or a file on the Hub read by ranges."""

    size_bytes: int
    name: str

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``; fewer only at the end."""
        ...


@dataclass(slots=True)
class FileSource:
    """An open local file as a ``ByteSource``."""

    file: BinaryIO
    size_bytes: int
    name: str

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``."""
        self.file.seek(offset)
        return self.file.read(length)


class Cursor:
    """Walks through a header, with one chunk of it in memory."""

    _CHUNK_BYTES = 2**20

    def __init__(self, source: ByteSource, token: CancelToken) -> None:
        self._source = source
        self._token = token
        self._chunk = b""
        self._begin = 0
        self._at = 0
        self._limit = min(source.size_bytes, _MAX_HEADER_BYTES)

    @property
    def position_bytes(self) -> int:
        """Bytes from the start of the file."""
        return self._begin + self._at

    def refuse(self, why: str) -> HeaderError:
        """The error that the file ``why``."""
        return HeaderError(tr("{name} {why}.").format(name=self._source.name, why=why))

    def _require(self, length: int) -> None:
        """Leave without reading if the header cannot hold ``length`` more bytes."""
        if length > self._limit - self.position_bytes:
            raise self.refuse(
                tr(
                    "is cut short or lies about its header: {length} bytes "
                    "are to follow byte {position_bytes}, the file has "
                    "{size_bytes}"
                ).format(
                    length=grouped(length),
                    position_bytes=grouped(self.position_bytes),
                    size_bytes=grouped(self._source.size_bytes),
                )
            )

    def _fill(self, length: int) -> None:
        self._token.raise_if_cancelled()
        self._begin, self._at = self.position_bytes, 0
        self._chunk = self._source.read_at(self._begin, max(length, self._CHUNK_BYTES))
        if len(self._chunk) < length:
            raise self.refuse(tr("ended while its header was read"))

    def take(self, length: int) -> bytes:
        """The next ``length`` bytes.

        Raises:
            HeaderError: the file has no more.
        """
        self._require(length)
        if self._at + length > len(self._chunk):
            self._fill(length)
        taken = self._chunk[self._at : self._at + length]
        self._at += length
        return taken

    def skip(self, length: int) -> None:
        """Pass over ``length`` bytes, unread where they lie beyond the chunk."""
        self._require(length)
        if self._at + length <= len(self._chunk):
            self._at += length
        else:
            self._begin, self._at, self._chunk = self.position_bytes + length, 0, b""

    def number(self, form: str) -> int:
        """One number; typed as the integer that most of them are."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def name(self, what: str) -> str:
        """A key or name, which has to be text."""
        length = self.number("<Q")
        if length > _MAX_NAME_BYTES:
            raise self.refuse(
                tr("has {what} of {length} bytes").format(what=what, length=grouped(length))
            )
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.refuse(tr("has {what} that is not UTF-8").format(what=what)) from None

    def text(self) -> str | None:
        """A text; None where it is too long to be kept."""
        length = self.number("<Q")
        if length > _MAX_TEXT_BYTES:
            self.skip(length)
            return None
        return self.take(length).decode("utf-8", errors="replace")

    def array(self, key: str) -> tuple[int, tuple[object, ...] | None]:
        """Number of entries, and the entries if they are few numbers."""
        kind, length = self.number("<I"), self.number("<Q")
        if kind == TEXT:
            self._require(8 * length)
            if length > _MAX_TEXTS:
                raise self.refuse(
                    tr("has a list of {length} texts ({key!r})").format(
                        length=grouped(length), key=key[:80]
                    )
                )
            self._skip_texts(length)
            return length, None
        if kind not in SCALARS:
            raise self.refuse(
                tr("has an array of the unknown type {kind} ({key!r})").format(
                    kind=kind, key=key[:80]
                )
            )
        form = SCALARS[kind]
        width = struct.calcsize(form)
        if length > _MAX_KEPT_VALUES:
            self._require(width * length)
            self.skip(width * length)
            return length, None
        return length, struct.unpack(f"<{length}{form[1]}", self.take(width * length))

    def _skip_texts(self, count: int) -> None:
        """Pass over ``count`` texts: a tight loop, since vocabularies have 10^5 of them."""
        from_bytes = int.from_bytes
        while count:
            chunk, at, end = self._chunk, self._at, len(self._chunk) - 8
            while count and at <= end:
                after = at + 8 + from_bytes(chunk[at : at + 8], "little")
                if after > end + 8:
                    break
                at = after
                count -= 1
            self._at = at
            if count:
                # The next text crosses the end of the chunk.
                self.skip(self.number("<Q"))
                count -= 1
