import struct

import pytest

from engine.cancel import CancelToken
from engine.errors import (
    HeaderError,
    HubNotFoundError,
)
from engine.source.hub import HubClient
from tests.helpers import fake_hub
from tests.helpers.fake_hub import COMMIT, Repo
from tests.helpers.hub_models import CONFIG, client, fetch, gguf, plain, safetensors, split


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        yield running


def test_that_a_model_is_read_at_the_commit_by_its_config_and_headers(hub):
    plain(hub)
    raw = fetch(hub)
    assert (raw.id, raw.revision, raw.config) == ("org/model", COMMIT, CONFIG)
    assert [(t.name, t.size_bytes) for t in raw.tensors] == [("a", 64), ("b", 64)]
    assert raw.file_bytes == len(hub.repos["org/model"].files["model.safetensors"])
    files = [p for p in hub.paths() if "/resolve/" in p]
    assert files
    assert all(f"/resolve/{COMMIT}/" in p for p in files)


def header_end(data):
    return 8 + struct.unpack("<Q", data[:8])[0]


@pytest.mark.parametrize("pad", [0, 200_000])
def test_that_exactly_the_header_of_a_file_travels_from_where_the_hub_leads_to_once(hub, pad):
    repo = plain(hub)
    data = repo.files["model.safetensors"] = safetensors("ab", pad=pad)
    assert len(fetch(hub).tensors) == 2
    ranges = [h["Range"] for _, p, h in hub.requests if "/cdn/" in p]
    assert ranges == ["bytes=0-7", f"bytes=8-{header_end(data) - 1}"]
    assert len([p for p in hub.paths() if "/resolve/" in p and "model.safetensors" in p]) == 1


def test_that_163_shards_cost_their_headers_the_index_and_the_config_and_no_byte_more(hub):
    repo = split(hub, parts=163)
    repo.headers_at_once = None
    assert len(fetch(hub).tensors) == 163
    shards = [data for name, data in repo.files.items() if name.endswith(".safetensors")]
    sent = [(path, size) for path, size in hub.sent if "/api/" not in path]
    headers = sum(size for path, size in sent if "/cdn/" in path)
    assert headers == sum(map(header_end, shards))
    whole = ("config.json", "model.safetensors.index.json")
    assert sum(size for _, size in sent) == headers + sum(len(repo.files[n]) for n in whole)


def test_that_the_hub_is_asked_again_where_a_signed_address_has_run_out(hub):
    repo = plain(hub)
    hub.trouble = "runs out"
    assert len(fetch(hub).tensors) == 2
    ranges = [h["Range"] for _, p, h in hub.requests if "/cdn/" in p]
    rest = f"bytes=8-{header_end(repo.files['model.safetensors']) - 1}"
    assert ranges == ["bytes=0-7", rest, rest]


def test_that_all_shards_are_read_in_one_answer_where_the_hub_offers_it(hub):
    split(hub)
    raw = fetch(hub)
    assert len(raw.tensors) == 5
    assert [p for p in hub.paths() if ".safetensors" in p] == [
        "GET /api/models/org/model/safetensors-metadata/model.safetensors.index.json"
    ]


def test_that_shards_are_read_one_by_one_at_a_revision(hub):
    split(hub)
    told = []
    raw = fetch(hub, revision="refs/pr/1", progress=lambda done, total: told.append((done, total)))
    assert [t.name for t in raw.tensors] == [f"layers.{n}.w" for n in range(5)]
    assert told == [(n, 5) for n in range(1, 6)]
    assert raw.tensors_source == "headers of 5 safetensors files"


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"headers": {}},
        {"headers": {"else.safetensors": {}}},
        {"headers": {"model-00001-of-00005.safetensors": {"w": {"dtype": "BF16"}}}},
        {
            "headers": {
                "model-00001-of-00005.safetensors": {
                    "w": {"dtype": "BF16", "shape": [9], "data_offsets": [0, 18]}
                }
            }
        },
        {
            "headers": {
                "model-00001-of-00005.safetensors": {
                    "w": {"dtype": "F32", "shape": [4096], "data_offsets": [0, 16384]}
                }
            }
        },
    ],
)
def test_that_an_answer_about_all_shards_that_cannot_be_true_is_checked_by_ranges(hub, answer):
    split(hub).headers_at_once = answer
    assert len(fetch(hub).tensors) == 5


def test_that_a_renamed_model_is_read_under_its_new_name(hub):
    plain(hub)
    hub.renamed["old/model"] = "org/model"
    raw = fetch(hub, "old/model")
    assert raw.id == "org/model"
    assert raw.notes == ("old/model is now called org/model.",)


def test_that_a_model_without_safetensors_is_sized_by_its_config(hub):
    hub.add(Repo("org/model", {"config.json": b'{"a": 1}', "pytorch_model.bin": b"x"}))
    raw = fetch(hub)
    assert (raw.config, raw.tensors) == ({"a": 1}, ())
    assert "computed from config.json" in raw.notes[0]


def test_that_a_safetensors_file_can_be_chosen(hub):
    repo = plain(hub)
    repo.files["other.safetensors"] = safetensors("z")
    assert [t.name for t in fetch(hub, file="other.safetensors").tensors] == ["z"]


def test_that_models_already_in_the_hub_cache_cost_no_request_for_their_files(
    hub, tmp_path, monkeypatch
):
    plain(hub)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--org--model" / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    for name, data in hub.repos["org/model"].files.items():
        (folder / name).write_bytes(data)
    assert len(fetch(hub, revision=COMMIT).tensors) == 2
    assert not [p for p in hub.paths() if "/resolve/" in p]
    assert len(HubClient(offline=True).fetch("org/model", CancelToken(), COMMIT).tensors) == 2


# --- GGUF


def ggufs(hub):
    return hub.add(
        Repo(
            "org/model-GGUF",
            {
                "model-Q4_K_M.gguf": gguf(words=100_000),
                "model-Q8_0.gguf": gguf(("a", "b")),
                "UD-Q3_K_XL/model-UD-Q3_K_XL-00001-of-00002.gguf": gguf(("a",)),
                "UD-Q3_K_XL/model-UD-Q3_K_XL-00002-of-00002.gguf": gguf(("b",)),
                "mmproj-F16.gguf": gguf(("v",)),
            },
        )
    )


def test_that_the_gguf_models_are_listed_with_their_parts_joined(hub):
    sizes = {name: len(data) for name, data in ggufs(hub).files.items()}
    found = client(hub).files("org/model-GGUF", CancelToken())
    parts = [n for n in sizes if n.startswith("UD")]
    assert {(f.path, f.size_bytes) for f in found} == {
        ("model-Q4_K_M.gguf", sizes["model-Q4_K_M.gguf"]),
        ("model-Q8_0.gguf", sizes["model-Q8_0.gguf"]),
        (parts[0], sizes[parts[0]] + sizes[parts[1]]),
        ("mmproj-F16.gguf", sizes["mmproj-F16.gguf"]),
    }
    assert [f.path for f in found if f.is_projector] == ["mmproj-F16.gguf"]


def test_that_q4_k_m_is_taken_where_no_quantisation_was_named_and_a_note_says_so(hub):
    ggufs(hub)
    raw = fetch(hub, "org/model-GGUF")
    assert raw.id == "org/model-GGUF:model-Q4_K_M.gguf"
    assert raw.gguf_metadata == {"tokenizer.ggml.tokens.count": 100_000}
    assert "2 more GGUF models" in raw.notes[0]
    whole = len(hub.repos["org/model-GGUF"].files["model-Q4_K_M.gguf"])
    assert raw.file_bytes == whole


@pytest.mark.parametrize(
    ("file", "tensors"),
    [
        ("Q8_0", ["a", "b"]),
        ("q8_0", ["a", "b"]),
        ("UD-Q3_K_XL", ["a", "b"]),
        ("model-Q8_0.gguf", ["a", "b"]),
        ("UD-Q3_K_XL/model-UD-Q3_K_XL-00002-of-00002.gguf", ["a", "b"]),
        ("mmproj-F16.gguf", ["v"]),
    ],
)
def test_that_a_quantisation_or_file_can_be_chosen(hub, file, tensors):
    ggufs(hub)
    assert [t.name for t in fetch(hub, "org/model-GGUF", file=file).tensors] == tensors


def test_that_a_quantisation_which_isnt_there_names_those_that_are(hub):
    ggufs(hub)
    with pytest.raises(HubNotFoundError, match=r"no file for Q5_0.*model-Q8_0\.gguf"):
        fetch(hub, "org/model-GGUF", file="Q5_0")


def test_that_a_lying_gguf_on_the_hub_is_refused(hub):
    hub.add(Repo("org/g", {"a.gguf": struct.pack("<4sIQQ", b"GGUF", 3, 2**63, 0) + b"\0" * 99}))
    with pytest.raises(HeaderError):
        fetch(hub, "org/g")
