import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import (
    ConfigError,
    HubGatedError,
    HubNotFoundError,
    HubOfflineError,
    PlimsollError,
    SourceError,
)
from engine.source import catalogue
from engine.source.hub import HubClient
from engine.source.resolve import nearest, resolve
from tests.helpers import fake_hub
from tests.helpers.fake_hub import COMMIT, Repo

CONFIG = {"model_type": "llama", "hidden_size": 64}
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    with fake_hub.serving() as running:
        running.add(Repo("org/model", {"config.json": json.dumps(CONFIG).encode()}))
        yield running


def ask(text, hub=None):
    client = HubClient(hub.url, timeout_s=5) if hub is not None else None
    return resolve(text, CancelToken(), client)


def test_that_a_known_name_needs_no_hub(hub):
    for name in (LLAMA, LLAMA.lower(), "Llama-3.1-8B-Instruct", f' "{LLAMA}" '):
        assert ask(name, hub) is catalogue.raw(catalogue.find(LLAMA))
    assert hub.requests == []


def test_that_a_path_is_read_however_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    for text in (
        str(folder), str(folder / "config.json"), "~/my model", "./my model", "my model",
        f"file://{tmp_path}/my%20model/config.json", "my model/config.json",
    ):  # fmt: skip
        assert ask(text).config == CONFIG


def test_that_a_pasted_config_is_read_as_it_stands():
    raw = ask(json.dumps(CONFIG, indent=2))
    assert (raw.id, raw.config) == ("pasted config", CONFIG)
    with pytest.raises(ConfigError, match="pasted text"):
        ask('{"model_type": ')


def test_that_ids_and_links_lead_to_the_hub(hub):
    for text in ("org/model", f"{hub.url}/org/model", f"{hub.url}/org/model/tree/{COMMIT}"):
        raw = ask(text, hub)
        assert (raw.id, raw.revision, raw.config) == ("org/model", COMMIT, CONFIG)


def test_that_a_link_asks_the_hub_even_where_the_catalogue_has_the_name(hub):
    hub.add(Repo(LLAMA, {"config.json": json.dumps(CONFIG).encode()}))
    assert ask(f"{hub.url}/{LLAMA}", hub).config == CONFIG


def test_that_a_gated_model_of_the_catalogue_is_sized_all_the_same_and_says_so(hub):
    hub.add(Repo(LLAMA, {"config.json": b"{}"}, gated="manual"))
    raw = ask(f"{hub.url}/{LLAMA}", hub)
    assert raw.parameters_by_class == catalogue.find(LLAMA).parameters_by_class
    assert "accept its terms" in raw.notes[-1]


def test_that_a_gated_model_nobody_knows_is_an_error(hub):
    hub.add(Repo("org/closed", {"config.json": b"{}"}, gated="manual"))
    with pytest.raises(HubGatedError):
        ask("org/closed", hub)


def test_that_an_unknown_name_brings_the_nearest(hub):
    with pytest.raises(SourceError, match=rf"Nearest: {LLAMA}"):
        ask("Llama-3.1-8B-Instrukt")
    with pytest.raises(HubNotFoundError, match=rf"no model .*Nearest: {LLAMA}"):
        ask("meta-llama/Llama-3.1-8B-Instrukt", hub)


def test_that_without_the_hub_an_unknown_id_says_that_nobody_was_asked(hub):
    with pytest.raises(HubOfflineError, match="the Hub was not asked"):
        ask("nobody/knows-this-one")


def test_that_without_the_hub_the_cache_of_this_computer_answers(hub, tmp_path):
    folder = tmp_path / "cache" / "models--org--cached" / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder.parents[1] / "refs").mkdir()
    (folder.parents[1] / "refs" / "main").write_text(COMMIT)
    for asked in (None, "http://127.0.0.1:1"):
        client = HubClient(asked, timeout_s=2) if asked else None
        raw = resolve("org/cached", CancelToken(), client)
        assert (raw.id, raw.revision, raw.config) == ("org/cached", COMMIT, CONFIG)
        assert raw.notes[-1].startswith("Read from the Hub cache")


def test_that_a_link_to_a_known_model_is_sized_when_the_hub_is_out_of_reach():
    for client in (None, HubClient("http://127.0.0.1:1", timeout_s=2)):
        raw = resolve(f"https://huggingface.co/{LLAMA}", CancelToken(), client)
        assert raw.source == "bundled catalogue"
        assert raw.notes[-1].startswith("Sized by the bundled catalogue")


def test_that_a_mirror_is_asked_first_and_known_by_its_name_only_out_of_reach(hub):
    name = "unsloth/Llama-3.2-3B-Instruct"
    hub.add(Repo(name, {"config.json": json.dumps(CONFIG).encode()}))
    assert ask(name, hub).config == CONFIG
    for client in (
        HubClient("http://127.0.0.1:1", timeout_s=2),
        HubClient(hub.url, offline=True, timeout_s=2),
    ):
        found = resolve("unsloth/Llama-3.2-1B-Instruct", CancelToken(), client)
        assert found.source.endswith("meta-llama/Llama-3.2-1B-Instruct; same name, not checked")
    with pytest.raises(HubOfflineError):
        resolve("unsloth/Llama-3.2-1B-Instruct", CancelToken(), None)


def test_that_a_mistyped_name_brings_the_nearest_also_when_the_hub_is_out_of_reach():
    with pytest.raises(HubOfflineError, match=rf"cannot be reached.*Nearest: {LLAMA}"):
        resolve(f"{LLAMA}x", CancelToken(), HubClient("http://127.0.0.1:1", timeout_s=2))


def test_that_mistyped_words_find_models_that_share_them():
    assert all("mistral" in name.casefold() for name in nearest("mistrel"))
    assert nearest("mistrel")
    assert nearest("zzzzzz qqqqqq") == ()
    assert nearest("org/m") == ()
    assert nearest("") == ()


def test_that_a_cancelled_token_stops_before_anything():
    token = CancelToken()
    token.cancel()
    with pytest.raises(JobCancelledError):
        resolve(LLAMA, token)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_that_any_text_gives_a_model_or_one_sentence(text):
    error = None
    try:
        ask(text)
    except PlimsollError as caught:
        error = caught
    assert error is None or (error.message.endswith(".") and "\n" not in error.message)
