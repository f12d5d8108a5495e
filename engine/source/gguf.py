"""GGUF headers: scalar metadata and the tensor table, never the data.

Layout (little-endian): ``GGUF``, version, number of tensors, number of key-value pairs; the
pairs; the table of (name, axes, type, offset); padding; data, in which each tensor starts
at the next multiple of the alignment.

Source: ggml ``docs/gguf.md`` and ``gguf.cpp``, which refuses the same files.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Protocol

from engine.errors import HeaderError
from engine.source.ggml_types import BY_NUMBER
from engine.source.raw import HeaderTensor
from engine.units import align_up

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from engine.cancel import CancelToken

MAGIC = b"GGUF"
_MAX_HEADER_BYTES = 512 * 2**20
"""The largest vocabularies with merges and scores take some 20 MB."""
_MAX_TENSORS = 200_000
_MAX_PAIRS = 65_536
_MAX_NAME_BYTES = 65_535
"""Of a key (``docs/gguf.md``); ggml's own tensor names stay under 64."""
_MAX_TEXT_BYTES = 2**20
"""Longer texts (none is known; chat templates take some 50 KB) are left out."""
_MAX_KEPT_VALUES = 4096
"""Arrays up to one value a layer are kept, arrays of tokens are not."""
_MAX_TEXTS = 5_000_000
"""In one array; the largest vocabularies have some 500,000 merges."""
_MAX_KEPT_BYTES = 16 * 2**20
_MAX_AXES = 4
_SCALARS = {
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
_TEXT = 8
_ARRAY = 9
COUNT_SUFFIX = ".count"
_PART = re.compile(
    r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})(?P<end>\.gguf)$", re.IGNORECASE
)


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


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What one GGUF file says about itself.

    ``metadata`` holds scalars, texts and short arrays of numbers as tuples; of the other
    arrays only the number of entries, under the key with ``.count`` after it.
    """

    metadata: Mapping[str, object]
    tensors: tuple[HeaderTensor, ...]
    header_bytes: int


def is_part(file_name: str) -> bool:
    """Whether ``file_name`` is one of several parts (``-00002-of-00004.gguf``)."""
    return _PART.match(file_name) is not None


def model_name(file_name: str) -> str:
    """The file's name without its suffix and part number."""
    match = _PART.match(file_name)
    return match["stem"] if match else file_name.rsplit(".", 1)[0]


def parts_of(file_name: str) -> tuple[str, ...]:
    """Names of all parts that belong to ``file_name``, the first part first."""
    match = _PART.match(file_name)
    count = int(match["parts"]) if match else 0
    if match is None or not 1 <= int(match["part"]) <= count:
        return (file_name,)
    stem, end = match["stem"], match["end"]
    return tuple(f"{stem}-{n:05d}-of-{count:05d}{end}" for n in range(1, count + 1))


def read(source: ByteSource, token: CancelToken) -> GgufHeader:
    """The header of one file.

    Raises:
        HeaderError: the header is malformed, or promises more than the file holds.
    """
    cursor = _Cursor(source, token)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise HeaderError(f"{source.name} is no GGUF file: it does not begin with GGUF.")
    version = cursor.number("<I")
    if version and not version & 0xFFFF:
        raise HeaderError(f"{source.name} is a big-endian GGUF file; only little-endian is read.")
    if version not in (2, 3):
        raise HeaderError(f"{source.name} is GGUF version {version}; versions 2 and 3 are read.")
    tensor_count, pair_count = cursor.number("<Q"), cursor.number("<Q")
    if tensor_count > _MAX_TENSORS or pair_count > _MAX_PAIRS:
        raise HeaderError(
            f"{source.name} claims {tensor_count:,} tensors and {pair_count:,} metadata "
            "entries, more than any model has."
        )
    metadata = _metadata(cursor, pair_count)
    table = [_table_row(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment % 8:
        raise HeaderError(f"{source.name}: general.alignment is {alignment!r:.40}.")
    start = align_up(cursor.position, alignment)
    _check_offsets(source, table, start, alignment)
    return GgufHeader(metadata, tuple(t for _, t in table), start)


def _metadata(cursor: _Cursor, count: int) -> dict[str, object]:
    kept: dict[str, object] = {}
    seen: set[str] = set()
    kept_bytes = 0
    for _ in range(count):
        key = cursor.name("a metadata key")
        if key in seen:
            raise cursor.refuse(f"names the metadata key {key[:80]!r} twice")
        seen.add(key)
        kind = cursor.number("<I")
        before = cursor.position
        if kind == _ARRAY:
            length, values = cursor.array(key)
            if values is None:
                kept[key + COUNT_SUFFIX] = length
                continue
            kept[key] = values
        elif kind == _TEXT:
            text = cursor.text()
            if text is None:
                continue
            kept[key] = text
        elif kind in _SCALARS:
            kept[key] = cursor.number(_SCALARS[kind])
        else:
            raise cursor.refuse(f"has metadata of the unknown type {kind} ({key[:80]!r})")
        kept_bytes += cursor.position - before + len(key)
        if kept_bytes > _MAX_KEPT_BYTES:
            raise cursor.refuse("has more metadata than any model")
    return kept


def _table_row(cursor: _Cursor) -> tuple[int, HeaderTensor]:
    """One tensor with its offset in the data."""
    name = cursor.name("a tensor name")
    axes = cursor.number("<I")
    if axes > _MAX_AXES:
        raise cursor.refuse(f"gives {name[:80]!r} {axes:,} axes, at most {_MAX_AXES} are allowed")
    shape = tuple(cursor.number("<Q") for _ in range(axes))
    number = cursor.number("<I")
    offset = cursor.number("<Q")
    kind = BY_NUMBER.get(number)
    if kind is None:
        raise cursor.refuse(f"stores {name[:80]!r} in the unknown type {number}")
    elements = prod(shape)
    if elements >= 2**63:
        raise cursor.refuse(f"makes {name[:80]!r} larger than any memory")
    blocks, rest = divmod(shape[0] if shape else 1, kind.elements)
    if rest:
        raise cursor.refuse(f"has rows of {name[:80]!r} that are no whole {kind.name} blocks")
    size = blocks * kind.size_bytes * prod(shape[1:])
    return offset, HeaderTensor(name, kind.name, shape, size)


def _check_offsets(
    source: ByteSource, table: list[tuple[int, HeaderTensor]], start: int, alignment: int
) -> None:
    """Each tensor begins where the one before ends, and the file is long enough.

    Raises:
        HeaderError: it isn't so, or a name occurs twice.
    """
    expected = end = 0
    names: set[str] = set()
    for offset, tensor in table:
        if tensor.name in names:
            raise HeaderError(f"{source.name} names the tensor {tensor.name[:80]!r} twice.")
        names.add(tensor.name)
        if offset != expected:
            raise HeaderError(
                f"{source.name}: the data of {tensor.name[:80]!r} begins at {offset:,}, "
                f"not at {expected:,} where the tensor before it ends."
            )
        end = offset + tensor.size_bytes
        expected = align_up(end, alignment)
    if start + end > source.size_bytes:
        raise HeaderError(
            f"{source.name} is cut short: its tensors end at byte {start + end:,}, "
            f"the file has {source.size_bytes:,}."
        )


class _Cursor:
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
    def position(self) -> int:
        return self._begin + self._at

    def refuse(self, why: str) -> HeaderError:
        return HeaderError(f"{self._source.name} {why}.")

    def _require(self, length: int) -> None:
        """Leave without reading if the header cannot hold ``length`` more bytes."""
        if length > self._limit - self.position:
            raise self.refuse(
                f"is cut short or lies about its header: {length:,} bytes are to follow "
                f"byte {self.position:,}, the file has {self._source.size_bytes:,}"
            )

    def _fill(self, length: int) -> None:
        self._token.raise_if_cancelled()
        self._begin, self._at = self.position, 0
        self._chunk = self._source.read_at(self._begin, max(length, self._CHUNK_BYTES))
        if len(self._chunk) < length:
            raise self.refuse("ended while its header was read")

    def take(self, length: int) -> bytes:
        self._require(length)
        if self._at + length > len(self._chunk):
            self._fill(length)
        taken = self._chunk[self._at : self._at + length]
        self._at += length
        return taken

    def skip(self, length: int) -> None:
        self._require(length)
        if self._at + length <= len(self._chunk):
            self._at += length
        else:
            self._begin, self._at, self._chunk = self.position + length, 0, b""

    def number(self, form: str) -> int:
        """One number; typed as the integer that most of them are."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def name(self, what: str) -> str:
        length = self.number("<Q")
        if length > _MAX_NAME_BYTES:
            raise self.refuse(f"has {what} of {length:,} bytes")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.refuse(f"has {what} that is not UTF-8") from None

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
        if kind == _TEXT:
            self._require(8 * length)
            if length > _MAX_TEXTS:
                raise self.refuse(f"has a list of {length:,} texts ({key[:80]!r})")
            self._skip_texts(length)
            return length, None
        if kind not in _SCALARS:
            raise self.refuse(f"has an array of the unknown type {kind} ({key[:80]!r})")
        form = _SCALARS[kind]
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


def joined(headers: Mapping[str, GgufHeader]) -> tuple[HeaderTensor, ...]:
    """Tensors of all parts of a model, in order.

    Raises:
        HeaderError: a tensor in two parts, or fewer than the first part promises.
    """
    tensors = tuple(tensor for header in headers.values() for tensor in header.tensors)
    if len({t.name for t in tensors}) != len(tensors):
        raise HeaderError(f"A tensor is in two parts of {next(iter(headers))}.")
    for name, header in headers.items():
        promised = header.metadata.get("split.tensors.count", len(tensors))
        if len(headers) > 1 and promised != len(tensors):
            raise HeaderError(f"{name} promises {promised} tensors, its parts have {len(tensors)}.")
    return tensors
