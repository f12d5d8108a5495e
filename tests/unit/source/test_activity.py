"""What was asked is listed, whole and without secrets."""

from __future__ import annotations

import pytest

from engine.cancel import CancelToken
from engine.errors import HubError
from engine.source import activity
from engine.source.activity import ACTIVITY, Activity
from tests.helpers import fake_hub
from tests.helpers.fake_hub import GOOD_TOKEN
from tests.helpers.hub_models import client, fetch, plain


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        yield running


def listed(hub):
    """What is noted of requests to ``hub``."""
    port = hub.url.rpartition(":")[2]
    return [asked for asked in ACTIVITY.all if asked.host.endswith(f":{port}")]


def test_that_each_request_the_server_saw_is_listed_with_what_came_back(hub):
    repo = plain(hub)
    fetch(hub)
    seen = [(method, path.partition("?")[0]) for method, path, _ in hub.requests]
    assert sorted((one.method, one.path) for one in listed(hub)) == sorted(seen)
    config = next(one for one in listed(hub) if one.path.endswith("/config.json"))
    assert config.status == 200
    assert config.received_bytes == len(repo.files["config.json"])
    assert config.duration_s >= 0
    assert (config.proxy, config.trouble) == ("", "")
    redirect = next(one for one in listed(hub) if one.status == 302)
    assert redirect.received_bytes == 0


def test_that_neither_query_nor_token_is_in_the_list(hub):
    plain(hub, gated="manual")
    fetch(hub, access_token=GOOD_TOKEN)
    next(client(hub).search("secret words", CancelToken()))
    text = activity.text(tuple(listed(hub)))
    assert "Bearer" in str(hub.requests)
    for secret in (GOOD_TOKEN, "secret", "search", "?"):
        assert secret not in text


@pytest.mark.parametrize(
    ("trouble", "status", "words"),
    [
        ("limited", 429, "asks for a pause; try again in 55 s"),
        ("drop", None, "broke off its answer"),
        ("truncated", 200, "broke off its answer"),
        ("stall", None, "did not answer in time"),
    ],
)
def test_that_a_request_without_answer_is_listed_with_the_reason(hub, trouble, status, words):
    hub.trouble = trouble
    with pytest.raises(HubError):
        fetch(hub, timeout_s=0.3)
    assert [one.status for one in listed(hub)] == [status]
    assert words in listed(hub)[0].trouble
    assert listed(hub)[0].duration_s is not None


def test_that_off_line_nothing_is_listed(hub):
    before = ACTIVITY.total
    with pytest.raises(HubError):
        fetch(hub, offline=True)
    assert ACTIVITY.total == before


def test_that_the_list_keeps_the_last_and_counts_all():
    kept = Activity(kept=3)
    first = kept.begin("GET", "hub.example", "/0?token=secret", "")
    for number in range(1, 5):
        kept.begin("GET", "hub.example", f"/{number}\u202e", "")
    kept.end(first)
    assert [one.path for one in kept.all] == ["/2\\u202e", "/3\\u202e", "/4\\u202e"]
    assert kept.total == 5
