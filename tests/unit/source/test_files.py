import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import ConfigError, HeaderError, PlimsollError, SourceError
from engine.source import files, shards

CONFIG = {"model_type": "llama", "hidden_size": 8}
SHARED = Path(__file__).resolve().parents[3].parent / "shared"


def read(path):
    return files.read(path, CancelToken())


def sharded(folder, parts=3):
    """A folder as transformers saves it: ``parts`` shards of one 4 x 8 tensor each."""
    weight_map = {}
    for n in range(1, parts + 1):
        name = f"model-{n:05d}-of-{parts:05d}.safetensors"
        save_file({f"layers.{n}.w": np.zeros((4, 8), np.float32)}, folder / name)
        weight_map[f"layers.{n}.w"] = name
    index = {"metadata": {"total_size": parts * 128}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def gguf_part(path, names, pairs=()):
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(names), len(pairs)) + b"".join(pairs)
    for n, name in enumerate(names):
        raw = name.encode()
        head += struct.pack(f"<Q{len(raw)}sIQIQ", len(raw), raw, 1, 8, 0, 32 * n)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + b"\0" * 32 * len(names))


def test_that_a_config_is_read_under_the_name_of_its_folder(tmp_path):
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    raw = read(folder / "config.json")
    assert (raw.id, raw.source, raw.config) == ("tiny-llama", "config.json", CONFIG)
    assert read(folder).config == CONFIG


@pytest.mark.parametrize("config", ["", "config.json"])
def test_that_no_name_of_a_folder_can_reorder_or_steer_what_is_said(tmp_path, config):
    folder = tmp_path / "tiny\u202egnp\x1b[31m"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    assert read(folder / config).id == "tiny\\u202egnp\\x1b[31m"


def test_that_a_config_with_another_name_goes_by_that_name(tmp_path):
    path = tmp_path / "my-model.json"
    path.write_text("\ufeff" + json.dumps(CONFIG), encoding="utf-8")
    assert (read(path).id, read(path).config) == ("my-model", CONFIG)


def test_that_all_shards_of_a_folder_are_summed(tmp_path):
    raw = read(sharded(tmp_path))
    assert raw.config == CONFIG
    assert sum(t.size_bytes for t in raw.tensors) == 3 * 128
    assert raw.file_bytes == sum(p.stat().st_size for p in tmp_path.glob("*.safetensors"))
    assert raw.tensors_source == "headers of 3 safetensors files"


def test_that_opening_one_shard_opens_the_model(tmp_path):
    shard = sharded(tmp_path) / "model-00002-of-00003.safetensors"
    assert len(read(shard).tensors) == 3


def test_that_opening_the_index_opens_the_model(tmp_path):
    assert len(read(sharded(tmp_path) / "model.safetensors.index.json").tensors) == 3


def test_that_a_single_file_brings_the_config_beside_it(tmp_path):
    save_file({"w": np.zeros(4, np.float32)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    raw = read(tmp_path / "model.safetensors")
    assert (raw.config, raw.tensors[0].size_bytes) == (CONFIG, 16)


def test_that_missing_shards_leave_a_note_and_the_config(tmp_path):
    sharded(tmp_path)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    raw = read(tmp_path)
    assert raw.tensors == ()
    assert "1 of 3 weight files are missing" in raw.notes[0]


def test_that_missing_shards_without_a_config_are_an_error(tmp_path):
    sharded(tmp_path)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    (tmp_path / "config.json").unlink()
    with pytest.raises(HeaderError, match="1 of 3 weight files are missing"):
        read(tmp_path)


def test_that_git_lfs_pointers_count_as_missing(tmp_path):
    sharded(tmp_path)
    pointer = tmp_path / "model-00001-of-00003.safetensors"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert "missing" in read(tmp_path).notes[0]


def test_that_a_shard_which_was_cut_short_is_an_error(tmp_path):
    shard = sharded(tmp_path) / "model-00003-of-00003.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(HeaderError, match="cut short"):
        read(tmp_path)


def test_that_an_index_which_the_headers_contradict_is_an_error(tmp_path):
    index = sharded(tmp_path) / "model.safetensors.index.json"
    lying = json.loads(index.read_text())
    lying["weight_map"]["layers.9.w"] = "model-00001-of-00003.safetensors"
    index.write_text(json.dumps(lying))
    with pytest.raises(HeaderError, match=r"layers\.9\.w"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a/b.safetensors", 7])
def test_that_an_index_cannot_point_outside_its_folder(tmp_path, name):
    index = sharded(tmp_path) / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(HeaderError, match="points to"):
        read(tmp_path)


def test_that_shards_without_an_index_are_found_by_their_numbers(tmp_path):
    (sharded(tmp_path) / "model.safetensors.index.json").unlink()
    assert len(read(tmp_path).tensors) == 3
    (tmp_path / "model-00001-of-00003.safetensors").unlink()
    assert "missing" in read(tmp_path).notes[0]


def test_that_reading_ends_where_the_shards_hold_more_tensors_than_any_model(tmp_path, monkeypatch):
    sharded(tmp_path)
    monkeypatch.setattr(shards, "MAX_TENSORS", 2)
    with pytest.raises(HeaderError, match="more than 2 tensors"):
        read(tmp_path)


def test_that_the_parts_of_a_split_gguf_are_joined_from_any_part(tmp_path):
    for n in (1, 2):
        gguf_part(tmp_path / f"m-0000{n}-of-00002.gguf", [f"a{n}", f"b{n}"])
    raw = read(tmp_path / "m-00002-of-00002.gguf")
    assert [t.name for t in raw.tensors] == ["a1", "b1", "a2", "b2"]
    assert raw.file_bytes == sum(p.stat().st_size for p in tmp_path.iterdir())
    assert read(tmp_path).id == "m"
    (tmp_path / "m-00001-of-00002.gguf").unlink()
    with pytest.raises(HeaderError, match=r"m-00001-of-00002\.gguf"):
        read(tmp_path / "m-00002-of-00002.gguf")


def test_that_a_folder_of_several_gguf_models_asks_for_one(tmp_path):
    for name in ("a", "b", "mmproj-a"):
        gguf_part(tmp_path / f"{name}.gguf", ["w"])
    with pytest.raises(SourceError, match="2 GGUF models") as caught:
        read(tmp_path)
    assert "mmproj" not in caught.value.message


def test_that_a_gguf_file_is_known_by_its_content(tmp_path):
    gguf_part(tmp_path / "sha256-0123", ["w"])
    assert read(tmp_path / "sha256-0123").tensors[0].dtype == "F32"


def test_that_a_hub_cache_tells_repository_and_commit(tmp_path):
    snapshot = tmp_path / "models--org--name" / "snapshots" / ("0123456789" * 4)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(CONFIG))
    for path in (snapshot, snapshot / "config.json"):
        assert (read(path).id, read(path).revision) == ("org/name", "0123456789" * 4)


BAD_TEXT = {
    "empty": b"",
    "not JSON": b"{model_type: llama}",
    "cut short": b'{"model_type": "llama", ',
    "a list": b"[1, 2]",
    "a text": b'"llama"',
    "null": b"null",
    "deep nesting": b'{"a":' * 200_000,
    "deep lists": b'{"a":' + b"[" * 200_000,
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "binary": bytes(range(256)) * 20,
    "a number of 10,000 digits": b'{"a": ' + b"9" * 10_000 + b"}",
    "millions of values": b'{"a": [' + b"0," * 2_100_000 + b"0]}",
}


@pytest.mark.parametrize("content", BAD_TEXT.values(), ids=BAD_TEXT)
def test_that_a_config_which_is_none_gets_one_sentence(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises((ConfigError, SourceError)) as caught:
        read(path)
    assert caught.value.message.endswith(".")
    assert "\n" not in caught.value.message
    assert "config.json" in caught.value.message


def test_that_a_config_of_a_gigabyte_is_refused_unread(tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(2**30)
    with pytest.raises(ConfigError, match=r"1\.00 GiB"):
        read(path)


@pytest.mark.parametrize("name", ["model.safetensors", "model.gguf", "model.json", "model.xyz"])
def test_that_junk_under_the_right_name_gets_one_sentence(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
    with pytest.raises(PlimsollError, match=name):
        read(path)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "no config.json"),
        (["notes.txt"], "no config.json"),
        (["model_index.json"], "image pipeline"),
    ],
)
def test_that_a_folder_without_a_model_says_what_is_missing(tmp_path, names, words):
    for name in names:
        (tmp_path / name).write_text("{}")
    with pytest.raises(SourceError, match=words):
        read(tmp_path)


def test_that_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(b"\x80\x02cos\nsystem\n")
    with pytest.raises(SourceError, match="pickle"):
        read(path)


def test_that_what_is_no_file_gets_one_sentence(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        strange = [loop, pipe, tmp_path / "s", Path("/dev/zero"), tmp_path / "absent"]
        strange += [tmp_path / ("x" * 300), Path("a\0b"), tmp_path / "pipe.gguf" / "below"]
        for path in strange:
            with pytest.raises(SourceError) as caught:
                read(path)
            assert caught.value.message.endswith(".")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_that_an_unreadable_file_gets_one_sentence(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(SourceError, match="Permission denied"):
        read(path)


def test_that_a_cancelled_token_stops_the_reading(tmp_path):
    token = CancelToken()
    token.cancel()
    with pytest.raises(JobCancelledError):
        files.read(sharded(tmp_path), token)


@pytest.mark.parametrize("name", ["model.safetensors", "model.gguf"])
def test_that_a_file_of_100_gigabytes_costs_only_its_header(tmp_path, name):
    path = tmp_path / name
    shape, size = (2**20, 25_600), 2**20 * 25_600 * 4
    if name.endswith("gguf"):
        head = struct.pack("<4sIQQQ1sIQQIQ", b"GGUF", 3, 1, 0, 1, b"w", 2, *shape, 0, 0)
        head += b"\0" * (-len(head) % 32)
    else:
        table = {"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}
        head = json.dumps(table).encode()
        head = struct.pack("<Q", len(head)) + head
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
    program = (
        "import resource, sys; from pathlib import Path; from engine.cancel import CancelToken;"
        "from engine.source import files;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "print(files.read(Path(sys.argv[1]), CancelToken()).tensors[0].size_bytes);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    read_bytes, grown_kib = map(int, done.stdout.split())
    assert read_bytes == size
    assert grown_kib < 16 * 1024


@pytest.mark.skipif(not SHARED.exists(), reason="the reference records are not beside the checkout")
def test_that_tensor_bytes_of_synthetic_models_agree_with_the_measured_records(tmp_path):
    scripts = SHARED / "truth" / "llama.cpp" / "scripts"
    wanted = {"Llama-3.1-8B": ("Q4_K_M", "F16"), "Mixtral-8x7B": ("Q4_K_M",)}
    seen = {}
    with (scripts.parent / "records.jsonl").open() as lines:
        for line in lines:
            record = json.loads(line)
            for model, kinds in wanted.items():
                if record["model"].startswith(model) and record["file_type"] in kinds:
                    seen.setdefault((record["model"], record["file_type"]), record)
    assert seen
    for (model, kind), record in seen.items():
        path = tmp_path / "m.gguf"
        subprocess.run(
            [sys.executable, scripts / "make_gguf.py", model, kind, path],
            check=True, capture_output=True,
        )  # fmt: skip
        raw = read(path)
        assert sum(t.size_bytes for t in raw.tensors) == record["tensor_bytes"]
        assert raw.file_bytes == record["file_bytes"]
        by_type = dict.fromkeys(record["type_bytes"], 0)
        for tensor in raw.tensors:
            by_type[tensor.dtype] += tensor.size_bytes
        assert by_type == record["type_bytes"]
