import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from engine.errors import HeaderError
from engine.source import safetensors


def blob(table, data=b"", length=None):
    header = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def read(raw):
    return safetensors.read(io.BytesIO(raw), len(raw), "model.safetensors")


def entry(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def test_that_a_file_of_the_reference_library_reads_back_with_names_shapes_and_bytes(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(
        {
            "a": np.zeros((3, 4), np.float32),
            "b": np.zeros((5,), np.float16),
            "c": np.zeros((), np.int8),
            "empty": np.zeros((0, 7), np.float32),
        },
        path,
    )
    with path.open("rb") as file:
        found = safetensors.read(file, path.stat().st_size, path.name)
    assert {(t.name, t.dtype, t.shape, t.size_bytes) for t in found} == {
        ("a", "F32", (3, 4), 48),
        ("b", "F16", (5,), 10),
        ("c", "I8", (), 1),
        ("empty", "F32", (0, 7), 0),
    }


def test_that_four_bit_elements_take_half_a_byte():
    raw = blob({"w": entry("F4", (3, 4), 0, 6), "s": entry("F8_E8M0", (3,), 6, 9)}, b"\0" * 9)
    assert [(t.name, t.size_bytes) for t in read(raw)] == [("w", 6), ("s", 3)]


def test_that_metadata_is_no_tensor():
    assert read(blob({"__metadata__": {"format": "pt"}, "w": entry()}, b"\0" * 8))[0].name == "w"


BAD = {
    "empty file": b"",
    "three bytes": b"abc",
    "length past the end": blob({}, length=10**6),
    "length 2^63": blob({}, length=2**63),
    "length above the limit": blob({}, length=25_000_001),
    "not JSON": blob(b"{nonsense}"),
    "not UTF-8": blob(b'{"\xff": 1}'),
    "a list": blob(b"[1]"),
    "deep nesting": blob(b'{"a":' * 100_000),
    "entry not an object": blob({"w": 3}),
    "unknown dtype": blob({"w": entry("Q9")}, b"\0" * 8),
    "dtype not a text": blob({"w": entry(7)}, b"\0" * 8),
    "negative axis": blob({"w": entry(shape=(-2,))}, b"\0" * 8),
    "axis not whole": blob({"w": entry(shape=(2.0,))}, b"\0" * 8),
    "axis a truth value": blob({"w": entry(shape=(True, 2))}, b"\0" * 8),
    "axis 2^63": blob({"w": entry(shape=(2**63,))}, b"\0" * 8),
    "axes whose product overflows": blob({"w": entry(shape=(2**32, 2**32))}, b"\0" * 8),
    "negative offset": blob({"w": entry(begin=-8, end=0)}, b"\0" * 8),
    "offsets the wrong way": blob({"w": entry(begin=8, end=0)}, b"\0" * 8),
    "offset 2^64": blob({"w": entry(begin=2**64, end=2**64 + 8)}, b"\0" * 8),
    "bytes disagree with the shape": blob({"w": entry(end=4)}, b"\0" * 4),
    "overlap": blob({"v": entry(), "w": entry(begin=4, end=12)}, b"\0" * 12),
    "gap": blob({"v": entry(), "w": entry(begin=16, end=24)}, b"\0" * 24),
    "tensors past the end": blob({"w": entry()}, b"\0" * 4),
    "data left over": blob({"w": entry()}, b"\0" * 9),
    "name twice": blob(
        b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
        b'"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        b"\0" * 8,
    ),
    "half a byte": blob({"w": entry("F4", (3,), 0, 1)}, b"\0"),
    "millions of values": blob(b'{"a":[' + b"[]," * 2_500_000 + b"[]]}"),
    "a number of 5,000 digits": blob(b'{"w":' + b"1" * 5000 + b"}"),
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_that_a_header_which_lies_is_refused_in_one_sentence(raw):
    with pytest.raises(HeaderError) as caught:
        read(raw)
    message = caught.value.message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 400
    assert "model.safetensors" in message


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_that_arbitrary_bytes_give_a_header_error_or_tensors_that_cover_the_file(raw):
    try:
        found = read(raw)
    except HeaderError:
        return
    header = int.from_bytes(raw[:8], "little")
    assert sum(t.size_bytes for t in found) == len(raw) - 8 - header


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["F32", "BF16", "U8", "I64"]), st.lists(st.integers(0, 9), max_size=5)
        )
    ),
    st.integers(0, 10_000),
    st.binary(min_size=1, max_size=3),
)
def test_that_a_damaged_header_is_never_read_as_more_than_the_file_holds(items, place, damage):
    sizes = {"F32": 4, "BF16": 2, "U8": 1, "I64": 8}
    table, end = {}, 0
    for n, (dtype, shape) in enumerate(items):
        size = int(np.prod(shape, dtype=object)) * sizes[dtype] if shape else sizes[dtype]
        if end + size > 2**20:
            continue
        table[f"t{n}"] = entry(dtype, shape, end, end + size)
        end += size
    whole = blob(table, b"\0" * end)
    assert sum(t.size_bytes for t in read(whole)) == end
    at = place % len(whole)
    broken = whole[:at] + damage + whole[at + len(damage) :]
    try:
        found = read(broken)
    except HeaderError:
        return
    assert sum(t.size_bytes for t in found) <= len(broken)


def compact(table):
    """As the reference library writes a header: no spaces, padded to eight bytes."""
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)


NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
SHAPES = st.lists(st.integers(0, 5), max_size=3)


@given(st.dictionaries(NAMES, SHAPES, min_size=1, max_size=8), st.booleans(), st.randoms())
def test_that_a_header_reads_the_same_in_the_librarys_form_and_in_any_other(
    shapes, has_metadata, chance
):
    table, end = {}, 0
    for name, shape in shapes.items():
        size_bytes = 2 * int(np.prod(shape, dtype=int))
        if name != "__metadata__":
            table[name] = entry("BF16", shape, end, end + size_bytes)
            end += size_bytes
    names = list(table)
    chance.shuffle(names)
    table = {name: table[name] for name in names}
    if has_metadata:
        table = {"__metadata__": {"format": "pt", "x": 'a":{"dtype"'}} | table
    if table:
        data = b"\0" * end
        loose = json.dumps(table, indent=1).encode()
        assert read(blob(compact(table), data)) == read(blob(loose, data))


@pytest.mark.parametrize(
    "spoilt",
    [
        (b'},"', b'};"'),
        (b"]}}", b"]}"),
        (b'"b":', b'"a":'),
        (b'"b":', b'"\xff":'),
        (b'{"a"', b'{"x":1,"a"'),
        (b"[8,16]", b"[8,17]"),
    ],
)
def test_that_a_spoilt_header_in_the_librarys_form_is_refused(spoilt):
    text = compact({"a": entry("F32", (2,), 0, 8), "b": entry("F32", (2,), 8, 16)})
    before, after = spoilt
    assert before in text
    raw = text.replace(before, after, 1)
    with pytest.raises(HeaderError):
        read(blob(raw, b"\0" * 16))
