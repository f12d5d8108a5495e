import json
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import (
    ConfigError,
    HeaderError,
    HubError,
    HubGatedError,
    HubNotFoundError,
    HubOfflineError,
    HubRateLimitedError,
    HubTimeoutError,
)
from engine.source.hub import HubClient
from engine.source.hub_models import model_from
from tests.helpers import fake_hub
from tests.helpers.fake_hub import COMMIT, GOOD_TOKEN, UNGRANTED_TOKEN, Repo

ROOT = Path(__file__).resolve().parents[3]
CONFIG = {"model_type": "llama", "hidden_size": 64}


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        yield running


def client(hub, **settings):
    return HubClient(hub.url, timeout_s=settings.pop("timeout_s", 5), **settings)


def fetch(hub, repo_id="org/model", revision=None, file="", progress=None, **settings):
    return client(hub, **settings).fetch(repo_id, CancelToken(), revision, progress, file)


def safetensors(names, pad=0, dtype="BF16"):
    table, end = {}, 0
    for name in names:
        table[name] = {"dtype": dtype, "shape": [8, 4], "data_offsets": [end, end + 64]}
        end += 64
    header = json.dumps(table).encode() + b" " * pad
    return struct.pack("<Q", len(header)) + header + b"\0" * end


def gguf(names=("token_embd.weight",), words=0, pairs=()):
    entries = list(pairs)
    if words:
        key = b"tokenizer.ggml.tokens"
        texts = b"".join(struct.pack("<Q6s", 6, b"%06d" % n) for n in range(words))
        entries.append(struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, 8, words) + texts)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(names), len(entries)) + b"".join(entries)
    for n, name in enumerate(names):
        raw = name.encode()
        head += struct.pack("<Q", len(raw)) + raw + struct.pack("<IQIQ", 1, 32, 0, 128 * n)
    return head + b"\0" * (-len(head) % 32) + b"\0" * 128 * len(names)


def plain(hub, **more):
    return hub.add(
        Repo(
            "org/model",
            {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": safetensors("ab")},
            **more,
        )
    )


def split(hub, parts=5, **more):
    names = [f"model-{n:05d}-of-{parts:05d}.safetensors" for n in range(1, parts + 1)]
    found = {name: safetensors([f"layers.{n}.w"]) for n, name in enumerate(names)}
    weight_map = {f"layers.{n}.w": name for n, name in enumerate(names)}
    found["model.safetensors.index.json"] = json.dumps({"weight_map": weight_map}).encode()
    found["config.json"] = json.dumps(CONFIG).encode()
    repo = hub.add(Repo("org/model", found, **more))
    headers = {n: json.loads(found[n][8:-64]) for n in names}
    repo.headers_at_once = {"index": {"metadata": {}}, "headers": headers}
    return repo


# --- what is there


def test_that_a_model_is_read_at_the_commit_by_its_config_and_headers(hub):
    plain(hub)
    raw = fetch(hub)
    assert (raw.id, raw.revision, raw.config) == ("org/model", COMMIT, CONFIG)
    assert [(t.name, t.size_bytes) for t in raw.tensors] == [("a", 64), ("b", 64)]
    assert raw.file_bytes == len(hub.repos["org/model"].files["model.safetensors"])
    files = [p for p in hub.paths() if "/resolve/" in p]
    assert files
    assert all(f"/resolve/{COMMIT}/" in p for p in files)


def test_that_only_the_header_of_a_file_travels(hub):
    repo = plain(hub)
    repo.files["model.safetensors"] = safetensors("ab", pad=200_000)
    assert len(fetch(hub).tensors) == 2
    ranges = [h["Range"] for _, p, h in hub.requests if "/cdn/" in p]
    length = struct.unpack("<Q", repo.files["model.safetensors"][:8])[0]
    assert ranges == ["bytes=0-131071", f"bytes=131072-{length + 7}"]


def test_that_a_header_which_ends_with_the_first_range_needs_no_second(hub):
    repo = plain(hub)
    bare = len(safetensors("ab")) - 128
    repo.files["model.safetensors"] = safetensors("ab", pad=131_072 - bare)
    assert len(fetch(hub).tensors) == 2
    assert len([p for p in hub.paths() if "/cdn/" in p]) == 1


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
    }


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


# --- lists


def test_that_pages_are_fetched_one_by_one_as_they_are_asked_for(hub):
    fake_hub.fill(hub, 120)
    pages = client(hub).search("", CancelToken(), page_size=50)
    first = next(pages)
    assert len([p for p in hub.paths() if "/api/models" in p]) == 1
    assert (len(first.models), first.has_more) == (50, True)
    rest = list(pages)
    assert [(len(p.models), p.has_more) for p in rest] == [(50, True), (20, False)]
    names = [m.id for p in (first, *rest) for m in p.models]
    assert len(set(names)) == 120
    downloads = [m.downloads for p in (first, *rest) for m in p.models]
    assert downloads == sorted(downloads, reverse=True)


def test_that_one_request_brings_all_facts_of_a_page(hub):
    hub.add(
        Repo(
            "openai/gpt-oss-120b",
            gated="auto",
            facts={
                "downloads": 5, "likes": 3, "pipeline_tag": "text-generation",
                "safetensors": {"parameters": {"BF16": 2167371072, "U8": 118244966400}},
                "config": {
                    "model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}
                },
            },
        )
    )  # fmt: skip
    hub.add(
        Repo(
            "org/oss-gguf",
            facts={"gguf": {"total": 10**9, "context_length": 4096, "architecture": "llama"}},
        )
    )
    hub.add(Repo("org/oss-plain", facts={"safetensors": {"parameters": {"BF16": 7, "F32": 3}}}))
    hub.add(Repo("org/oss-bare"))
    (page,) = client(hub).search("oss", CancelToken())
    found = {m.id: m for m in page.models}
    packed = found["openai/gpt-oss-120b"]
    assert (packed.parameters, packed.weight_format, packed.gated) == (None, "MXFP4", True)
    listed = found["org/oss-gguf"]
    assert (listed.parameters, listed.weight_format, listed.context) == (10**9, "GGUF", 4096)
    full = found["org/oss-plain"]
    assert (full.parameters, full.stored_bytes, full.weight_format) == (10, 26, "BF16")
    assert packed.stored_bytes is None
    bare = found["org/oss-bare"]
    assert (bare.parameters, bare.weight_format, bare.context, bare.gated) == (
        None,
        "",
        None,
        False,
    )


def test_that_absurd_facts_in_a_list_are_unknown_and_never_zero(hub):
    facts = {
        "downloads": -5, "likes": "many", "lastModified": 7, "config": [], "gguf": "x",
        "safetensors": {"parameters": {"BF16": 2**70}},
    }  # fmt: skip
    hub.add(Repo("org/model", facts=facts))
    (page,) = client(hub).search("", CancelToken())
    model = page.models[0]
    assert (model.parameters, model.downloads, model.likes) == (None, None, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["id", "config", "gguf", "safetensors", "parameters", "total", "gated", "downloads",
                 "quantization_config", "quant_method", "model_type", "BF16", "context_length"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_that_any_entry_of_a_list_is_a_row_or_none(item):
    row = model_from(item)
    assert row is None or (row.id and row.parameters != -1)


def test_that_a_list_whose_next_page_is_itself_ends(hub):
    plain(hub)
    hub.trouble = "same page"
    assert len(list(client(hub).search("", CancelToken()))) <= 2


def test_that_the_token_goes_to_the_endpoint_alone(hub):
    plain(hub, gated="auto")
    fetch(hub, access_token=GOOD_TOKEN)
    fake_hub.fill(hub, 60)
    hub.trouble = "foreign page"
    list(client(hub, access_token=GOOD_TOKEN).search("", CancelToken()))
    by_host = {}
    for _, _, headers in hub.requests:
        by_host.setdefault(headers["Host"].split(":")[0], set()).add("Authorization" in headers)
    assert by_host == {"127.0.0.1": {True}, "localhost": {False}}


def test_that_nothing_is_sent_without_being_asked_and_we_say_who_we_are(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", GOOD_TOKEN)
    plain(hub)
    fetch(hub)
    assert not [p for p in hub.paths() if "agent" in p]
    for _, _, headers in hub.requests:
        assert "Authorization" not in headers
        assert headers["User-Agent"].startswith("plimsoll/")


# --- what goes wrong


def test_that_a_gated_model_asks_for_terms_and_token(hub):
    plain(hub, gated="manual")
    with pytest.raises(HubGatedError, match=r"accept its terms at .*/org/model"):
        fetch(hub)
    with pytest.raises(HubGatedError, match="may not read"):
        fetch(hub, access_token=UNGRANTED_TOKEN)
    with pytest.raises(HubGatedError, match="does not know this token"):
        fetch(hub, access_token="hf_wrong")
    assert len(fetch(hub, access_token=GOOD_TOKEN).tensors) == 2
    hub.repos["org/model"].gated = "pending"
    with pytest.raises(HubGatedError, match="not answered"):
        fetch(hub, access_token=UNGRANTED_TOKEN)


def test_that_what_is_missing_is_named(hub):
    repo = plain(hub)
    with pytest.raises(HubNotFoundError, match="no model org/else, or it is private"):
        fetch(hub, "org/else")
    with pytest.raises(HubNotFoundError, match="token may not see"):
        fetch(hub, "org/else", access_token=GOOD_TOKEN)
    with pytest.raises(HubNotFoundError, match="no revision v9") as caught:
        fetch(hub, revision="v9")
    assert caught.value.field == "revision"
    with pytest.raises(HubNotFoundError, match=r"no file b\.safetensors"):
        fetch(hub, file="b.safetensors")
    repo.files = {"README.md": b"hello"}
    with pytest.raises(HubNotFoundError, match=r"no config\.json"):
        fetch(hub)
    repo.disabled = True
    with pytest.raises(HubError, match="disabled"):
        fetch(hub)


def test_that_a_rate_limit_is_reported_with_its_wait_and_never_slept_out(hub):
    plain(hub)
    hub.trouble = "limited"
    for ask in (lambda: fetch(hub), lambda: next(client(hub).search("a", CancelToken()))):
        with pytest.raises(HubRateLimitedError, match="try again in 55 s") as caught:
            ask()
        assert caught.value.wait_s == 55
    hub.trouble = "retry-after"
    with pytest.raises(HubRateLimitedError) as caught:
        fetch(hub)
    assert caught.value.wait_s == 7
    assert len(hub.requests) == 3


@pytest.mark.parametrize("status", ["500", "502", "503", "504"])
def test_that_trouble_of_the_hub_is_named_at_once(hub, status):
    hub.trouble = status
    with pytest.raises(HubError, match=f"trouble of its own .{status}"):
        next(client(hub).search("a", CancelToken()))
    assert len(hub.requests) == 1


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ("stall", HubTimeoutError),
        ("drip", HubTimeoutError),
        ("drop", HubError),
        ("truncated", HubError),
        ("html", HubError),
        ("no_http", HubError),
        ("nonsense", HubError),
        ("deep", HubError),
        ("packed", HubError),
        ("endless", HubError),
        ("418", HubError),
        ("403", HubGatedError),
        ("401", HubNotFoundError),
    ],
)
def test_that_each_trouble_has_one_sentence(hub, trouble, kind):
    plain(hub)
    hub.trouble = trouble
    with pytest.raises(kind) as caught:
        fetch(hub, timeout_s=0.3)
    with pytest.raises(HubError):
        next(client(hub, timeout_s=0.3).search("a", CancelToken()))
    message = caught.value.message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("trouble", ["no ranges", "other range", "short range", "other size"])
def test_that_a_mirror_which_does_not_keep_to_the_range_is_not_believed(hub, trouble):
    plain(hub)
    hub.trouble = trouble
    with pytest.raises(HubError, match="server"):
        fetch(hub)


def test_that_a_mirror_without_ranges_is_not_downloaded_from(hub):
    repo = plain(hub)
    repo.files["model.safetensors"] = safetensors("a", pad=50_000_000 - 200)[:40_000_000]
    hub.trouble = "no ranges"
    with pytest.raises(HubError, match="ignores ranges"):
        fetch(hub)


def test_that_sizes_which_contradict_each_other_are_not_believed(hub):
    plain(hub, stated_sizes={"model.safetensors": 10**9})
    with pytest.raises(HubError, match="contradicts itself"):
        fetch(hub)


def test_that_a_file_without_a_stated_size_is_read_all_the_same(hub):
    plain(hub, stated_sizes={"model.safetensors": None})
    raw = fetch(hub)
    assert (len(raw.tensors), raw.file_bytes) == (2, 0)


def test_that_paths_sizes_and_commits_that_cannot_be_are_passed_over(hub):
    repo = plain(hub, stated_sizes={"config.json": -5, "model.safetensors": "large"})
    repo.files["../../etc/passwd.safetensors"] = b"x"
    repo.files["/root/a.gguf"] = b"x"
    repo.files["sub/../b.gguf"] = b"x"
    raw = fetch(hub)
    assert [t.name for t in raw.tensors] == ["a", "b"]
    assert client(hub).files("org/model", CancelToken()) == ()
    repo.commit = "../../main"
    assert fetch(hub).revision is None


def test_that_a_config_which_is_none_is_named(hub):
    repo = plain(hub)
    for content in (b"<html>", b"[]", b'{"a":' * 100_000):
        repo.files["config.json"] = content
        with pytest.raises(ConfigError, match=r"config.json of org/model"):
            fetch(hub)
    repo.files["config.json"] = b"{" + b" " * 17 * 2**20
    with pytest.raises(ConfigError, match="far larger"):
        fetch(hub)


def test_that_an_index_which_points_elsewhere_is_refused(hub):
    repo = split(hub)
    repo.headers_at_once = None
    repo.files["model.safetensors.index.json"] = b'{"weight_map": {"w": "../x.safetensors"}}'
    with pytest.raises(HeaderError, match="points to"):
        fetch(hub)


def test_that_one_broken_shard_of_many_fails_the_whole(hub):
    repo = split(hub, parts=40)
    repo.headers_at_once = None
    repo.files["model-00020-of-00040.safetensors"] = b"\xff" * 500
    with pytest.raises(HeaderError, match="model-00020"):
        fetch(hub)


def test_that_no_server_is_said_to_be_out_of_reach():
    with pytest.raises(HubOfflineError, match="cannot be reached"):
        HubClient("http://127.0.0.1:1", timeout_s=2).fetch("org/model", CancelToken())


def test_that_offline_mode_sends_nothing(hub):
    plain(hub)
    offline = client(hub, offline=True)
    with pytest.raises(HubOfflineError):
        offline.fetch("org/model", CancelToken())
    with pytest.raises(HubOfflineError):
        next(offline.search("a", CancelToken()))
    assert hub.requests == []


def test_that_the_librarys_own_offline_switch_is_kept(hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubOfflineError):
        fetch(hub)
    assert hub.requests == []


def test_that_a_cancelled_token_stops_before_the_first_request(hub):
    token = CancelToken()
    token.cancel()
    with pytest.raises(JobCancelledError):
        client(hub).fetch("org/model", token)
    assert hub.requests == []


@pytest.mark.parametrize("trouble", ["stall", "drip"])
def test_that_cancelling_ends_a_blocked_request_long_before_its_limit(hub, trouble):
    hub.trouble = trouble
    token = CancelToken()
    ended = []

    def ask():
        try:
            client(hub, timeout_s=60).fetch("org/model", token)
        except JobCancelledError:
            ended.append("cancelled")

    thread = threading.Thread(target=ask)
    thread.start()
    give_up = time.monotonic() + 10
    while not hub.requests and time.monotonic() < give_up:
        threading.Event().wait(0.01)
    token.cancel()
    thread.join(10)
    assert ended == ["cancelled"]


def test_that_two_clients_of_one_process_keep_their_own_rules(hub):
    plain(hub)
    with fake_hub.serving() as other:
        other.add(Repo("org/other", {"config.json": b'{"b": 2}'}))
        assert fetch(hub).config == CONFIG
        assert HubClient(other.url).fetch("org/other", CancelToken()).config == {"b": 2}
        assert fetch(hub).config == CONFIG


# --- ways to the network


def test_that_the_proxy_of_the_environment_is_used_and_this_computer_is_not_sent_through_it(
    hub, monkeypatch
):
    plain(hub)
    monkeypatch.setenv("http_proxy", hub.url)
    monkeypatch.delenv("no_proxy", raising=False)
    raw = HubClient("http://hub.invalid").fetch("org/model", CancelToken())
    assert raw.config == CONFIG
    hosts = {headers["Host"].split(":")[0] for _, _, headers in hub.requests}
    assert hosts == {"hub.invalid", "localhost"}


def test_that_a_proxy_of_another_kind_is_named(monkeypatch):
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(HubError, match="socks5"):
        HubClient("http://hub.invalid").fetch("org/model", CancelToken())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_that_a_server_is_asked_by_tls_and_only_with_a_certificate_that_is_trusted(tmp_path):
    pem = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", pem, "-out", tmp_path / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    pem.write_bytes(pem.read_bytes() + (tmp_path / "cert.pem").read_bytes())
    program = (
        "import sys; from engine.cancel import CancelToken; from engine.errors import HubError;"
        "from engine.source.hub import HubClient\n"
        "try: print(len(HubClient(sys.argv[1]).fetch('org/model', CancelToken()).tensors))\n"
        "except HubError as error: print(error.code, error.message)"
    )
    said = []
    with fake_hub.serving(pem) as secure:
        plain(secure)
        for trusted in (str(tmp_path / "cert.pem"), ""):
            done = subprocess.run(
                [sys.executable, "-c", program, secure.url],
                check=True, capture_output=True, text=True, cwd=ROOT,
                env={**os.environ, "SSL_CERT_FILE": trusted},
            )  # fmt: skip
            said.append(done.stdout.strip())
    assert said[0] == "2"
    assert "certificate" in said[1]
