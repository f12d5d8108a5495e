"""Whatever is pasted is a plan or one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import PlimsollError
from engine.launch.read import read

WORDS = st.sampled_from([
    "vllm", "serve", "llama-server", "docker", "run", "python", "-m", "sglang.launch_server",
    "ollama", "FROM", "PARAMETER", "num_ctx", "-c", "-np", "-fa", "--model", "--max-model-len",
    "--speculative-config", "{}", '{"method":1}', "0", "-1", "1e400", "9" * 60, "'", '"', "\\",
    "\n", "#", "=", "A=", "=B", "--", "-", "", "\0", "\u202e", "vllm/vllm-openai:v0.9", "--gpus",
    "device=", "-e", "OLLAMA_NUM_PARALLEL=x", "CUDA_VISIBLE_DEVICES=,", "-ts", ",", "3,1", "&&",
])  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(text=st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=25).map(" ".join)))
def test_that_any_text_is_a_plan_or_one_sentence(text):
    told = ""
    try:
        found = read(text)
    except PlimsollError as error:
        found, told = None, error.message
    assert "\n" not in told
    if found is None:
        return
    assert found.deployment.runtime == found.runtime
    assert all(word.isprintable() for word in found.strays)


LONG = 20_000
CALL = "m = AutoModel.from_pretrained('X/Y', {})"


@pytest.mark.parametrize(
    "text",
    [
        CALL.format("a=" + "-" * 900 + "1"),
        CALL.format("a=" + "b." * 3_000 + "c"),
        "AutoModel" + ".a" * 5_000 + ".from_pretrained('X/Y')",
        CALL.format("a=" + "+".join("1" * 900)),
        CALL.format("a=0x" + "f" * 10_000),
        CALL.format("dtype=1e999") + "\nm.generate(max_length=0x" + "f" * 10_000 + ")",
        "m = AutoModel.from_pretrained('X/Y')\nm.generate(cache_config={'nbits': 0x"
        + "f" * 5_000 + "})",
        CALL.format("") + "\nm.generate(['p'] * 0x" + "f" * 5_000 + ")",
        "vllm serve X/Y --speculative-config " + "[" * 15_000,
        "vllm serve X/Y --gpu-memory-utilization nan --max-model-len " + "9" * 5_000,
        "\n" * LONG, " " * LONG, " \n" * (LONG // 2), "FROM" + " " * (LONG - 4),
        "FROM x\n" + "PARAMETER" + " " * (LONG - 20), "$env:A =" + " " * (LONG - 10),
        "\\" * LONG, " \\" * (LONG // 2), "!" * LONG, "!\\\n" * (LONG // 3), "<<a\n" * (LONG // 4),
        "In [" * (LONG // 4), "a@b" * (LONG // 3), "%env a " * (LONG // 7), '"""\n' * (LONG // 4),
    ],
)  # fmt: skip
def test_that_long_and_deep_text_is_a_plan_or_one_sentence(text):
    told = ""
    try:
        found = read(text[:LONG])
    except PlimsollError as error:
        found, told = None, error.message
    assert "\n" not in told
    if found is None:
        return
    assert "nan" not in repr(found.stated)
    assert found.runtime in ("transformers", "vllm", "ollama")
    assert all(len(word) <= 200 for word in (*found.strays, *found.notes))
