"""``plimsoll launch`` and ``--from-command`` as a person or a script uses them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from engine.cli.entry import main

_SCHEMAS = Path(__file__).parents[3] / "resources" / "schema"


def _out(capsys, *argv):
    status = main(argv)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_that_the_command_is_written_with_its_remarks(capsys):
    status, out, _ = _out(
        capsys, "launch", "Qwen/Qwen3-8B", "--gpu", "2 x RTX 4090", "--tp", "2", "-c", "16k",
        "--runtime", "vllm",
    )  # fmt: skip
    assert status == 0
    assert out.splitlines()[-1] == (
        "vllm serve Qwen/Qwen3-8B --max-model-len 16384 --tensor-parallel-size 2"
    )
    assert out.startswith("# Planned for 1 request of 16,384 tokens on 2 × RTX 4090.")


def test_that_one_form_can_be_asked_for_and_a_wrong_one_is_told(capsys):
    plan = ("launch", "Qwen/Qwen3-8B", "--gpu", "L40S", "--runtime", "vllm", "--form")
    _, out, _ = _out(capsys, *plan, "kubernetes")
    assert "nvidia.com/gpu: 1" in out
    status, out, err = _out(capsys, *plan, "ansible")
    assert (status, out) == (2, "")
    assert "say command, docker, compose, kubernetes, or all" in err


def test_that_the_json_is_as_its_schema_says(capsys):
    _, out, _ = _out(
        capsys, "launch", "Qwen/Qwen3-8B", "--gpu", "L40S", "--runtime", "vllm", "--json"
    )
    answer = json.loads(out)
    schema = json.loads((_SCHEMAS / "launch.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(answer, schema)
    assert answer["words"] == ["vllm", "serve", "Qwen/Qwen3-8B"]


def test_that_a_local_file_is_named_by_its_path(capsys, tmp_path):
    folder = tmp_path / "qwen"
    folder.mkdir()
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 512,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    _, out, _ = _out(capsys, "launch", str(folder), "--gpu", "L40S", "--runtime", "vllm")
    assert out.splitlines()[-1] == f"vllm serve {folder}"


def test_that_a_command_is_sized_as_the_plan_that_it_starts(capsys):
    command = "vllm serve Qwen/Qwen3-8B --max-model-len 32768 --kv-cache-dtype fp8 --foo 3"
    _, by_command, _ = _out(capsys, "size", "--from-command", command, "--gpu", "L40S", "--json")
    _, by_hand, _ = _out(
        capsys, "size", "Qwen/Qwen3-8B", "--runtime", "vllm", "-c", "32768", "--kv-cache-dtype",
        "fp8", "--gpu", "L40S", "--json",
    )  # fmt: skip
    found, expected = json.loads(by_command), json.loads(by_hand)
    assert found["ranks"] == expected["ranks"]
    remark = "The command’s --foo 3 isn’t understood, and counts for nothing here."
    assert remark in found["warnings"]
    assert remark not in expected["warnings"]


def test_that_what_is_given_beside_a_command_counts_before_it(capsys):
    status, out, err = _out(
        capsys, "launch", "--from-command", "vllm serve Qwen/Qwen3-8B --max-model-len 32768 --foo",
        "--runtime", "sglang", "-c", "4096", "--gpu", "L40S",
    )  # fmt: skip
    assert status == 0
    assert out.splitlines()[-1].endswith("--model-path Qwen/Qwen3-8B --context-length 4096")
    assert "--foo isn’t understood" in err


@pytest.mark.parametrize("command", ["ls", "vllm serve 'x"])
def test_that_what_is_no_command_is_one_sentence(capsys, command):
    status, out, err = _out(capsys, "size", "--from-command", command)
    assert (status, out) == (2, "")
    assert err.startswith("plimsoll: ")
    assert len(err.strip().splitlines()) == 1


_LARGE = (
    "launch", "meta-llama/Llama-3.1-70B", "--gpu", "16 x H100 SXM 80GB", "--tp", "8", "--pp", "2",
    "--runtime", "vllm", "-c", "8192",
)  # fmt: skip


def test_that_a_plan_for_several_nodes_is_written_for_nodes_of_the_size_that_is_said(capsys):
    status, out, _ = _out(capsys, *_LARGE, "--form", "multi-node")
    assert status == 0
    assert (out.count("vllm serve"), out.count("--nnodes 2")) == (2, 2)
    status, out, err = _out(capsys, *_LARGE, "--form", "ray-serve", "--gpus-per-node", "16")
    assert (status, out) == (2, "")
    assert "say command, docker, compose, kubernetes, or all" in err


def test_that_a_node_without_devices_is_refused(capsys):
    status, out, err = _out(capsys, *_LARGE, "--gpus-per-node", "0")
    assert (status, out) == (2, "")
    assert "'0' is not a number of devices" in err


def test_that_the_json_of_a_plan_for_several_nodes_is_as_its_schema_says(capsys):
    _, out, _ = _out(capsys, *_LARGE, "--json")
    schema = json.loads((_SCHEMAS / "launch.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(out), schema)
    assert {"multi-node", "ray-serve"} <= set(json.loads(out)["forms"])
