"""What a report says of how its plan is started."""

from __future__ import annotations

import pytest

from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.report.document import Bullets, Command, Facts, Heading, Paragraph
from engine.report.starting import blocks
from engine.sizing import size


def _blocks(runtime, **asked):
    request = {"model": "Qwen/Qwen3-8B", "gpu": "L40S", "runtime": runtime} | asked
    plan = Desk(CancelToken()).plan(parse(request))
    return blocks(size(plan.model, plan.deployment, plan.machine), plan.deployment)


def test_that_the_command_stands_under_its_runtime_with_its_remarks():
    heading, command, remarks = _blocks("vllm", max_model_len=8192, runtime_version="0.20.2")
    assert heading == Heading("Start it with vLLM 0.20.2")
    assert command == Command("vllm serve Qwen/Qwen3-8B --max-model-len 8192")
    assert isinstance(remarks, Bullets)
    assert remarks.items[0] == "Planned for 1 request of 8,192 tokens on L40S."


def test_that_the_first_pages_verdict_is_not_said_twice():
    *_, remarks = _blocks("vllm", model="meta-llama/Llama-3.1-70B")
    assert not any(item.startswith("Doesn’t fit") for item in remarks.items)


def test_that_a_modelfile_stands_beside_ollamas_server():
    found = [b.text for b in _blocks("ollama", max_model_len=8192) if isinstance(b, Command)]
    assert found == ["ollama serve", "FROM ./Qwen3-8B-Q4_K_M.gguf", "PARAMETER num_ctx 8192"]


def test_that_a_plan_over_several_nodes_has_the_command_of_each():
    found = _blocks(
        "vllm", gpu_count=16, tensor_parallel_size=8, pipeline_parallel_size=2, max_model_len=8192
    )
    (command,) = (block.text for block in found if isinstance(block, Command))
    assert command.startswith("# Put the address of node 0 where HEAD_ADDRESS stands.\n# Node 0")
    assert command.count("vllm serve") == command.count("--nnodes 2") == 2


@pytest.mark.parametrize(("runtime", "kind"), [("jan", Facts), ("transformers", Paragraph)])
def test_that_what_no_command_starts_is_told_in_its_own_way(runtime, kind):
    _, started, _ = _blocks(runtime, max_model_len=4096)
    assert isinstance(started, kind)
