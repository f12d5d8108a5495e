"""Safetensors headers: names, dtypes and shapes of the tensors, never their data.

Layout of a file: eight bytes with the length n of the header (little-endian), n bytes of
JSON ``{name: {dtype, shape, data_offsets}}``, then the data, which the tensors cover
without gap or overlap.

Source: the format's specification in the safetensors repository, and its reference reader
(``tensor.rs``), which refuses the same files.
"""

from __future__ import annotations

import gc
import json
import re
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, cast

from engine.errors import HeaderError
from engine.source.bounded_json import parse_object
from engine.source.raw import HeaderTensor
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import BinaryIO

MAX_HEADER_BYTES = 25_000_000
"""The client library refuses longer ones; so does the reference reader (100 MB there)."""
LENGTH_BYTES = 8
_METADATA = "__metadata__"
_FIELDS = (b'"dtype"', b'"shape"', b'"data_offsets"')
_MAX_AXES = 32
_MAX_ELEMENTS = 2**63 - 1

DTYPE_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
"""Bits of one element (safetensors 0.8, ``Dtype::bitsize``)."""


def header_bytes(first: bytes, file_bytes: int, name: str) -> int:
    """Length of the JSON header that ``first``, the start of the file, announces.

    Raises:
        HeaderError: the file is too short, or the length cannot be true.
    """
    if len(first) < LENGTH_BYTES:
        raise HeaderError(
            tr("{name} is too short for a safetensors file ({file_bytes} bytes).").format(
                name=name, file_bytes=file_bytes
            )
        )
    length = int.from_bytes(first[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise HeaderError(
            tr(
                "{name} is no safetensors file: it announces a header of "
                "{length} bytes, more than the {max_header_bytes} allowed."
            ).format(name=name, length=grouped(length), max_header_bytes=grouped(MAX_HEADER_BYTES))
        )
    if LENGTH_BYTES + length > file_bytes:
        raise HeaderError(
            tr(
                "{name} is cut short: its header is to take {length} bytes, "
                "the whole file has {file_bytes}."
            ).format(name=name, length=grouped(length), file_bytes=grouped(file_bytes))
        )
    return length


def parse(header: bytes, data_bytes: int, name: str) -> tuple[HeaderTensor, ...]:
    """Tensors of one file, in the order of their data.

    Args:
        header: the JSON part.
        data_bytes: what follows the header in the file.
        name: the file, for messages.

    Raises:
        HeaderError: the header is malformed, or disagrees with itself or the file's size.
    """
    if header[:1] != b"{":
        raise HeaderError(
            tr("{name} is no safetensors file: its header is not a JSON object.").format(name=name)
        )
    what = tr("The header of {name}").format(name=name)
    with _no_search_for_cycles():
        quick = _as_written(header, name)
        if quick is not None:
            return _in_place(quick, data_bytes, name)
        table = parse_object(header, what, HeaderError)
        entries = len(table) - (_METADATA in table)
        if any(header.count(field) != entries for field in _FIELDS):
            # A key may stand there twice: looked for only where the numbers don't agree.
            table = parse_object(header, what, HeaderError, unique_keys=True)
        return tensors(table, data_bytes, name)


@contextmanager
def _no_search_for_cycles() -> Generator[None]:
    """A header makes hundreds of thousands of objects and no cycle: the search doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def tensors(
    table: Mapping[str, object], data_bytes: int | None, name: str
) -> tuple[HeaderTensor, ...]:
    """Tensors of a header that is already parsed; ``data_bytes`` None where it isn't known.

    Raises:
        HeaderError: as ``parse``.
    """
    return _in_place(_placed(table, name), data_bytes, name)


def _in_place(
    placed: list[tuple[int, HeaderTensor]], data_bytes: int | None, name: str
) -> tuple[HeaderTensor, ...]:
    """The tensors, once their data are known to lie one behind the other to the end."""
    end = 0
    for begin, tensor in placed:
        if begin != end:
            what = tr("overlaps the one before it") if begin < end else tr("leaves a gap before it")
            raise HeaderError(
                tr("{name}: the data of {name_2!r} {what}.").format(
                    name=name, name_2=tensor.name, what=what
                ),
                field=tensor.name,
            )
        end += tensor.size_bytes
    if data_bytes is not None and end != data_bytes:
        state = tr("is cut short") if end > data_bytes else tr("is longer than its header says")
        raise HeaderError(
            tr(
                "{name} {state}: its tensors take {end} bytes, the file has {data_bytes} for them."
            ).format(name=name, state=state, end=grouped(end), data_bytes=grouped(data_bytes))
        )
    return tuple([tensor for _, tensor in placed])


_ENTRY = re.compile(
    rb'"([^"\\\x00-\x1f]+)":\{"dtype":"([A-Z0-9_]+)","shape":\[((?:\d+,)*\d+|)\],'
    rb'"data_offsets":\[(\d{1,19}),(\d{1,19})\]\}'
)
_ENTRY_BYTES = len(b'"":{"dtype":"","shape":[],"data_offsets":[,]}')


def _as_written(header: bytes, name: str) -> list[tuple[int, HeaderTensor]] | None:
    """The entries of a header in the form in which the library writes it, which most have.

    Read by one expression, in half the time of a parser of any JSON; None for every other form,
    and for what is wrong in this one.
    """
    first = _ENTRY.search(header)
    if first is None or not _is_start(header[: first.start()]):
        return None
    entries = _ENTRY.findall(header)
    found: list[tuple[int, HeaderTensor]] = []
    known: dict[tuple[bytes, bytes], tuple[int, str, tuple[int, ...], int]] = {}
    covered, expected, in_order = first.start() + len(entries), 0, True
    for key, dtype, shape, begin, end in entries:
        start, stop = int(begin), int(end)
        like = known.get((dtype, shape))
        if like is None:
            sizes = [int(n) for n in shape.split(b",")] if shape else []
            fields = {"dtype": dtype.decode(), "shape": sizes, "data_offsets": [start, stop]}
            _, tensor = _entry(key.decode(errors="replace"), fields, name)
            fixed = len(dtype) + len(shape) + _ENTRY_BYTES
            like = known[dtype, shape] = tensor.size_bytes, tensor.dtype, tensor.shape, fixed
        size_bytes, word, axes, fixed = like
        if stop - start != size_bytes:
            return None
        covered += fixed + len(key) + len(begin) + len(end)
        try:
            found.append((start, HeaderTensor(key.decode(), word, axes, size_bytes)))
        except UnicodeDecodeError:
            return None
        in_order = in_order and start == expected
        expected += size_bytes
    # Every byte belongs to an entry, to a comma between two or to the braces.
    text = header.rstrip(b" ")
    commas = text.count(b']},"') == len(found) - 1 and text.endswith(b"]}}")
    if covered != len(text) or not commas or len({t.name for _, t in found}) != len(found):
        return None
    if not in_order:
        found.sort(key=lambda item: (item[0], item[1].size_bytes))
    return found


def _is_start(before: bytes) -> bool:
    """Whether nothing but a brace and the metadata stands before the first entry."""
    if before == b"{":
        return True
    if not before.startswith(b'{"__metadata__":') or not before.endswith(b","):
        return False
    try:
        parsed: object = json.loads(before[:-1] + b"}")
    except ValueError:
        return False
    return isinstance(parsed, dict) and len(cast("dict[str, object]", parsed)) == 1


def _placed(table: Mapping[str, object], name: str) -> list[tuple[int, HeaderTensor]]:
    """(first byte, tensor) of every entry, in the order of their data.

    Most tensors have dtype and shape of one before: of those only the place is looked at.
    """
    found: list[tuple[int, HeaderTensor]] = []
    known: dict[tuple[object, object], tuple[int, str, tuple[int, ...]]] = {}
    expected, in_order = 0, True
    for key, entry in cast("dict[str, Any]", table).items():
        if key == _METADATA:
            continue
        try:
            begin, end = entry["data_offsets"]
            size_bytes, dtype, shape = known[entry["dtype"], tuple(entry["shape"])]
            fits = type(begin) is int and begin >= 0 and end - begin == size_bytes
        except (TypeError, KeyError, ValueError):
            fits = False
        if fits:
            tensor = HeaderTensor(key, dtype, shape, size_bytes)  # pyright: ignore[reportPossiblyUnboundVariable]
        else:
            begin, tensor = _entry(key, entry, name)
            size_bytes = tensor.size_bytes
            known[tensor.dtype, tensor.shape] = size_bytes, tensor.dtype, tensor.shape
        in_order = in_order and begin == expected  # pyright: ignore[reportPossiblyUnboundVariable]
        expected += size_bytes  # pyright: ignore[reportPossiblyUnboundVariable]
        found.append((begin, tensor))  # pyright: ignore[reportPossiblyUnboundVariable]
    if not in_order:
        found.sort(key=lambda item: (item[0], item[1].size_bytes))
    return found


def _entry(key: str, entry: object, name: str) -> tuple[int, HeaderTensor]:
    def refuse(why: str) -> HeaderError:
        return HeaderError(
            tr("{name}: the entry of {key!r} {why}.").format(name=name, key=key[:120], why=why),
            field=key[:120],
        )

    if not isinstance(entry, dict):
        raise refuse(tr("is not an object"))
    fields = cast("dict[str, object]", entry)
    dtype = fields.get("dtype")
    bits = DTYPE_BITS.get(dtype) if isinstance(dtype, str) else None
    if not isinstance(dtype, str) or bits is None:
        raise refuse(tr("has an unknown dtype ({dtype!r:.40})").format(dtype=dtype))
    shape = _integers(fields.get("shape"))
    offsets = _integers(fields.get("data_offsets"))
    if shape is None or len(shape) > _MAX_AXES:
        raise refuse(tr("has no shape of whole numbers"))
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise refuse(tr("has no data_offsets [begin, end]"))
    elements = prod(shape)
    if elements > _MAX_ELEMENTS or offsets[1] > _MAX_ELEMENTS:
        raise refuse(tr("is larger than any memory"))
    whole_bytes, rest = divmod(elements * bits, 8)
    if rest or offsets[1] - offsets[0] != whole_bytes:
        raise refuse(
            tr("claims {offsets} bytes, but {dtype} of shape {list} takes {whole_bytes}").format(
                offsets=grouped(offsets[1] - offsets[0]),
                dtype=dtype,
                list=list(shape),
                whole_bytes=grouped(whole_bytes),
            )
        )
    return offsets[0], HeaderTensor(key, dtype, shape, whole_bytes)


def _integers(value: object) -> tuple[int, ...] | None:
    """``value`` as a tuple of non-negative integers; None where it is anything else."""
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)
    if not all(type(item) is int and item >= 0 for item in items):
        return None
    return tuple(cast("list[int]", items))


def read(file: BinaryIO, file_bytes: int, name: str) -> tuple[HeaderTensor, ...]:
    """Tensors of an open file; reads the header only.

    Raises:
        HeaderError: the header is malformed, or disagrees with the file's size.
    """
    length = header_bytes(file.read(LENGTH_BYTES), file_bytes, name)
    header = file.read(length)
    if len(header) != length:
        raise HeaderError(tr("{name} ended while its header was read.").format(name=name))
    return parse(header, file_bytes - LENGTH_BYTES - length, name)
