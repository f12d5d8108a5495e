"""The smallest change that would have helped, for kinds of failures that are easily mixed up."""

from __future__ import annotations

from tests.helpers import logs
from tests.helpers.log_lines import BUILD, CUDA_MALLOC, FILE, LLAMA
from tests.helpers.logs import GIB, MIB, explained, frame, torch_oom

UP = logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL + logs.VLLM_UP
SMALL_CARD = (
    BUILD + "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 3050) - "
    "3800 MiB free\n" + FILE + "print_info: file type   = Q4_K - Medium\n"
    + CUDA_MALLOC.format("4403.49")
    + "alloc_tensor_range: failed to allocate CUDA0 buffer of size 4617396224\n"
    "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
)  # fmt: skip
TOO_LONG = (
    "srv    send_error: task id = 3, error: request ({} tokens) exceeds the available context size "
    "(8192 tokens), try increasing it\n"
)


def labels(text: str, **given: object) -> list[str]:
    return [one.label for one in explained(text, **given).remedies]


def test_that_weights_are_short_by_what_the_device_lacked_and_fewer_layers_help() -> None:
    run = explained(SMALL_CARD)
    assert run.cause is not None
    # 4,403.49 MiB at once; free were 3,800, of which the driver takes up to 1,024 itself.
    short = run.cause.short_bytes
    assert short is not None
    assert abs(short - round((4403.49 - 3800 + 1024) * MIB)) <= MIB
    first = run.remedies[0]
    assert first.label.endswith("layers on the GPU")
    assert first.deployment is not None
    assert 0 < (first.deployment.n_gpu_layers or 0) < 33


def test_that_a_prompt_that_is_too_long_asks_for_a_longer_context_and_no_shorter_one() -> None:
    text = LLAMA + "llama_context: n_ctx         = 8192\n"
    assert labels(text + TOO_LONG.format(9000), gpu="RTX 4090")[0] == "Context 16k"
    assert labels(text + TOO_LONG.format(30000), gpu="RTX 4090")[0] == "Context 32k"
    warning = "WARNING Input prompt (9000 tokens) is too long and exceeds limit of 8192\n"
    assert labels(UP + warning, gpu_total_bytes=round(23.64 * GIB))[0] == "Context 16k"


def test_that_a_run_that_served_leaves_more_beside_its_pool_and_keeps_its_weights() -> None:
    step = frame("vllm/v1/worker/gpu_model_runner.py", "execute_model") + torch_oom(
        asked="1.20 GiB", free="14.44 MiB"
    )
    found = labels(UP + step, gpu_total_bytes=round(23.64 * GIB))
    # 0.92 of 23.64 GiB less 1.19 is 0.869: the next hundredth below.
    assert found == ["Utilisation 0.86"]


def test_that_of_steps_of_one_setting_the_first_that_is_enough_is_told() -> None:
    found = labels(logs.VLLM_HEAD + logs.RANK, gpu="RTX 4090")
    assert len(found) == len({label.rpartition(" ")[0] for label in found})
