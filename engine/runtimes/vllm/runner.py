"""Which of vLLM's model runners starts a model, and what its profile run samples with.

Source:
    vLLM ``config/vllm.py :: use_v2_model_runner`` (0.22 to 0.33), ``v1/sample/sampler.py``,
    ``v1/sample/ops/topk_topp_sampler.py`` (0.8 to 0.33), ``v1/worker/gpu/sample/sampler.py``.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED, layer_kinds
from engine.devices.device import Vendor
from engine.runtimes.vllm.rules import Since

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.devices.device import Device
    from engine.runtimes.vllm.rules import Version


class Runner(Enum):
    """A generation of vLLM's model runner."""

    V0 = auto()
    """Until 0.7, and until 0.10 on cards before Ampere."""
    V1 = auto()
    V2 = auto()
    """For some models since 0.22, for nearly all since 0.29."""


class Sampling(Enum):
    """How the profile run draws the first tokens: it decides bytes per row and word."""

    SORTED = auto()
    """PyTorch sorts all words of every row."""
    TRITON = auto()
    """A Triton kernel with one row of words for each multiprocessor."""
    FUSED = auto()
    """FlashInfer's kernel on masked logits and their softmax."""
    COPIED = auto()
    """Only a copy of the logits in 32 bits."""
    IN_PLACE = auto()
    """Nothing beside the logits."""


_ALWAYS, _DENSE, _LISTED, _NEVER = "always", "dense", "listed", "never"
_SECOND_RUNNER = Since[str](
    ((0,), _NEVER), ((0, 22), _LISTED), ((0, 25), _DENSE), ((0, 29), _ALWAYS)
)
"""For which models runner 2 is the default: 0.25 to 0.28 for all without experts or states."""
_SECOND_RUNNER_TYPES = Since[frozenset[str]](
    ((0,), frozenset()),
    ((0, 22), frozenset({"qwen3"})),
    (
        (0, 24),
        frozenset({"qwen3", "deepseek_v2", "qwen2_moe", "granitemoe", "llama", "mistral"}),
    ),
    ((0, 25), frozenset({"deepseek_v2", "qwen2_moe", "granitemoe"})),
    ((0, 28), frozenset({"deepseek_v2", "qwen2_moe", "granitemoe", "deepseek_v4"})),
)
_OF_SECOND_RUNNER = Since[Sampling](
    ((0,), Sampling.COPIED),
    ((0, 26), Sampling.IN_PLACE),
    ((0, 27), Sampling.COPIED),
    ((0, 28), Sampling.IN_PLACE),
    ((0, 33), Sampling.FUSED),
)
"""What runner 2 profiles with: until 0.32 it skips top-k and top-p."""
_OF_FIRST_RUNNER = Since[Sampling](
    ((0,), Sampling.SORTED), ((0, 17), Sampling.TRITON), ((0, 21), Sampling.FUSED)
)
_FEW_ROWS = 8
"""Below this many rows, 0.17 to 0.20 sort as before."""


@lru_cache(maxsize=CACHED)
def runner(
    spec: ArchitectureSpec, version: Version, capability: float, weight_format: str
) -> Runner:
    """The model runner that ``version`` starts ``spec`` with.

    Args:
        spec: the model.
        version: of vLLM.
        capability: CUDA compute capability; 0 where it is not known.
        weight_format: of the weights as loaded.
    """
    if version < (0, 8) or (version < (0, 11) and 0 < capability < 8):
        return Runner.V0
    rule = _SECOND_RUNNER.at(version)
    return Runner.V2 if _is_second(spec, version, rule, weight_format) else Runner.V1


def _is_second(spec: ArchitectureSpec, version: Version, rule: str, weight_format: str) -> bool:
    if rule in (_ALWAYS, _NEVER):
        return rule == _ALWAYS
    is_listed = spec.root_type in ("", spec.model_type)
    is_listed = is_listed and spec.model_type in _SECOND_RUNNER_TYPES.at(version)
    if version < (0, 24):
        return is_listed and weight_format in ("bf16", "fp16", "fp32")
    kinds = [layer for layer, _ in layer_kinds(spec)]
    plain = all(la.moe is None and la.state is None for la in kinds)
    return is_listed or (rule == _DENSE and plain and any(la.attention for la in kinds))


def sampling(found: Runner, version: Version, device: Device, rows: int) -> Sampling:
    """What the profile run samples with; FlashInfer's kernels are for NVIDIA since Turing."""
    if found is Runner.V0:
        return Sampling.SORTED
    table = _OF_SECOND_RUNNER if found is Runner.V2 else _OF_FIRST_RUNNER
    kind = table.at(version)
    fuses = device.vendor is Vendor.NVIDIA and not 0 < device.compute_capability < 7.5
    if kind is Sampling.FUSED and not fuses:
        kind = Sampling.TRITON
    return Sampling.SORTED if kind is Sampling.TRITON and rows < _FEW_ROWS else kind
