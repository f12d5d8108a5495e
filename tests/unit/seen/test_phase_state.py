"""What a look says of the phase of a run; what a runtime doesn't state is no nought."""

from __future__ import annotations

from dataclasses import replace

from engine.overlay.state import Stated
from engine.seen.model import ModelSeen, PoolSeen, Reach, RuntimeSeen
from engine.seen.modelled import is_of
from engine.seen.phase_state import phase_state
from tests.helpers import sizings


def test_that_every_figure_of_a_look_is_passed_on():
    seen = RuntimeSeen(
        "vllm", "vLLM", Reach.ANSWERS, model=ModelSeen("m"), running=3,
        pool=PoolSeen(43488, used_share=0.52, used_tokens=22614, evictable_tokens=614),
        prompt_tokens=9000, output_tokens=1200,
    )  # fmt: skip
    assert phase_state(seen) == Stated(True, 3, 0.52, 22000, 9000, 1200)


def test_that_a_silent_runtime_leaves_all_unknown():
    assert phase_state(RuntimeSeen("vllm", "vLLM")) == Stated()


def test_that_one_that_loads_is_not_loaded():
    assert phase_state(RuntimeSeen("vllm", "vLLM", Reach.LOADING)).is_loaded is False


def test_that_a_file_of_this_computer_is_its_model_with_or_without_the_end():
    model = replace(sizings.model(), id="tiny-Q4_K_M")
    seen = RuntimeSeen(
        "llama.cpp", "llama.cpp", Reach.ANSWERS, model=ModelSeen("/models/tiny-Q4_K_M.gguf")
    )
    assert is_of(seen, model)
    assert not is_of(seen, replace(model, id="other-Q4_K_M"))
