"""Cosines and sines of every position: in the figure that vLLM prints for the weights.

Source:
    vLLM 0.33 ``model_executor/layers/rotary_embedding``; the same 8.03 B parameters print 14.9888
    and 14.9595 GiB at 131,072 and 8,192 positions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from engine.architecture.spec import AttentionKind, ModuleClass
from engine.budget.sequence_state import CACHED, attention_kinds, layer_kinds
from engine.evidence import Basis, Estimate, exactly
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec

_SOURCE, _LABEL = "vLLM rotary_embedding/base.py", tr_later("rotary table")
_TWO_BASES = ("gemma3", "gemma4")
"""Families whose sliding and full layers turn by different bases: two tables."""
_GEMMA_3_SCALING = 8
"""Linear rotary scaling of the multimodal Gemma 3: the full layers' table is as much longer."""
_PARTS = {
    "gpt_neox": 0.25, "stablelm": 0.25, "glm": 0.5, "chatglm": 0.5, "qwen3_next": 0.25,
    "qwen3_5": 0.25, "nemotron": 0.5, "persimmon": 0.5, "minimax": 0.5,
}  # fmt: skip
"""How a type begins -> the part of each head that turns, where the config leaves it out."""
_UNSTATED = ("phi_", "gptj", "codegen")
"""Families that turn a part of each head which follows from no key read here."""
_NONE = (
    "gpt2", "gpt_bigcode", "opt", "bloom", "mpt", "xglm", "biogpt", "falcon_mamba", "mamba",
    "nemotron_h", "jamba", "whisper", "bert", "roberta", "xlm_roberta", "bart", "t5", "kimi_linear",
)  # fmt: skip
"""Families whose layers in vLLM have no rotary table."""
_TWO_IN_32_BITS = ("deepseek_v4",)
"""Families with one table for plain layers and one for those that compress, both in 32 bits
(``DeepseekV4ScalingRotaryEmbedding``, ``deepseek_v4/common/rope.py``)."""
_UNTURNED = ("nope", "absolute", "alibi", "learned")
_SECTIONS_FACTOR = 4
"""How many times as long the table is of models that turn by time, height and width
(``mrope.py``)."""
_FROM_FIRST = ("yarn", "deepseek_yarn")
"""Scalings whose table is as much longer than the first positions; that of others is as long as
the context that the config allows."""


class _Turning(NamedTuple):
    """What a config says of its rotary table."""

    positions: int
    part: float | None
    """Of each head; None where the config does not say."""
    absent: bool


@lru_cache(maxsize=CACHED)
def rotary_table(model: Model, element_bytes: int) -> Estimate | None:
    """The table of one rank; None where the model has none."""
    spec = model.spec
    attention = next(iter(attention_kinds(spec)), None)
    stated = _stated(model)
    kind = spec.model_type
    if attention is None or stated is None or stated.absent or kind.startswith(_NONE):
        return None
    if kind == "granitemoehybrid" and any(layer.state for layer, _ in layer_kinds(spec)):
        # Published with ``position_embedding_type`` "nope", beside states at least.
        return None
    if kind.startswith(_TWO_BASES):
        return _two_tables(spec, stated.positions, element_bytes)
    width = attention.qk_rope_head_dim or attention.head_dim
    if kind.startswith(_TWO_IN_32_BITS):
        formula = tr("2 tables × {positions} positions × {width} × 4 B").format(
            positions=grouped(stated.positions), width=width
        )
        return exactly(stated.positions * width * 8, Basis.EXACT, _SOURCE, formula, tr(_LABEL))
    if attention.kind is not AttentionKind.LATENT:
        part = stated.part or next((p for k, p in _PARTS.items() if kind.startswith(k)), 1.0)
        width = round(width * part)
    size = stated.positions * width * element_bytes
    formula = tr("{positions} positions × {width} × {element_bytes} B").format(
        positions=grouped(stated.positions), width=width, element_bytes=element_bytes
    )
    if f"{kind}_".startswith(_UNSTATED) and stated.part is None:
        return Estimate(
            0,
            size // 2,
            size,
            Basis.ASSUMED,
            _SOURCE,
            tr("up to {formula}").format(formula=formula),
            tr(_LABEL),
        )
    return exactly(size, Basis.EXACT, _SOURCE, formula, tr(_LABEL))


def _two_tables(spec: ArchitectureSpec, positions: int, element_bytes: int) -> Estimate:
    """One as wide as the sliding layers' heads, one as the full layers'; Gemma 4 pads it so."""
    scaled = any(tensor.module is ModuleClass.VISION for tensor in spec.outer)
    longer = _GEMMA_3_SCALING if scaled and spec.model_type.startswith("gemma3") else 1
    widths = {bool(a.window): a.head_dim for a in attention_kinds(spec)}
    sliding, full = widths.get(True, 0), widths.get(False, 0)
    size = positions * (sliding + full * longer) * element_bytes
    formula = tr(
        "{positions} positions × ({sliding} + {longer} × {full}) × {element_bytes} B"
    ).format(
        positions=grouped(positions),
        sliding=sliding,
        longer=longer,
        full=full,
        element_bytes=element_bytes,
    )
    return exactly(size, Basis.EXACT, _SOURCE, formula, tr(_LABEL))


def _stated(model: Model) -> _Turning | None:
    """What the config says; None where the model has no positions to turn by."""
    config = _text(model.config or {})
    scaling = _mapping(config.get("rope_parameters")) or _mapping(config.get("rope_scaling"))
    positions = model.spec.max_position_embeddings or 0
    if not positions:
        return None
    kind = scaling.get("rope_type", scaling.get("type"))
    factor = _number(scaling.get("factor"))
    first = _number(scaling.get("original_max_position_embeddings"))
    if kind in _FROM_FIRST and factor and first:
        positions = round(first * factor)
    elif kind in ("longrope", "su") and first:
        positions += round(first)
    if "mrope_section" in scaling:
        positions *= _SECTIONS_FACTOR
    return _Turning(positions, _part(config, scaling), config.get(_KEY) in _UNTURNED)


_KEY = "position_embedding_type"


def _part(config: Mapping[str, Any], scaling: Mapping[str, Any]) -> float | None:
    names = ("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction")
    stated = [scaling.get(names[0]), *(config.get(name) for name in names)]
    found = next((n for n in map(_number, stated) if n), None)
    return min(found, 1.0) if found else None


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that is about the decoder."""
    inner = _mapping(config.get("text_config")) or _mapping(config.get("llm_config"))
    return inner or config


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    """A sound number above 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 2**31 else None  # type: ignore[operator]
