import threading
import time

import pytest

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
from tests.helpers import fake_hub
from tests.helpers.fake_hub import GOOD_TOKEN, UNGRANTED_TOKEN, Repo
from tests.helpers.hub_models import CONFIG, client, fetch, plain, safetensors, split


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        yield running


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
    repo.files["/srv/a.gguf"] = b"x"
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


def test_that_the_sentence_says_which_limit_was_reached(hub):
    plain(hub)
    hub.trouble = "stall"
    with pytest.raises(HubTimeoutError, match=r"in time \(nothing came for 0.3 s\)"):
        fetch(hub, timeout_s=0.3)
    hub.trouble = "drip"
    with pytest.raises(HubTimeoutError, match=r"\(fewer than 1,024 bytes came in 0.3 s\)"):
        fetch(hub, timeout_s=0.3)


def test_that_no_sentence_ends_twice(hub):
    plain(hub)
    hub.trouble = "drop"
    with pytest.raises(HubError, match=r"broke off its answer: .*[^.]\.$"):
        fetch(hub)
