"""From a model to what a file keeps of it, and back without asking anybody."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.cancel import CancelToken
from engine.errors import HubOfflineError, SourceError
from engine.source import files
from engine.source.by_hand import Measures
from engine.source.origin import Located, Named, Pasted, label, named
from engine.source.raw import RawModel
from engine.source.recall import fetch, origin_of, recall
from engine.source.resolve import resolve

COMMIT = "0e9e39f249a16976918f6564b8830bc894c89659"
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1000, "torch_dtype": "float16",
}  # fmt: skip


@pytest.fixture
def config(tmp_path) -> Path:
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG))
    return path


def from_hub(revision: str | None = None) -> RawModel:
    return RawModel("x", "Hub", revision)


@pytest.mark.parametrize(
    ("said", "found", "origin"),
    [
        ("Qwen/Qwen3-8B", from_hub(), Named("Qwen/Qwen3-8B")),
        ("qwen3 8b", from_hub(), Named("Qwen/Qwen3-8B")),
        ("Qwen/Qwen3-8B", from_hub(COMMIT), Named("Qwen/Qwen3-8B", COMMIT)),
        ("me/mine:Q4_K_M", from_hub(COMMIT), Named("me/mine", COMMIT, "Q4_K_M")),
        ("https://huggingface.co/me/mine/tree/v1", from_hub(), Named("me/mine", "v1")),
        ("https://hub.local/me/mine", from_hub(COMMIT), Named("me/mine", COMMIT)),
        ("ollama run llama3.2:3b", from_hub(), Named("llama3.2:3b")),
        ("ollama.com/library/phi4", from_hub(), Named("phi4:latest")),
        (json.dumps(CONFIG), from_hub(), Pasted(json.dumps(CONFIG))),
        (Measures(1, 2, 3, 4), from_hub(), Measures(1, 2, 3, 4)),
    ],
)
def test_that_what_was_typed_is_kept_as_what_finds_it_again(said, found, origin):
    assert origin_of(said, found, "https://hub.local") == origin
    if isinstance(origin, Named):
        assert named(origin.name, origin.revision, origin.file) == origin


def test_that_a_path_is_kept_whole_however_it_was_named(config, monkeypatch):
    raw = files.read(config, CancelToken())
    monkeypatch.chdir(config.parent)
    for said in (config, "./config.json", f"file://{config}", Path("config.json")):
        origin = origin_of(said, raw)
        assert origin == Located(str(config), raw.id)
        assert recall(origin, CancelToken()).config == CONFIG


@pytest.mark.parametrize(
    "origin",
    [Named("Qwen/Qwen3-8B"), Pasted(json.dumps(CONFIG)), Measures(8_030_261_248, 32, 8, 128)],
)
def test_that_what_needs_no_server_is_found_again(origin):
    raw = recall(origin, CancelToken())
    assert raw.config
    again = origin_of(origin.text if isinstance(origin, Named | Pasted) else origin, raw)
    assert again == origin


def test_that_a_store_s_name_stays(config):
    assert recall(Located(str(config), "llama3.2:3b"), CancelToken()).id == "llama3.2:3b"


def test_that_a_model_of_the_hub_is_said_to_be_elsewhere_and_not_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(HubOfflineError, match="the Hub was not asked"):
        recall(Named("Qwen/Qwen3-8B", COMMIT), CancelToken())
    # What an earlier download left is read, at that commit and no other.
    for commit in (COMMIT, "f" * 40):
        folder = tmp_path / "models--Qwen--Qwen3-8B" / "snapshots" / commit
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(CONFIG | {"vocab_size": len(commit[0])}))
    assert recall(Named("Qwen/Qwen3-8B", COMMIT), CancelToken()).revision == COMMIT


@pytest.mark.parametrize(
    "path",
    ["\\\\host\\share\\a.gguf", "//host/share", "\\/host/x", "\\\\?\\UNC\\host\\x", "\\\\.\\COM1"],
)
def test_that_a_path_to_another_computer_is_not_even_looked_at(path, monkeypatch):
    def looked_at(*_args, **_kwargs):
        pytest.fail("the path was looked at")

    monkeypatch.setattr(os, "stat", looked_at)
    with pytest.raises(SourceError, match="only when you ask"):
        recall(Located(path), CancelToken())


@pytest.mark.parametrize("path", ["a.gguf", "../a.gguf", "", "~/a.gguf", "C:a.gguf"])
def test_that_a_path_that_is_not_whole_is_refused(path):
    with pytest.raises(SourceError, match="no whole path"):
        recall(Located(path), CancelToken())


@pytest.mark.skipif(os.name == "nt", reason="pipes and /dev are not there")
def test_that_pipes_and_devices_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "a.gguf")
    for path in (str(tmp_path / "a.gguf"), "/dev/zero"):
        with pytest.raises(SourceError, match="not a file"):
            recall(Located(path), CancelToken())


def test_that_a_click_reads_what_was_refused(config):
    with pytest.raises(SourceError):
        recall(Located("/" + str(config)), CancelToken())
    assert fetch(Located("/" + str(config)), CancelToken(), None).config == CONFIG


def test_that_a_name_out_of_a_file_means_a_model_and_no_path():
    for name in ("./x", "/x", "a.gguf", "~", "a/b/c", "https://huggingface.co/a/b", "a b", "{}"):
        with pytest.raises(SourceError):
            named(name)
    assert named("a/b", "main") == Named("a/b")


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (Named("a/b", "v1", "Q4"), "a/b@v1:Q4"),
        (Named("a/b", COMMIT), "a/b@0e9e39f"),
        (Located("/models/x.gguf"), "x.gguf"),
        (Located("/models/x.gguf", "llama3.2:3b"), "llama3.2:3b"),
        (Pasted("{}"), "pasted config"),
        (Measures(1, 2, 3, 4, name="mine\u202e"), "mine\\u202e"),
    ],
)
def test_that_a_model_has_a_name_before_it_is_read(origin, words):
    assert label(origin) == words


def test_that_a_tag_of_ollama_finds_the_same_again():
    raw = resolve("llama3.2:3b", CancelToken())
    assert recall(origin_of("llama3.2:3b", raw), CancelToken()).id == raw.id
