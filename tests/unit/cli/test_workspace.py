"""A saved workspace in the place of a model's name."""

from __future__ import annotations

import json

import pytest

from engine.cli import main

KEPT = {
    "schema": "plimsoll.workspace/1",
    "model": {"name": "Qwen/Qwen3-8B"},
    "plan": {"runtime": "vllm", "max_model_len": 8192, "concurrency": 4},
    "machine": {"gpu": "RTX 4090"},
    "unit": "GiB",
}


def test_that_a_workspace_is_sized_as_the_options_would_say_it(plimsoll, tmp_path):
    path = tmp_path / "a.plimsoll"
    path.write_text(json.dumps(KEPT))
    said = ("--runtime", "vllm", "--context", 8192, "--concurrency", 4, "--gpu", "RTX 4090")
    assert (
        plimsoll("size", path, "--json").answer
        == plimsoll("size", "Qwen/Qwen3-8B", *said, "--json").answer
    )
    stated = plimsoll("size", path, "--context", 1024, "--json").answer
    assert stated == plimsoll("size", "Qwen/Qwen3-8B", *said, "--context", 1024, "--json").answer


def test_that_a_device_that_is_stated_takes_the_place_of_this_computer(plimsoll, tmp_path):
    path = tmp_path / "a.plimsoll"
    path.write_text(json.dumps(KEPT | {"machine": {"baseline": "empty"}}))
    ran = plimsoll("size", path, "--gpu", "RTX 4090", "--json")
    assert "4090" in ran.answer["ranks"][0]["device"]


def test_that_the_hub_is_not_asked_for_a_model_that_only_the_file_names(plimsoll, tmp_path):
    path = tmp_path / "a.plimsoll"
    path.write_text(json.dumps(KEPT | {"model": {"name": "no/such-model"}}))
    ran = plimsoll("size", path)
    assert ran.status == 2
    assert "the Hub was not asked" in ran.complaint


NEIGHBOUR = {
    "model": {"name": "meta-llama/Llama-3.1-8B"},
    "plan": {"runtime": "vllm", "max_model_len": 4096, "gpu_memory_utilization": 0.4},
}
SHARED = KEPT | {"machine": {"gpu": "H100 SXM"}, "with": [NEIGHBOUR]}
"""A small vLLM that starts first, and the plan beside it."""


@pytest.fixture
def beside(tmp_path):
    path = tmp_path / "beside.plimsoll"
    path.write_text(json.dumps(SHARED))
    return path


def test_that_options_count_for_the_plan_and_not_for_its_neighbour(plimsoll, beside):
    answer = plimsoll("size", beside, "--context", 2048, "--concurrency", 3, "--json").answer
    assert answer["model"]["id"] == "Qwen/Qwen3-8B"
    # 36 layers × 8 heads × 128 × 2 × 2 bytes a token.
    assert answer["sequence_state"]["architecture_bytes_per_sequence"] == 147_456 * 2048
    first, own = (each["answer"] for each in answer["together"]["models"])
    assert first["model"]["id"] == "meta-llama/Llama-3.1-8B"
    assert first["sequence_state"]["architecture_bytes_per_sequence"] == 131_072 * 4096
    assert own["sequence_state"] == answer["sequence_state"]
    # What the neighbour holds counts among the others' memory, for the answer itself too.
    assert held(answer) > 0.35 * 80e9
    assert held(answer) == held(own)


def held(answer):
    return answer["ranks"][0]["regions"]["foreign"]["likely"]


def test_that_the_text_names_both_models_in_the_order_of_their_start(plimsoll, beside):
    ran = plimsoll("size", beside)
    assert ran.output.index("Llama-3.1-8B") < ran.output.index("Qwen3-8B")


def test_that_the_command_written_is_that_of_the_plan(plimsoll, beside):
    ran = plimsoll("launch", beside, "--context", 2048)
    assert "Qwen/Qwen3-8B" in ran.output
    assert "--max-model-len 2048" in ran.output
    assert "Llama" not in ran.output


def test_that_the_report_is_of_the_plan_on_what_the_neighbour_leaves(beside, tmp_path, capsys):
    found = []
    pdf = tmp_path / "a.pdf"
    main(["report", str(beside), "-o", str(pdf)], lambda document, *_: found.append(document))
    capsys.readouterr()
    text = repr(found[0])
    assert "Qwen/Qwen3-8B" in text
    assert "Llama-3.1-8B" in text  # as who holds the rest


def test_that_a_log_is_not_read_beside_several_models(plimsoll, beside, tmp_path):
    ran = plimsoll("report", beside, "--log", "-", "-o", tmp_path / "a.md")
    assert ran.status == 2
    assert "A log is of one model" in ran.complaint


def test_that_the_cache_is_that_of_the_plan_as_it_keeps_it(plimsoll, tmp_path, beside):
    own = plimsoll("kv", "Qwen/Qwen3-8B", "--context", 8192, "--json").answer
    assert plimsoll("kv", beside, "--json").answer == own
    shorter = plimsoll("kv", beside, "--context", 1024, "--json").answer
    assert shorter["total_bytes"] * 8 == own["total_bytes"]
    eight = tmp_path / "eight.plimsoll"
    eight.write_text(json.dumps(KEPT | {"plan": KEPT["plan"] | {"kv_cache_dtype": "fp8"}}))
    assert plimsoll("kv", eight, "--json").answer["total_bytes"] * 2 == own["total_bytes"]
    whole = plimsoll("kv", eight, "--kv-dtype", "bf16", "--json").answer
    assert whole["total_bytes"] == own["total_bytes"]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"runtime": "vllm"}, "say --context"),
        ({"runtime": "vllm", "max_model_len": -1}, "say --context"),
        (
            {"runtime": "llama.cpp", "max_model_len": 8192, "cache_type_k": "q8_0"},
            "keys as q8_0 and values as f16",
        ),
    ],
)
def test_that_a_cache_of_open_questions_is_told_in_one_sentence(plimsoll, tmp_path, plan, words):
    path = tmp_path / "open.plimsoll"
    path.write_text(json.dumps(KEPT | {"plan": plan}))
    ran = plimsoll("kv", path)
    assert ran.status == 2
    assert words in ran.complaint


def test_that_a_cache_of_llama_cpp_is_that_of_its_keys_and_values(plimsoll, tmp_path):
    path = tmp_path / "q8.plimsoll"
    plan = {"runtime": "llama.cpp", "max_model_len": 8192} | dict.fromkeys(
        ("cache_type_k", "cache_type_v"), "q8_0"
    )
    path.write_text(json.dumps(KEPT | {"plan": plan}))
    assert plimsoll("kv", path, "--json").answer["kv_cache_dtype"] == "q8_0"


def test_that_what_is_no_workspace_is_a_sentence(plimsoll, tmp_path):
    path = tmp_path / "a.plimsoll"
    path.write_text("{}")
    assert "no workspace" in plimsoll("size", path).complaint
    path.write_text(json.dumps(KEPT | {"model": {"path": "//host/share"}}))
    assert "another computer" in plimsoll("size", path).complaint
