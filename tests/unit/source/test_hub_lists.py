import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken
from engine.source.hub_models import model_from
from tests.helpers import fake_hub
from tests.helpers.fake_hub import GOOD_TOKEN, Repo
from tests.helpers.hub_models import client, fetch, plain


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        yield running


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
                "tags": [7, "vllm", "license:apache-2.0", "license:mit"],
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
    assert (packed.licence, found["org/oss-bare"].licence) == ("apache-2.0", "")
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
