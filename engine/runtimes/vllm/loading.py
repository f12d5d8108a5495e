"""What vLLM holds beside the weights while it loads them.

Source:
    vLLM 0.19 ``model_loader/base_loader.py`` ("Peak GPU memory usage while loading weights"),
    which 41 logged starts on H100 print; ``quantization/fp8.py`` by release (pull requests 29196
    and 31914); ``fused_moe/oracle`` and ``marlin_utils.py`` for layouts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED, layer_kinds
from engine.budget.sharding import VOCAB_MULTIPLE
from engine.budget.weights import layer_sizes
from engine.evidence import Basis, Estimate
from engine.formats.weights import FORMATS
from engine.runtimes.loading import stored_format
from engine.runtimes.vllm.fused import fused_sizes
from engine.runtimes.vllm.parallel import has_experts
from engine.runtimes.vllm.rules import Since
from engine.units import align_up
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.runtimes.vllm.loader import Loading

_BUFFER, _HEAD = tr_later("input buffer"), tr_later("head before it is tied")
_MATRIX, _WHOLE = tr_later("a matrix in 16 bits"), tr_later("weights in 16 bits")
WHILE_READING = frozenset({_BUFFER, _HEAD, _MATRIX, _WHOLE})
"""Parts that lie there while files are read: those of the peak that vLLM prints."""
_BUFFERED_SINCE, _UNBUFFERED = (0, 8), (0, 22)
"""The first release whose runner keeps embeddings of a step before it loads, and the first some of
whose runners do not."""
_TIED_AT_ONCE = ("gemma", "gemma2", "qwen2", "qwen3")
"""Types whose head is the embedding from the start; of others a head is made and then let go of,
as Gemma 3 and Granite 3.1 show."""
_ONLINE = Since[str](((0,), "whole"), ((0, 13), "twice"), ((0, 15), "matrix"))
"""What of a model quantised to FP8 lies in 16 bits at once: all of it in place of the rest, all
of it beside the rest, one matrix."""
_QUANTISED_ON_THE_WAY = ("fp8", "nf4", "int8")
_LAID_OUT_ANEW = ("gptq", "awq", "w4a16", "mxfp4", "nvfp4", "mxfp8")
_PLAIN = ("bf16", "fp16", "fp32")


@lru_cache(maxsize=CACHED)
def transients(model: Model, layers: range, fmt: str, loading: Loading) -> tuple[Estimate, ...]:
    """Parts of one rank that holds ``layers`` in ``fmt``, at the worst moment of loading."""
    parts = (
        _input_buffer(model, loading),
        _untied_head(model, layers, loading),
        _unquantised(model, layers, fmt, loading),
        _laid_out(model, layers, fmt, loading),
    )
    return tuple(part for part in parts if part is not None and part.high_bytes)


def _input_buffer(model: Model, loading: Loading) -> Estimate | None:
    """Embeddings of one step, which the runner makes room for first."""
    if loading.version < _BUFFERED_SINCE:
        return None
    size = loading.tokens * model.spec.hidden_size * loading.element_bytes
    formula = tr("{tokens} tokens × {hidden_size} × {element_bytes} B").format(
        tokens=grouped(loading.tokens),
        hidden_size=grouped(model.spec.hidden_size),
        element_bytes=loading.element_bytes,
    )
    low = 0 if loading.version >= _UNBUFFERED else size
    source = "vLLM gpu_model_runner.py (inputs_embeds)"
    return Estimate(low, size, size, Basis.FITTED, source, formula, tr(_BUFFER))


def _untied_head(model: Model, layers: range, loading: Loading) -> Estimate | None:
    spec = model.spec
    if not spec.tie_word_embeddings or layers.stop != len(spec.layers):
        return None
    words = align_up(spec.vocab_size, VOCAB_MULTIPLE) // loading.split.tensor_parallel_size
    size = words * spec.hidden_size * loading.element_bytes
    at_once = spec.model_type in _TIED_AT_ONCE
    formula = tr("{words} words × {hidden_size} × {element_bytes} B").format(
        words=grouped(words),
        hidden_size=grouped(spec.hidden_size),
        element_bytes=loading.element_bytes,
    )
    source = "vLLM models/*.py (tie_weights)"
    likely = 0 if at_once else size
    return Estimate(0, likely, size, Basis.FITTED, source, formula, tr(_HEAD))


def _unquantised(model: Model, layers: range, fmt: str, loading: Loading) -> Estimate | None:
    """What is still in 16 bits of a model that is quantised while it is loaded."""
    quantises = fmt.startswith(_QUANTISED_ON_THE_WAY) and fmt in FORMATS
    if not quantises or stored_format(model) not in _PLAIN:
        return None
    plain, packed = (_largest(model, layers, loading, name) for name in ("bf16", fmt))
    kind = _ONLINE.at(loading.version) if fmt.startswith("fp8") else "matrix"
    source = "vLLM quantization/fp8.py: pull requests 29196, 31914"
    if kind == "matrix":
        # The last one: its own packed form lies beside it, what follows does not yet.
        size = max(plain - packed, 0)
        return Estimate(0, size, plain + packed, Basis.FITTED, source, "", tr(_MATRIX))
    whole, rest = (_matrices(model, layers, loading, name) for name in ("bf16", fmt))
    size = whole if kind == "twice" else max(whole - rest, 0) + packed
    return Estimate(0, size, size + plain, Basis.FITTED, source, "", tr(_WHOLE))


def _laid_out(model: Model, layers: range, fmt: str, loading: Loading) -> Estimate | None:
    """The new form of a layer's largest matrix, or of its experts, while the old one is there.

    Experts in 16 bits or FP8 keep their form on Triton's kernels; AITER's and FlashInfer's have
    one of their own.
    """
    anew = fmt.startswith(_LAID_OUT_ANEW)
    if fmt not in FORMATS or not (anew or has_experts(model.spec)):
        return None
    size = _largest(model, layers, loading, fmt)
    source = "vLLM marlin_utils.py, fused_moe/oracle: process_weights_after_loading"
    likely, high = (size, 2 * size) if anew else (0, size)
    return Estimate(
        0, likely, high, Basis.ASSUMED, source, f"{grouped(size)} B", tr("a layer laid out anew")
    )


def _largest(model: Model, layers: range, loading: Loading, fmt: str) -> int:
    return max(_sizes(model, layers, loading, fmt), default=0)


def _matrices(model: Model, layers: range, loading: Loading, fmt: str) -> int:
    return sum(_sizes(model, layers, loading, fmt))


def _sizes(model: Model, layers: range, loading: Loading, fmt: str) -> list[int]:
    """Bytes in ``fmt`` of every matrix of ``layers`` as vLLM joins them."""
    sizes = layer_sizes(model.spec, loading.split, fmt)
    return [
        size
        for layer, count in layer_kinds(model.spec, layers.start, layers.stop)
        for size in fused_sizes(layer, sizes[id(layer)])
        for _ in range(count)
    ]
