"""Further roots whose code is published with their weights, each proved by a published total.

Source:
    vLLM ``dots_ocr.py`` and ``interns1.py``; rednote-hilab/dots.ocr, internlm/Intern-S1-mini.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.parts import (
    Encoder,
    Tower,
    UnknownTowerError,
    patches,
    vision_of,
)
from engine.architecture.towers.projected import internvl
from engine.config.defaults import class_defaults
from engine.config.facts import Facts

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor


def dots_ocr(root: Facts, text: Facts) -> list[Tensor]:
    """dots.ocr: a gated encoder without biases, and a merger of its patches."""
    vision = vision_of(root)
    hidden, layers = vision.integer("embed_dim"), vision.integer("num_hidden_layers")
    bias = vision.flag("use_bias")
    vision.settle("num_attention_heads", "temporal_patch_size", "hidden_size")
    tower = Tower("vision_tower.")
    tower.linear("patch_embed.patchifier.proj", hidden, patches(vision))
    tower.norm("patch_embed.patchifier.norm", hidden, bias=False)
    style = Encoder(gated=True, qkv_bias=bias, o_bias=bias, mlp_bias=bias, norm_bias=False)
    style.add(tower, layers, hidden, vision.integer("intermediate_size"), (hidden, hidden))
    if vision.flag("post_norm", default=True):
        tower.norm("post_trunk_norm", hidden, bias=False)
    merged = hidden * vision.integer("spatial_merge_size", 2) ** 2
    tower.norm("merger.ln_q", hidden)
    tower.linear("merger.mlp.0", merged, merged)
    tower.linear("merger.mlp.2", text.integer("hidden_size"), merged)
    return tower.tensors


def interns1(root: Facts, text: Facts) -> list[Tensor]:
    """Intern-S1: InternVL's encoder and projector under names of its own."""
    kind = "internvl"
    seen = Facts(root.stated, kind, class_defaults(kind), root.path)
    given = vision_of(root)
    own = "internvl_vision"
    vision = Facts(given.stated, own, class_defaults(own), given.path)
    seen.asked, vision.asked = root.asked, given.asked
    return internvl(seen, text, vision)


def phi4mm(_root: Facts, text: Facts) -> list[Tensor]:
    """Phi-4-multimodal as first published, whose adapters are stored beside its encoders."""
    text.settle("embd_layer", "audio_processor", "img_processor", "speech_lora", "vision_lora")
    raise UnknownTowerError("with adapters of low rank")


TOWERS = {"dots_ocr": dots_ocr, "interns1": interns1, "phi4mm": phi4mm}
