import json
import struct

import pytest

from engine.cancel import CancelToken
from engine.errors import SourceError
from engine.source import local, ollama
from engine.source.reference import HubReference, OllamaReference, PathReference, parse
from engine.source.resolve import resolve

WEIGHTS, PROJECTOR, ADAPTER = (letter * 64 for letter in "abc")


@pytest.fixture
def store(tmp_path, monkeypatch):
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".ollama/models"


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def gguf():
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, 0) + b"\0" * 8


def pull(store, name, **blobs):
    """Put a tag into the store as ``ollama pull`` leaves it."""
    layers = []
    for kind, (digest, data) in blobs.items():
        layers.append({"mediaType": f"application/vnd.ollama.image.{kind}",
                       "digest": f"sha256:{digest}"})  # fmt: skip
        put(store / f"blobs/sha256-{digest}", data)
    put(store / f"manifests/registry.ollama.ai/{name}", json.dumps({"layers": layers}).encode())


@pytest.mark.parametrize(
    ("text", "name", "tag"),
    [
        ("llama3.1:8b-instruct-q4_K_M", "llama3.1", "8b-instruct-q4_K_M"),
        ("ollama run llama3.1:70b", "llama3.1", "70b"),
        ("https://ollama.com/library/gemma3:27b", "gemma3", "27b"),
        ("ollama.com/library/gemma3", "gemma3", "latest"),
        ("registry.ollama.ai/library/qwen3:8b", "qwen3", "8b"),
    ],
)
def test_that_ollamas_names_are_known_by_their_form(text, name, tag):
    assert parse(text) == OllamaReference(name, tag)


def test_that_what_only_looks_like_a_tag_is_none():
    assert parse("org/name:Q4_K_M") == HubReference("org/name", None, "Q4_K_M")
    assert parse("ollama run hf.co/org/name:Q4_K_M") == HubReference("org/name", None, "Q4_K_M")
    assert parse("C:\\models") == PathReference("C:\\models")
    assert parse("c:x") is None
    assert parse("llama3.1") is None


def test_that_a_tag_of_the_store_is_read_from_it_without_network(store):
    pull(store, "library/llama3.2/3b", model=(WEIGHTS, gguf()))
    pull(store, "library/own/latest", model=(ADAPTER, gguf()))
    for text, name in (
        ("llama3.2:3b", "llama3.2:3b"), ("LLAMA3.2:3B", "llama3.2:3b"), ("own", "own:latest"),
    ):  # fmt: skip
        assert resolve(text, CancelToken()).id == name


def test_that_a_person_s_own_model_is_read_before_the_hub_is_asked(store):
    pull(store, "someone/own/q8", model=(WEIGHTS, gguf()))
    assert resolve("someone/own:q8", CancelToken()).id == "someone/own:q8"


def test_that_projector_and_adapters_of_a_tag_are_counted_apart(store):
    pull(
        store, "library/llava/7b", model=(WEIGHTS, gguf()), projector=(PROJECTOR, b"x" * 70),
        adapter=(ADAPTER, b"x" * 30), template=("d" * 64, b"y"),
    )  # fmt: skip
    (found,) = local.find(CancelToken())
    assert found.id == "llava:7b"
    assert found.size_bytes == len(gguf())
    assert (found.projector_bytes, found.adapter_bytes) == (70, 30)


@pytest.mark.parametrize(
    ("tag", "published"),
    [
        ("llama3.1:8b-instruct-q4_K_M", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct"),
        ("qwen2.5-coder:7b", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("qwen3:30b", "Qwen/Qwen3-30B-A3B-Instruct-2507"),
        ("gemma3:12b-it-qat", "google/gemma-3-12b-it"),
        ("phi4:14b", "microsoft/phi-4"),
        ("mixtral:8x7b", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("deepseek-r1:671b", "deepseek-ai/DeepSeek-R1"),
        ("deepseek-r1:8b-llama-distill-q4_K_M", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"),
        ("gpt-oss:20b", "openai/gpt-oss-20b"),
        ("llama3:8b", "meta-llama/Meta-Llama-3-8B-Instruct"),
    ],
)
def test_that_a_tag_that_is_not_here_is_the_catalogues_model_of_its_name(store, tag, published):
    raw = resolve(tag, CancelToken())
    assert raw.id == published
    assert f"{tag} is not in Ollama’s store" in raw.notes[-1]


def test_that_the_sentence_names_the_quantisation(store):
    assert resolve("llama3.1:8b-q8_0", CancelToken()).notes[-1].endswith("stores it as Q8_0.")
    assert resolve("llama3.1:8b", CancelToken()).notes[-1].endswith("stores it as Q4_K_M.")


@pytest.mark.parametrize("tag", ["deepseek-r1:7b", "phi:14b", "gemma3:latest", "nothing:1b"])
def test_that_a_tag_which_may_mean_another_model_is_not_guessed(store, tag):
    with pytest.raises(SourceError, match="no model of the catalogue is named like it"):
        resolve(tag, CancelToken())


def test_that_a_damaged_store_costs_nothing(store):
    for n, bad in enumerate([b"", b"[]", b"{}", b'{"layers": 7}', b'{"layers": [7, {}]}']):
        put(store / f"manifests/registry.ollama.ai/library/bad/{n}", bad)
    assert list(ollama.tags(store)) == []
    assert ollama.find("bad:0") is None
