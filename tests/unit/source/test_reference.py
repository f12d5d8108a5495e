import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import SourceError
from engine.source.reference import HubReference, PathReference, parse

HUB = {
    "org/name": HubReference("org/name"),
    " 'org/name' ": HubReference("org/name"),
    "org/name.git": HubReference("org/name"),
    "org/name@v1.0": HubReference("org/name", "v1.0"),
    "org/name@main": HubReference("org/name"),
    "org/name:Q4_K_M": HubReference("org/name", None, "Q4_K_M"),
    "org/name:sub/m-Q4_0.gguf": HubReference("org/name", None, "sub/m-Q4_0.gguf"),
    "https://huggingface.co/org/name": HubReference("org/name"),
    "http://www.huggingface.co/org/name/": HubReference("org/name"),
    "https://hf.co/org/name?library=x#usage": HubReference("org/name"),
    "hf.co/org/name": HubReference("org/name"),
    "huggingface.co/org/name:Q8_0": HubReference("org/name", None, "Q8_0"),
    "hf://org/name": HubReference("org/name"),
    "https://huggingface.co/gpt2": HubReference("gpt2"),
    "https://huggingface.co/models/org/name": HubReference("org/name"),
    "https://huggingface.co/org/name/tree/v2": HubReference("org/name", "v2"),
    "https://huggingface.co/org/name/tree/refs%2Fpr%2F1": HubReference("org/name", "refs/pr/1"),
    "https://huggingface.co/org/name/tree/refs/pr/1/sub": HubReference("org/name", "refs/pr/1"),
    "https://huggingface.co/org/name/blob/main/README.md": HubReference("org/name"),
    "https://huggingface.co/org/name/blob/abc/m.gguf": HubReference("org/name", "abc", "m.gguf"),
    "https://huggingface.co/org/name/resolve/main/a/m.gguf?download=true": HubReference(
        "org/name", None, "a/m.gguf"
    ),
    "https://huggingface.co/org/name/discussions/3": HubReference("org/name"),
    "https://hub.example.org:8443/org/name": HubReference("org/name"),
}

PATHS = {
    "/srv/model": "/srv/model",
    "./model": "./model",
    "../model": "../model",
    "~/model": "~/model",
    ".": ".",
    "C:\\models\\a": "C:\\models\\a",
    "c:/models/a": "c:/models/a",
    "config.json": "config.json",
    "sub/dir/Model.GGUF": "sub/dir/Model.GGUF",
    "file:///srv/my%20model": "/srv/my model",
    "file://localhost/srv/model": "/srv/model",
    "file:///C:/models/a": "C:/models/a",
}

HOSTILE = [
    "",
    "   ",
    "''",
    "a" * 5000,
    "org/na\x00me",
    "org/na\u202eme",
    "org/name\nrm -rf",
    "https://example.org/org/name",
    "https://huggingface.co.evil.org/org/name",
    "https://huggingface.co",
    "https://huggingface.co/datasets/org/name",
    "https://huggingface.co/spaces/org/name",
    "ftp://huggingface.co/org/name",
    "javascript://huggingface.co/%0aalert(1)",
    "http://[::1/org/name",
    "file://server/share/model",
    "file:///%00",
    "org/../secret",
    "org/na--me",
    "org/name/more/and/more",
    "org/name:../../etc/passwd.gguf",
    "org/name:$(reboot)",
    "org/name@../x",
    "-/-",
    "<script>/x",
]


@pytest.mark.parametrize("text", HUB)
def test_that_whatever_the_hub_shows_as_an_address_is_understood(text):
    assert parse(text, "https://hub.example.org:8443") == HUB[text]


@pytest.mark.parametrize("text", PATHS)
def test_that_what_looks_like_a_path_is_one(text):
    assert parse(text) == PathReference(PATHS[text])


@pytest.mark.parametrize("text", ["gpt2", "Llama-3.1-8B-Instruct"])
def test_that_a_plain_name_is_left_open(text):
    assert parse(text) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_that_a_hostile_reference_gets_one_sentence_without_hidden_characters(text):
    with pytest.raises(SourceError) as caught:
        parse(text)
    message = caught.value.message
    assert message.endswith(".")
    assert message.isprintable()
    assert len(message) < 300


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=120) | st.text("ab/:.@%?#~\\-", max_size=30))
def test_that_any_text_is_a_reference_or_one_error(text):
    try:
        found = parse(text)
    except SourceError:
        return
    if isinstance(found, HubReference):
        assert ".." not in found.repo_id
        assert found.repo_id.count("/") <= 1


@settings(max_examples=300, deadline=None)
@given(st.text("ab/:.@%?#-[]", max_size=60))
def test_that_any_page_of_the_hub_is_a_reference_or_one_error(tail):
    try:
        found = parse("https://huggingface.co/" + tail)
    except SourceError:
        return
    assert isinstance(found, HubReference)
