"""GGUF headers: scalar metadata and the tensor table, never the data.

Layout (little-endian): ``GGUF``, version, number of tensors, number of key-value pairs; the
pairs; the table of (name, axes, type, offset); padding; data, in which each tensor starts
at the next multiple of the alignment.

Source: ggml ``docs/gguf.md`` and ``gguf.cpp``, which refuses the same files.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import HeaderError
from engine.source.ggml_types import BY_NUMBER
from engine.source.gguf_cursor import ARRAY, SCALARS, TEXT, ByteSource, Cursor
from engine.source.raw import HeaderTensor
from engine.units import align_up
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.cancel import CancelToken

MAGIC = b"GGUF"
_MAX_TENSORS = 200_000
_MAX_PAIRS = 65_536
_MAX_KEPT_BYTES = 16 * 2**20
_MAX_AXES = 4
COUNT_SUFFIX = ".count"
_PART = re.compile(
    r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})(?P<end>\.gguf)$", re.IGNORECASE
)


class GgufHeader(NamedTuple):
    """What one GGUF file says about itself.

    ``metadata`` holds scalars, texts and short arrays of numbers as tuples; of the other
    arrays only the number of entries, under the key with ``.count`` after it.
    """

    metadata: Mapping[str, object]
    tensors: tuple[HeaderTensor, ...]
    header_bytes: int

    def __len__(self) -> int:
        return len(self.tensors)


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
    cursor = Cursor(source, token)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise HeaderError(
            tr("{name} is no GGUF file: it does not begin with GGUF.").format(name=source.name)
        )
    version = cursor.number("<I")
    if version and not version & 0xFFFF:
        raise HeaderError(
            tr("{name} is a big-endian GGUF file; only little-endian is read.").format(
                name=source.name
            )
        )
    if version not in (2, 3):
        raise HeaderError(
            tr("{name} is GGUF version {version}; versions 2 and 3 are read.").format(
                name=source.name, version=version
            )
        )
    tensor_count, pair_count = cursor.number("<Q"), cursor.number("<Q")
    if tensor_count > _MAX_TENSORS or pair_count > _MAX_PAIRS:
        raise HeaderError(
            tr(
                "{name} claims {tensor_count} tensors and {pair_count} "
                "metadata entries, more than any model has."
            ).format(
                name=source.name, tensor_count=grouped(tensor_count), pair_count=grouped(pair_count)
            )
        )
    metadata = _metadata(cursor, pair_count)
    table = [_table_row(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment % 8:
        raise HeaderError(
            tr("{name}: general.alignment is {alignment!r:.40}.").format(
                name=source.name, alignment=alignment
            )
        )
    start = align_up(cursor.position_bytes, alignment)
    _check_offsets(source, table, start, alignment)
    return GgufHeader(metadata, tuple(t for _, t in table), start)


def _metadata(cursor: Cursor, count: int) -> dict[str, object]:
    kept: dict[str, object] = {}
    seen: set[str] = set()
    kept_bytes = 0
    for _ in range(count):
        key = cursor.name(tr("a metadata key"))
        if key in seen:
            raise cursor.refuse(tr("names the metadata key {key!r} twice").format(key=key[:80]))
        seen.add(key)
        kind = cursor.number("<I")
        before = cursor.position_bytes
        if kind == ARRAY:
            length, values = cursor.array(key)
            if values is None:
                kept[key + COUNT_SUFFIX] = length
                continue
            kept[key] = values
        elif kind == TEXT:
            text = cursor.text()
            if text is None:
                continue
            kept[key] = text
        elif kind in SCALARS:
            kept[key] = cursor.number(SCALARS[kind])
        else:
            raise cursor.refuse(
                tr("has metadata of the unknown type {kind} ({key!r})").format(
                    kind=kind, key=key[:80]
                )
            )
        kept_bytes += cursor.position_bytes - before + len(key)
        if kept_bytes > _MAX_KEPT_BYTES:
            raise cursor.refuse(tr("has more metadata than any model"))
    return kept


def _table_row(cursor: Cursor) -> tuple[int, HeaderTensor]:
    """One tensor with its offset in the data."""
    name = cursor.name(tr("a tensor name"))
    axes = cursor.number("<I")
    if axes > _MAX_AXES:
        raise cursor.refuse(
            tr("gives {name!r} {axes} axes, at most {max_axes} are allowed").format(
                name=name[:80], axes=grouped(axes), max_axes=_MAX_AXES
            )
        )
    shape = tuple(cursor.number("<Q") for _ in range(axes))
    number = cursor.number("<I")
    offset = cursor.number("<Q")
    kind = BY_NUMBER.get(number)
    if kind is None:
        raise cursor.refuse(
            tr("stores {name!r} in the unknown type {number}").format(name=name[:80], number=number)
        )
    elements = prod(shape)
    if elements >= 2**63:
        raise cursor.refuse(tr("makes {name!r} larger than any memory").format(name=name[:80]))
    blocks, rest = divmod(shape[0] if shape else 1, kind.elements)
    if rest:
        raise cursor.refuse(
            tr("has rows of {name!r} that are no whole {name_2} blocks").format(
                name=name[:80], name_2=kind.name
            )
        )
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
            raise HeaderError(
                tr("{name} names the tensor {name_2!r} twice.").format(
                    name=source.name, name_2=tensor.name[:80]
                )
            )
        names.add(tensor.name)
        if offset != expected:
            raise HeaderError(
                tr(
                    "{name}: the data of {name_2!r} begins at {offset}, not "
                    "at {expected} where the tensor before it ends."
                ).format(
                    name=source.name,
                    name_2=tensor.name[:80],
                    offset=grouped(offset),
                    expected=grouped(expected),
                )
            )
        end = offset + tensor.size_bytes
        expected = align_up(end, alignment)
    if start + end > source.size_bytes:
        raise HeaderError(
            tr(
                "{name} is cut short: its tensors end at byte {start}, the file has {size_bytes}."
            ).format(
                name=source.name, start=grouped(start + end), size_bytes=grouped(source.size_bytes)
            )
        )


def joined(headers: Mapping[str, GgufHeader]) -> tuple[HeaderTensor, ...]:
    """Tensors of all parts of a model, in order.

    Raises:
        HeaderError: a tensor in two parts, or fewer than the first part promises.
    """
    tensors = tuple(tensor for header in headers.values() for tensor in header.tensors)
    if len({t.name for t in tensors}) != len(tensors):
        raise HeaderError(
            tr("A tensor is in two parts of {next}.").format(next=next(iter(headers)))
        )
    for name, header in headers.items():
        promised = header.metadata.get("split.tensors.count", len(tensors))
        if len(headers) > 1 and promised != len(tensors):
            raise HeaderError(
                tr("{name} promises {promised} tensors, its parts have {tensors}.").format(
                    name=name, promised=promised, tensors=len(tensors)
                )
            )
    return tensors
