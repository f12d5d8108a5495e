import io
import struct

import gguf as reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import HeaderError
from engine.source import gguf
from engine.source.ggml_types import BY_NUMBER
from engine.source.gguf_cursor import FileSource


def read(raw, name="model.gguf", token=None):
    return gguf.read(FileSource(io.BytesIO(raw), len(raw), name), token or CancelToken())


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def row(name, shape=(4,), kind=0, offset=0):
    axes = struct.pack(f"<{len(shape)}Q", *shape)
    return text(name) + struct.pack("<I", len(shape)) + axes + struct.pack("<IQ", kind, offset)


def blob(pairs=(), rows=(), data=b"", version=3, tensors=None, count=None):
    head = struct.pack(
        "<4sIQQ",
        b"GGUF",
        version,
        len(rows) if tensors is None else tensors,
        len(pairs) if count is None else count,
    )
    head += b"".join(pairs) + b"".join(rows)
    return head + b"\0" * (-len(head) % 32) + data


def test_that_the_type_table_agrees_with_the_gguf_package():
    theirs = {int(kind): (kind.name, *n) for kind, n in reference.GGML_QUANT_SIZES.items()}
    # ggml-common.h of October 2026: 64 values of 2 bits and a half float.
    theirs[42] = ("Q2_0", 64, 18)
    assert {n: (t.name, t.elements, t.size_bytes) for n, t in BY_NUMBER.items()} == theirs


def test_that_a_file_of_the_gguf_package_reads_back(tmp_path):
    path = tmp_path / "model.gguf"
    writer = reference.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_bool("llama.something", val=True)
    writer.add_array("llama.attention.head_count_kv", [8, 4])
    writer.add_token_list([f"token {n}" for n in range(5000)])
    writer.add_token_scores([0.0] * 5000)
    writer.add_tensor("token_embd.weight", np.zeros((10, 64), np.float32))
    writer.add_tensor("output_norm.weight", np.zeros(64, np.float16))
    quantised = reference.quants.quantize(
        np.zeros((3, 256), np.float32), reference.GGMLQuantizationType.Q8_0
    )
    writer.add_tensor("blk.0.w", quantised, raw_dtype=reference.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    header = read(path.read_bytes())

    assert [(t.name, t.dtype, t.shape, t.size_bytes) for t in header.tensors] == [
        ("token_embd.weight", "F32", (64, 10), 2560),
        ("output_norm.weight", "F16", (64,), 128),
        ("blk.0.w", "Q8_0", (256, 3), 3 * 8 * 34),
    ]
    assert header.metadata["general.architecture"] == "llama"
    assert header.metadata["llama.block_count"] == 2
    assert header.metadata["llama.something"] is True
    assert header.metadata["llama.attention.head_count_kv"] == (8, 4)
    assert header.metadata["tokenizer.ggml.tokens.count"] == 5000
    assert header.metadata["tokenizer.ggml.scores.count"] == 5000
    assert "tokenizer.ggml.tokens" not in header.metadata
    their = reference.GGUFReader(path)
    assert header.header_bytes == their.data_offset


def test_that_version_2_reads_as_version_3():
    raw = blob([pair("general.architecture", 8, text("llama"))], [row("w")], b"\0" * 16, version=2)
    assert read(raw).tensors[0].size_bytes == 16


def test_that_a_vocabulary_larger_than_a_chunk_is_passed_over():
    words = [b"w" * (n % 300) for n in range(20_000)]
    array = struct.pack("<IQ", 8, len(words)) + b"".join(map(text, words))
    raw = blob([pair("tokenizer.ggml.tokens", 9, array), pair("x.y", 4, struct.pack("<I", 7))])
    assert read(raw).metadata == {"tokenizer.ggml.tokens.count": 20_000, "x.y": 7}


def test_that_a_cancelled_token_stops_the_reading():
    token = CancelToken()
    token.cancel()
    with pytest.raises(JobCancelledError):
        read(blob(), token=token)


BAD = {
    "empty": b"",
    "another file": b"PK\3\4" + b"\0" * 100,
    "only the magic": b"GGUF",
    "version 1": blob(version=1),
    "version 9": blob(version=9),
    "big-endian": struct.pack(">4sIQQ", b"GGUF", 3, 0, 0) + b"\0" * 64,
    "2^63 tensors": blob(tensors=2**63),
    "2^63 pairs": blob(count=2**63),
    "more pairs than there are": blob(count=5),
    "more tensors than there are": blob(tensors=5),
    "key length past the end": blob([struct.pack("<Q", 2**40)]),
    "key not UTF-8": blob([pair(b"\xff\xfe", 4, b"\0" * 4)]),
    "key twice": blob([pair("a", 4, b"\0" * 4)] * 2),
    "unknown metadata type": blob([pair("a", 77, b"\0" * 64)]),
    "text past the end": blob([pair("a", 8, struct.pack("<Q", 2**62))]),
    "long text past the end": blob([pair("a", 8, struct.pack("<Q", 2**21))]),
    "array of 2^63 numbers": blob([pair("a", 9, struct.pack("<IQ", 4, 2**63))]),
    "array of 2^61 texts": blob([pair("a", 9, struct.pack("<IQ", 8, 2**61))]),
    "array of arrays": blob([pair("a", 9, struct.pack("<IQ", 9, 1) + b"\0" * 64)]),
    "text in an array past the end": blob(
        [pair("a", 9, struct.pack("<IQ", 8, 2) + text("b") + struct.pack("<Q", 2**63))]
    ),
    "five axes": blob(rows=[row("w", (1, 1, 1, 1, 1))], data=b"\0" * 64),
    "2^32 axes": blob(rows=[text("w") + struct.pack("<I", 2**32 - 1)], data=b"\0" * 64),
    "product overflows": blob(rows=[row("w", (2**32, 2**32))], data=b"\0" * 64),
    "unknown tensor type": blob(rows=[row("w", kind=4)], data=b"\0" * 64),
    "half a block": blob(rows=[row("w", (33,), kind=8)], data=b"\0" * 64),
    "offset past its place": blob(rows=[row("w", offset=64)], data=b"\0" * 128),
    "overlap": blob(rows=[row("v", (64,)), row("w", (64,), offset=32)], data=b"\0" * 512),
    "data cut short": blob(rows=[row("w", (64,))], data=b"\0" * 255),
    "tensor twice": blob(rows=[row("w"), row("w", offset=32)], data=b"\0" * 64),
    "alignment 0": blob([pair("general.alignment", 4, struct.pack("<I", 0))]),
    "alignment a text": blob([pair("general.alignment", 8, text("32"))]),
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_that_a_header_which_lies_is_refused_in_one_sentence(raw):
    with pytest.raises(HeaderError) as caught:
        read(raw)
    message = caught.value.message
    assert message.endswith(".")
    assert "\n" not in message
    assert "model.gguf" in message


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([2, 3]), st.integers(0, 3), st.integers(0, 3))
def test_that_arbitrary_bytes_after_the_magic_give_a_header_error_or_a_header(
    tail, version, tensors, pairs
):
    raw = struct.pack("<4sIQQ", b"GGUF", version, tensors, pairs) + tail
    try:
        header = read(raw)
    except HeaderError:
        return
    assert sum(t.size_bytes for t in header.tensors) <= len(raw)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_that_a_damaged_file_gives_a_header_error_or_no_more_than_it_holds(place, damage):
    whole = blob(
        [pair("general.architecture", 8, text("llama")), pair("n", 4, struct.pack("<I", 3))],
        [row("a", (32, 2), 8), row("b", (5,), 0, 96)],
        b"\0" * 128,
    )
    at = place % len(whole)
    raw = whole[:at] + damage + whole[at + len(damage) :]
    try:
        header = read(raw)
    except HeaderError:
        return
    assert sum(t.size_bytes for t in header.tensors) <= len(raw)


def test_that_the_parts_of_a_split_model_are_named_from_any_one_of_them():
    assert gguf.parts_of("m-Q4_K_M-00002-of-00003.gguf") == (
        "m-Q4_K_M-00001-of-00003.gguf",
        "m-Q4_K_M-00002-of-00003.gguf",
        "m-Q4_K_M-00003-of-00003.gguf",
    )
    assert gguf.parts_of("m.gguf") == ("m.gguf",)
