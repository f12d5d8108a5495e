"""Whatever is pasted is a plan or one sentence."""

from __future__ import annotations

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
