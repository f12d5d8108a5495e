"""A saved workspace in the place of a model's name."""

from __future__ import annotations

import json

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


def test_that_what_is_no_workspace_is_a_sentence(plimsoll, tmp_path):
    path = tmp_path / "a.plimsoll"
    path.write_text("{}")
    assert "no workspace" in plimsoll("size", path).complaint
    path.write_text(json.dumps(KEPT | {"model": {"path": "//host/share"}}))
    assert "another computer" in plimsoll("size", path).complaint
