"""A ``.plimsoll`` file: everything asked comes back, a stranger's file comes to one sentence."""

from __future__ import annotations

import json
import os
from dataclasses import fields

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resources
from engine.contract.fields import BY_NAME, Kind
from engine.contract.request import parse
from engine.contract.workspace import (
    MAX_FILE_BYTES,
    Asked,
    Workspace,
    as_request,
    keepable,
    read,
    read_file,
    written,
)
from engine.deployment.spec import Deployment
from engine.errors import PlimsollError, WorkspaceError
from engine.seen.load_driver import Load
from engine.source.by_hand import Measures
from engine.source.origin import Located, Named, Pasted
from engine.units import UnitSystem

MODELS = (
    None,
    Named("Qwen/Qwen3-8B"),
    Named("meta-llama/Llama-3.1-8B", "0e9e39f249a16976918f6564b8830bc894c89659"),
    Named("unsloth/Qwen3-8B-GGUF", "a1b2c3", "Q4_K_M"),
    Named("llama3.2:3b"),
    Named("gpt2"),
    Located("/models/tiny/config.json"),
    Located("C:\\models\\a.gguf", "llama3.2:3b"),
    Pasted('{"model_type": "llama",\n "hidden_size": 64}'),
    Measures(7_000_000_000, 32, 8, 128),
    Measures(1, 2, 3, 4, 5, 6, 7, "my own"),
)
PLAIN = {"schema": "plimsoll.workspace/1", "plan": {"runtime": "vllm"}, "unit": "GiB"}


def _value(name: str) -> st.SearchStrategy[object]:
    """What a request may say under the key ``name``."""
    field = BY_NAME[name]
    low = int(field.least) if field.least is not None else 0
    high = int(field.most) if field.most is not None else 2**40
    if name == "max_model_len":
        return st.integers(1, high) | st.just(-1)
    whole = st.integers(low, high)
    share = st.floats(max(field.least or 0, 0.01), field.most or 1e6)
    text = st.sampled_from(field.choices) if field.choices else st.sampled_from(["auto", "q8_0"])
    return {
        Kind.TEXT: text,
        Kind.INTEGER: whole,
        Kind.NUMBER: share,
        Kind.BOOLEAN: st.booleans(),
        Kind.SWITCH: st.sampled_from(["on", "off", "auto", True, False]),
        Kind.NUMBERS: st.lists(share, min_size=1, max_size=4),
        Kind.INTEGERS: st.lists(whole, min_size=1, max_size=4),
    }[field.kind]


SETTINGS = st.fixed_dictionaries(
    {},
    optional={f.name: _value(f.name) for f in fields(Deployment) if f.name != "draft_model"},
)
NEIGHBOUR = st.builds(
    Asked,
    model=st.sampled_from(MODELS),
    deployment=SETTINGS.map(lambda given: parse({"model": "-", **given}).deployment),
    context_assumed=st.booleans(),
)
ASKED = st.builds(
    Asked,
    beside=st.lists(NEIGHBOUR, max_size=2).map(tuple),
    model=st.sampled_from(MODELS),
    deployment=SETTINGS.map(lambda given: parse({"model": "-", **given}).deployment),
    gpu=st.sampled_from([None, "RTX 4090", "2 x RTX 4090 + H100", "24 GB"]),
    emptied=st.booleans(),
    context_assumed=st.booleans(),
    draft=st.sampled_from([None, Named("gpt2"), Named("a/b", "r", "Q4"), Located("/m/d.gguf")]),
)


SCHEMA = jsonschema.Draft202012Validator(
    json.loads(resources.path("schema", "workspace.schema.json").read_text("utf-8"))
)


@settings(max_examples=60)
@given(
    st.builds(
        Workspace,
        plan=ASKED,
        compared=st.lists(ASKED, max_size=6).map(tuple),
        unit=st.sampled_from(UnitSystem),
        tab=st.sampled_from(["", "regions", "compare"]),
        load=st.sampled_from(
            [None, Load(), Load(8192, 16, 1, 1, limit_s=660.5), Load(in_bursts=True)]
        ),
    )
)
def test_that_every_plan_comes_back_as_it_was_and_follows_the_published_schema(workspace):
    text = written(workspace)
    assert read(text.encode(), "a.plimsoll") == workspace
    SCHEMA.validate(json.loads(text))


def test_that_a_file_says_what_was_asked_and_nothing_else():
    deployment = Deployment(runtime="sglang", max_model_len=32768, concurrency=8, page_size=64)
    asked = Asked(Named("Qwen/Qwen3-8B", "abc123"), deployment, "2 x RTX 4090")
    kept = json.loads(written(Workspace(asked, tab="map")))
    assert set(kept) == {"schema", "model", "plan", "machine", "compared", "unit", "tab", "load"}
    assert kept["model"] == {"name": "Qwen/Qwen3-8B", "revision": "abc123"}
    assert kept["plan"]["max_model_len"] == 32768
    assert kept["plan"]["page_size"] == 64
    assert set(kept["plan"]) <= {field.name for field in fields(Deployment)}
    assert kept["machine"] == {"gpu": "2 x RTX 4090", "baseline": "now"}


def test_that_a_workspace_written_by_hand_needs_only_its_schema_a_plan_and_a_unit():
    found = read(json.dumps(PLAIN | {"plan": {}}).encode(), "a")
    assert found == Workspace(Asked(None, Deployment()))


HOSTILE = [
    (b"", "JSON", ""),
    (b"[1]", "list", ""),
    (b"\xff\xfe", "UTF-8", ""),
    (b"[" * 100_000, "", ""),
    (b'{"schema": "plimsoll.workspace/1", "schema": "x"}', "twice", "schema"),
    ({"schema": "plimsoll.workspace/2"}, "update Plimsoll", "schema"),
    ({"schema": "plimsoll.budget/1"}, "no workspace", "schema"),
    ({"model_type": "llama"}, "no workspace", "schema"),
    (PLAIN | {"verdict": "fits"}, "verdict", "verdict"),
    (PLAIN | {"unit": "GiB\n"}, "GiB, GB", "unit"),
    (PLAIN | {"unit": ["GiB"]}, "GiB, GB", "unit"),
    (PLAIN | {"tab": 3}, "text", "tab"),
    (PLAIN | {"tab": "a\u202eb"}, "visible", "tab"),
    (PLAIN | {"load": []}, "object", "load"),
    (PLAIN | {"load": {"requests": 10**9}}, "1,000", "load.requests"),
    (PLAIN | {"load": {"requests": True}}, "a number", "load.requests"),
    (PLAIN | {"load": {"in_bursts": 1}}, "true or false", "load.in_bursts"),
    (PLAIN | {"load": {"limit_s": float("nan")}}, "3,600", "load.limit_s"),
    (PLAIN | {"load": {"address": "x"}}, "load.address", "load.address"),
    (PLAIN | {"plan": []}, "object", "plan"),
    (PLAIN | {"plan": {"gpu": "H100"}}, "gpu", "plan"),
    (PLAIN | {"plan": {"instead_of": [1]}}, "instead_of", "plan"),
    (PLAIN | {"plan": {"id": "x"}}, "id", "plan"),
    (PLAIN | {"plan": {"concurrency": "4"}}, "whole number", "plan.concurrency"),
    (PLAIN | {"plan": {"concurrency": True}}, "whole number", "plan.concurrency"),
    (PLAIN | {"plan": {"tensor_parallel_size": 10**12}}, "1,024", "plan.tensor_parallel_size"),
    (PLAIN | {"plan": {"max_model_len": 0}}, "at least 1", "plan.max_model_len"),
    (PLAIN | {"plan": {"kv_bits": float("nan")}}, "between", "plan.kv_bits"),
    (PLAIN | {"plan": {"eval": "1"}}, "no setting", "plan.eval"),
    (PLAIN | {"plan": {"draft_model": 7}}, "name or path", "plan.draft_model"),
    (PLAIN | {"plan": {"draft_model": "https://example.org/m"}}, "Hub", "plan.draft_model"),
    (PLAIN | {"machine": {"baseline": "full"}}, "now, empty", "machine.baseline"),
    (PLAIN | {"machine": {"gpu": "x" * 5000}}, "4096", "machine.gpu"),
    (PLAIN | {"machine": {"instead_of": []}}, "machine.instead_of", "machine.instead_of"),
    (PLAIN | {"model": "gpt2"}, "object", "model"),
    (PLAIN | {"model": {}}, "which model", "model.name"),
    (PLAIN | {"model": {"name": "../../etc/passwd"}}, "no name", "model"),
    (PLAIN | {"model": {"name": "//host/share"}}, "no name", "model"),
    (PLAIN | {"model": {"name": "https://example.org/x"}}, "Hub", "model"),
    (PLAIN | {"model": {"name": '{"a": 1}'}}, "no name", "model"),
    (PLAIN | {"model": {"name": "a/b", "revision": "../x"}}, "revision", "model"),
    (PLAIN | {"model": {"name": "a/b", "token": "hf_x"}}, "model.token", "model.token"),
    (PLAIN | {"model": {"pasted": {"a": 1}}}, "config.json", "model.pasted"),
    (PLAIN | {"model": {"pasted": "//host/share"}}, "config.json", "model.pasted"),
    (PLAIN | {"model": {"path": "/a\0b"}}, "visible", "model.path"),
    (PLAIN | {"model": {"measures": {"parameters": -1}}}, "least 1", "model.measures.parameters"),
    (PLAIN | {"machine": []}, "object", "machine"),
    (PLAIN | {"machine": 0}, "object", "machine"),
    (PLAIN | {"machine": {"baseline": ""}}, "now, empty", "machine.baseline"),
    (PLAIN | {"context_assumed": 0}, "true or false", "context_assumed"),
    (PLAIN | {"context_assumed": 1}, "true or false", "context_assumed"),
    (PLAIN | {"with": [{"plan": {}}] * 6}, "at most 5", "with"),
    (PLAIN | {"with": [{"plan": {}, "machine": {}}]}, "with[0].machine", "with[0].machine"),
    (PLAIN | {"compared": {}}, "at most 6", "compared"),
    (PLAIN | {"compared": [{}] * 7}, "at most 6", "compared"),
    (PLAIN | {"compared": [{"plan": {}}, {"plan": None}]}, "object", "compared[1].plan"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "words", "field"), HOSTILE)
def test_that_a_file_that_is_wrong_comes_to_one_sentence_with_the_key(content, words, field):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(WorkspaceError) as caught:
        read(data, "a.plimsoll")
    assert words in caught.value.message
    assert caught.value.field == field
    assert "a.plimsoll" in caught.value.message
    assert caught.value.message.count("\n") == 0
    assert len(caught.value.message) < 400


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["plan", "model", "name", "path", "pasted", "measures", "machine", "gpu",
                         "compared", "unit", "tab", "runtime", "max_model_len", "draft_model"]),
        inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_that_no_shape_of_json_is_more_than_a_sentence(value):
    body = value if isinstance(value, dict) else {"plan": value}
    try:
        read(json.dumps(PLAIN | body).encode(), "a")
    except PlimsollError as error:
        assert error.field  # noqa: PT017 - most shapes are refused, a few are workspaces


def test_that_a_file_beyond_all_measure_is_not_read(tmp_path):
    path = tmp_path / "a.plimsoll"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(WorkspaceError, match="far more than any workspace"):
        read_file(path)


@pytest.mark.parametrize("missing", ["", "folder"])
def test_that_what_is_no_file_is_a_sentence(tmp_path, missing):
    (tmp_path / "folder").mkdir()
    with pytest.raises(PlimsollError, match=r"There is no file|Is a directory"):
        read_file(tmp_path / (missing or "none.plimsoll"))


def test_that_a_workspace_is_a_request_of_the_same_plan():
    asked = Asked(Named("Qwen/Qwen3-8B", "abc"), Deployment(max_model_len=4096), "H100")
    request = parse(as_request(asked))
    assert request.model == "Qwen/Qwen3-8B@abc"
    assert request.deployment == asked.deployment
    assert request.gpu == "H100"
    by_hand = parse(as_request(Asked(Measures(8_030_261_248, 32, 8, 128), Deployment())))
    assert by_hand.config["num_hidden_layers"] == 32
    assert by_hand.gpu is None
    assert parse(as_request(Asked(Named("gpt2"), Deployment(), emptied=True))).empty
    pair = parse(as_request(Asked(Named("gpt2"), Deployment(), "H100", beside=(asked,))))
    # What runs beside a plan starts before it.
    assert (pair.model, pair.gpu) == ("Qwen/Qwen3-8B@abc", "H100")
    assert [other.model for other in pair.others] == ["gpt2"]
    for hidden in (Located("\\\\host\\share\\a.gguf"), Located("//host/share")):
        with pytest.raises(PlimsollError, match="another computer"):
            as_request(Asked(hidden, Deployment()))
        with pytest.raises(PlimsollError, match="another computer"):
            as_request(Asked(Named("gpt2"), Deployment(), draft=hidden))


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (
            Asked(Named("gpt2"), Deployment(max_model_len=2**40, concurrency=3)),
            Asked(Named("gpt2"), Deployment(concurrency=3)),
        ),
        (
            Asked(None, Deployment(tensor_parallel_size=0, gpu_memory_utilization=float("nan"))),
            Asked(None, Deployment()),
        ),
        (
            Asked(Measures(1, 2, 3, 4, name="a\u202eb"), Deployment(), "24 GB\n"),
            Asked(Measures(1, 2, 3, 4, name="a\\u202eb"), Deployment()),
        ),
        (
            Asked(Located("/m/" + "x" * 5000), Deployment(), draft=Named("../x")),
            Asked(None, Deployment()),
        ),
        (
            Asked(None, Deployment(), beside=(Asked(Named("gpt2"), Deployment(concurrency=-1)),)),
            Asked(None, Deployment(), beside=(Asked(Named("gpt2"), Deployment()),)),
        ),
    ],
)
def test_that_what_no_file_may_say_is_left_out_and_the_rest_comes_back(asked, kept):
    assert keepable(asked) == kept
    assert read(written(Workspace(keepable(asked))).encode(), "a").plan == kept


@given(ASKED)
def test_that_what_a_file_may_say_is_kept_as_it_is(asked):
    assert keepable(asked) == asked


@pytest.mark.parametrize("name", ["a\u200eb.gguf", "two\nlines", os.fsdecode(b"caf\xe9")])
def test_that_a_path_may_hold_whatever_a_file_may_be_called(name):
    workspace = Workspace(Asked(Located(f"/models/{name}", name), Deployment()))
    assert read(written(workspace).encode(), "a") == workspace


def test_that_ram_of_another_machine_is_kept_and_asked_for():
    asked = Asked(Named("gpt2"), Deployment(), "H100", host_total_bytes=512 * 2**30)
    text = written(Workspace(asked))
    assert json.loads(text)["machine"]["host_total_bytes"] == 512 * 2**30
    SCHEMA.validate(json.loads(text))
    assert read(text.encode(), "a").plan == asked
    assert parse(as_request(asked)).host_total_bytes == 512 * 2**30


@pytest.mark.parametrize(
    "machine", [{"gpu": "H100", "host_total_bytes": 0}, {"host_total_bytes": 9}]
)
def test_that_ram_which_is_none_or_this_computers_is_refused(machine):
    kept = PLAIN | {"plan": {}, "machine": machine}
    with pytest.raises(WorkspaceError, match="host_total_bytes"):
        read(json.dumps(kept).encode(), "a")
