"""What vLLM profiles of images, video or sound before the language model runs.

It encodes as many of the largest items as one step may hold. Their pixels (until model runner 2)
and their embeddings stay while the language model and the sampler run.

Source:
    vLLM ``gpu_model_runner.py :: profile_run``, ``multimodal/encoder_budget.py`` (0.19) and
    ``v1/worker/gpu/mm/encoder_runner.py`` (0.33); sizes of items from the models' processors.
    Gemma 3 4B and 12B hold 0.18 and 0.20 GiB more than text alone under 0.19: 32 images of
    3 × 896 × 896 and 8,192 embeddings.
    Gemma 4: ``models/gemma4_mm.py`` (videos of 32 frames; ``_encoder_chunk``) and transformers
    5.24.0 ``gemma4/modeling_gemma4.py :: _position_embeddings``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from engine.architecture.spec import ModuleClass
from engine.budget.sequence_state import CACHED
from engine.evidence import Basis, Estimate
from engine.units import GIB, MIB
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.runtimes.vllm.rules import Version

_SOURCE = tr_later("vLLM profile_run with the largest items; Gemma 3 4B and 12B within 0.01 GiB")
_UNKNOWN = tr_later("Gemma 3 holds 0.18 GiB more, Qwen2.5-VL 2 GiB more than text alone")
_BATCHED, _IN_TURNS = (0, 23), (0, 22)
"""The first version that surely encodes frames together, and the first that may not go in turns."""
_WRITTEN_OUT = "vLLM models/gemma4_mm.py; transformers _position_embeddings"
_INDEX_BYTES = 8
_LOW, _HIGH = 0.75, 1.6
"""Of the tower's peak: Gemma 3 peaks below 1.2 times, Qwen2.5-VL at 1.4 times the closed form."""


@dataclass(frozen=True, slots=True)
class Item:
    """The items that the encoder is profiled with, all of them together."""

    count: int
    tokens: int
    """Of the language model, of all items."""
    patches: int
    """Rows of the encoder, of all items."""
    pixels: int
    """Values that go in, of all items."""
    width: int
    """Elements per row at the encoder's widest point; 0 where it is not known."""
    levels: int = 1
    """Embeddings per token: more than one where deeper layers are handed on as well."""
    frames: int = 0
    """Pictures of all items, of an encoder that takes some of them at once."""
    positions: int = 0
    """Elements that a patch's place is written out in, one of them set; 0 where it is looked up."""

    def kept(self, hidden_bytes_of_all: int, with_pixels: bool) -> Estimate:  # noqa: FBT001 - cache key
        """What stays while the language model runs; ``hidden_bytes_of_all`` is of one token."""
        embeddings = self.tokens * self.levels * hidden_bytes_of_all
        if not self.width:
            return Estimate(
                50 * MIB,
                200 * MIB,
                2100 * MIB,
                Basis.ASSUMED,
                tr(_UNKNOWN),
                "200 MiB",
                tr("encoder"),
            )
        pixels = 2 * self.pixels if with_pixels else 0
        formula = tr("{tokens} embeddings and the pixels of {count} items").format(
            tokens=grouped(self.tokens), count=self.count
        )
        size = embeddings + pixels
        # Some processors hand pixels over in 32 bits, which are copied once more.
        high = size * 21 // 20 + 8 * MIB + 2 * pixels
        return Estimate(
            size * 19 // 20, size, high, Basis.FITTED, tr(_SOURCE), formula, tr("largest images")
        )

    def peak(self, element_bytes: int, version: Version, card_bytes: int) -> Estimate:
        """Peak of the encoder itself."""
        if self.positions:
            return self._written_out(element_bytes, version, card_bytes)
        rows = self.patches * self.width * element_bytes
        pixels = 2 * self.pixels
        formula = tr("{patches} patches × {width} × {element_bytes} B = {rows}").format(
            patches=grouped(self.patches),
            width=grouped(self.width),
            element_bytes=element_bytes,
            rows=figures(format(rows / GIB, ".2f")),
        )
        return Estimate(
            round(_LOW * rows),
            rows + pixels,
            round(_HIGH * rows) + pixels,
            Basis.FITTED,
            tr(_SOURCE),
            tr("{formula} GiB and pixels").format(formula=formula),
            tr("peak of the encoder"),
        )

    def _written_out(self, element_bytes: int, version: Version, card_bytes: int) -> Estimate:
        """Peak while the places of patches are written out, as indices and then as elements."""
        cells = self.patches // self.frames * self.positions
        frame = cells * (_INDEX_BYTES + element_bytes)
        # A tenth of the card, or half of what is free, by twice the indices of a frame.
        together = max(1, min(self.frames, card_bytes // 10 // (2 * cells * _INDEX_BYTES)))
        least = together * 3 // 4 or 1
        if version < _BATCHED:
            least = 1
            together = together if version >= _IN_TURNS else 1
        pixels = 2 * self.pixels
        formula = tr(
            "{together} frames × {cells} × {index_bytes} B = {together_2} GiB and pixels"
        ).format(
            together=together,
            cells=grouped(cells),
            index_bytes=_INDEX_BYTES + element_bytes,
            together_2=figures(format(together * frame / GIB, ".2f")),
        )
        return Estimate(
            least * frame, together * frame + pixels, together * frame * 6 // 5 + 2 * pixels,
            Basis.FITTED, _WRITTEN_OUT, formula, tr("peak of the encoder"),
        )  # fmt: skip


class _Family(NamedTuple):
    tokens: int
    """Of the language model for the largest item."""
    patches: int
    values: int
    """Values of a patch that go in."""
    gated: bool = False
    hidden: int = 3
    """Hidden states of a row that are alive beside what its MLP widens it to and that once more."""
    levels: int = 1
    video_groups: int = 1
    """Most groups of frames of a video, each as large as the largest image."""
    frames: int = 0
    """Pictures of an item, of an encoder that writes out the places of their patches."""


_FAMILIES: Mapping[str, _Family] = {
    "gemma3": _Family(256, 4096, 588),
    "gemma4": _Family(2496, 32 * 630, 768, gated=True, frames=32),
    "paligemma": _Family(256, 256, 588),
    "llava": _Family(576, 576, 588),
    "internvl_chat": _Family(3328, 13_325, 588),
    "internvl": _Family(3328, 13_325, 588),
    "idefics3": _Family(4394, 17_576, 588),
    "mistral3": _Family(3080, 12_100, 588, gated=True),
    "pixtral": _Family(4160, 4096, 768, gated=True),
    "llama4": _Family(2466, 9809, 588),
    "qwen2_vl": _Family(16_384, 65_536, 1176, video_groups=7),
    "qwen2_5_vl": _Family(16_384, 65_536, 1176, gated=True, video_groups=7),
    "qwen3_vl": _Family(16_384, 65_536, 1536, hidden=2, levels=4),
    "qwen3_vl_moe": _Family(16_384, 65_536, 1536, hidden=2, levels=4),
    "qwen3_5": _Family(16_384, 65_536, 1536, hidden=2),
    "qwen3_5_moe": _Family(16_384, 65_536, 1536, hidden=2),
}
"""Type of the root -> its largest item at the processor's default limits. Qwen3's block adds what
its attention gives to its input and hands on the sum's norm: two are alive in the MLP. Gemma 4's
is a video of 32 frames of 70 tokens of 3 × 3 patches, with 8 tokens of text to each."""


@lru_cache(maxsize=CACHED)
def largest(model: Model, tokens: int, context: int) -> Item | None:
    """The items that ``model`` is profiled with in a step of ``tokens``; None for text alone.

    Args:
        model: as read.
        tokens: ``max_num_batched_tokens``.
        context: ``max_model_len``, which limits the frames of a video.
    """
    spec = model.spec
    if not _has_tower(spec):
        return None
    family = _FAMILIES.get(spec.root_type or spec.model_type)
    width = _width(model.config, family) if family else 0
    if family is None or not width:
        return Item(1, 0, 0, 0, 0)
    groups = max(1, min((context - family.tokens) // family.tokens, family.video_groups))
    count = max(1, tokens // (family.tokens * groups))
    whole = count * groups
    patches = whole * family.patches
    return Item(
        count, whole * family.tokens, patches, patches * family.values, width, family.levels,
        whole * family.frames, _positions(model.config) if family.frames else 0,
    )  # fmt: skip


@lru_cache(maxsize=CACHED)
def _has_tower(spec: ArchitectureSpec) -> bool:
    return any(t.module in (ModuleClass.VISION, ModuleClass.AUDIO) for t in spec.outer)


def _width(config: Mapping[str, object] | None, family: _Family) -> int:
    """Hidden states + 2 or 3 × the MLP's width of the tower; 0 where the config does not say."""
    tower = (config or {}).get("vision_config")
    if not isinstance(tower, Mapping):
        return 0
    facts = cast("Mapping[str, object]", tower)
    hidden = _number(facts, "embed_dim") or _number(facts, "hidden_size")
    inner = _number(facts, "intermediate_size")
    if not inner:
        ratio = facts.get("mlp_ratio")
        inner = round(hidden * ratio) if isinstance(ratio, int | float) else 4 * hidden
    return family.hidden * hidden + (3 if family.gated else 2) * inner if hidden else 0


def _positions(config: Mapping[str, object] | None) -> int:
    """Places along both sides that a patch may have."""
    tower = cast("Mapping[str, object]", (config or {}).get("vision_config") or {})
    return 2 * (_number(tower, "position_embedding_size") or 10_240)


def _number(facts: Mapping[str, object], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) and 0 < value < 1 << 20 else 0
