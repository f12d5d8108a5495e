"""What a start holds beside its tensors in the figure that vLLM prints for the weights.

Source:
    vLLM 0.22 to 0.33 ``models/deepseek_v4``, ``deepseek_v2.py``, ``gemma3n_mm.py`` and
    ``gemma4_mm.py`` (buffers of the model), ``platforms/rocm.py :: get_current_memory_usage``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.architecture.spec import ModuleClass
from engine.evidence import Basis, Estimate, exactly
from engine.units import MIB
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model

_SOURCE = "vLLM models/deepseek_v4/model.py, deepseek_v2.py, gemma3n_mm.py, gemma4_mm.py"
_KEEPS_STREAMS = ("deepseek_v4",)
"""Types whose last stage keeps the hidden states of a step for a draft, whether or not it has one
(``_mtp_hidden_buffer``)."""
_KEEPS_EMBEDDINGS = ("gemma3n", "gemma4")
"""Roots that keep what every layer looks up for a token, for graphs to read it at one place."""


def of_model(model: Model, tokens: int, *, is_last: bool) -> Estimate | None:
    """Buffers that the model makes for one step: keys, embeddings, hidden states for a draft.

    Args:
        model: as read.
        tokens: ``max_num_batched_tokens``.
        is_last: whether the rank holds the last layers.
    """
    config = model.config or {}
    chosen = 4 * _count(config.get("index_topk"))
    streams = 0
    if is_last and model.spec.model_type.startswith(_KEEPS_STREAMS):
        streams = 2 * _count(config.get("hc_mult")) * model.spec.hidden_size
    looked_up = 0
    if model.spec.root_type in _KEEPS_EMBEDDINGS:
        text = cast("Mapping[str, object]", config.get("text_config") or {})
        width = _count(text.get("hidden_size_per_layer_input"))
        looked_up = 2 * width * len(model.spec.layers)
    row = chosen + streams + looked_up
    if not row:
        return None
    return exactly(
        tokens * row,
        Basis.EXACT,
        _SOURCE,
        tr("{tokens} tokens × {row} B").format(tokens=grouped(tokens), row=grouped(row)),
        tr("step buffers"),
    )


def small(model: Model, size_bytes: int, tp: int, *, quantised: bool) -> Estimate:
    """Buffers of layers and kernels, and small tensors rounded up, which nobody lists.

    Of an encoder under tensor parallelism some classes keep a projector whole.
    """
    source = tr(
        "80 logged starts: at most 0.1 % more than their tensors, 0.5 % where quantised or "
    )
    source += tr("where an encoder is cut")
    cut_encoder = tp > 1 and any(t.module is ModuleClass.VISION for t in model.spec.outer)
    high = 16 * MIB + size_bytes // (200 if quantised or cut_encoder else 1000)
    return Estimate(0, 0, high, Basis.FITTED, source, "", tr("small buffers"))


def zero_points(packed_bytes: int) -> Estimate:
    """Zero points of GPTQ, which Marlin's kernels drop where weights are symmetric.

    They are 3/400 of what is packed in groups of 128, in 4 bits and in 8.
    """
    source = tr(
        "vLLM gptq_marlin.py; two packings of Llama-3.1-8B, symmetric and not, 0.027 GiB apart"
    )
    return Estimate(
        -packed_bytes * 3 // 400, 0, 0, Basis.FITTED, source, "", tr("zero points dropped")
    )


def packing(size_bytes: int) -> Estimate:
    """Which modules are packed is for a file's publisher to choose, where there is no file yet."""
    source = tr("eight files of other publishers: 1.1 % less to 3 % more than all layers packed")
    low, high = -size_bytes * 12 // 1000, size_bytes * 3 // 100
    return Estimate(low, 0, high, Basis.FITTED, source, "", tr("the publisher's packing"))


def read_from_device(size_bytes: int) -> Estimate:
    """What ROCm's figure has beside tensors: it is read from the device, not from PyTorch."""
    source = tr("vLLM platforms/rocm.py; five starts: 0.06 GiB at 1 GiB, 0.3 to 2 % of larger ones")
    likely, high = 32 * MIB + size_bytes * 3 // 1000, 64 * MIB + size_bytes // 50
    return Estimate(0, likely, high, Basis.FITTED, source, "", tr("held by the allocator"))


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 20 else 0
