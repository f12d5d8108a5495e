"""A runtime's own doubts: kinds of caches whose form in it nothing shows."""

from __future__ import annotations

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, Subject
from engine.runtimes.kept import doubts_in


@pytest.mark.parametrize("runtime", ["vLLM", "llama.cpp"])
@pytest.mark.parametrize("model_type", ["qwen3_next", "mamba2", "kimi_linear", "llama"])
def test_that_states_of_known_form_are_not_doubted(model_type: str, runtime: str) -> None:
    assert doubts_in(specify({"model_type": model_type}), runtime) == ()


@pytest.mark.parametrize(
    ("model_type", "runtime"),
    [
        ("rwkv", "vLLM"), ("xlstm", "llama.cpp"), ("recurrent_gemma", "vLLM"),
        ("minimax", "llama.cpp"), ("inkling_text", "vLLM"), ("deepseek_v4", "vLLM"),
        ("deepseek_v4", "llama.cpp"),
    ],
)  # fmt: skip
def test_that_what_nothing_shows_is_doubted(model_type: str, runtime: str) -> None:
    spec = specify({"model_type": model_type})
    assert spec.doubts == ()
    (doubt,) = doubts_in(spec, runtime)
    assert (doubt.subject, doubt.direction) == (Subject.SEQUENCE_STATE, Direction.EITHER)
    assert doubt.reason.find(runtime) >= 0
