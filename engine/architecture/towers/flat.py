"""Roots with their text fields beside an encoder that their own code fixes or only names.

Source:
    ``modeling_*.py`` beside the weights of openbmb/MiniCPM-V-2_6,
    microsoft/Phi-3-vision-128k-instruct, allenai/Molmo-7B-D-0924 and liuhaotian/llava-v1.5-7b,
    and their published totals.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.architecture.towers.encoders import encoder
from engine.architecture.towers.parts import PLAIN, Tower
from engine.architecture.towers.registry import UnknownTowerError
from engine.config.defaults import class_defaults
from engine.config.facts import Facts
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor

_CLIP_L = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "image_size": 336,
    "patch_size": 14,
}  # fmt: skip


_CLIPS = {"openai/clip-vit-large-patch14-336": 336, "openai/clip-vit-large-patch14": 224}
"""Encoders that the first LLaVAs name -> sides of their image."""
_LAYERED = re.compile(r"mlp([1-9])x_gelu")


def llava(root: Facts, text: Facts) -> list[Tensor]:
    """LLaVA as first published: CLIP by its name, and one or more linear layers."""
    name, kind = root.word("mm_vision_tower"), "clip_vision_model"
    image = _CLIPS.get(name)
    if image is None or root.word("mm_resampler_type"):
        raise UnknownTowerError(name)
    tower = encoder(Facts({**_CLIP_L, "image_size": image}, kind, class_defaults(kind)))
    projector = root.word("mm_projector_type", "linear")
    layered = _LAYERED.fullmatch(projector)
    if not layered and projector != "linear":
        raise UnknownTowerError(
            tr("{name} behind {projector}").format(name=name, projector=projector)
        )
    tower.path = "mm_projector."
    before, out = (
        root.integer("mm_hidden_size", _CLIP_L["hidden_size"]),
        text.integer("hidden_size"),
    )
    for index in range(int(layered[1]) if layered else 1):
        tower.linear(str(2 * index), out, before)
        before = out
    if "unpad" in root.word("mm_patch_merge_type", "flat"):
        tower.weight("image_newline", out)
    root.settle("mm_vision_select_layer", "use_mm_proj")
    return tower.tensors


def minicpmv(root: Facts, text: Facts) -> list[Tensor]:
    """MiniCPM-V: SigLIP, and queries that attend to its patches."""
    stated = root.sub("vision_config")
    if stated is None:
        raise UnknownTowerError(tr("without a vision_config"))
    root.settle("slice_config", "image_size", "patch_size", "vision_batch_size")
    # Published files call the same encoder by several names.
    kind = "siglip_vision_model"
    layers = stated.integer("num_hidden_layers", 27) - root.flag("drop_vision_last_layer")
    given = {**stated.stated, "num_hidden_layers": layers, "vision_use_head": False}
    vision = Facts(given, kind, class_defaults(kind), stated.path)
    vision.asked = stated.asked
    tower = encoder(vision)
    tower.path = "resampler."
    out, seen = text.integer("hidden_size"), vision.integer("hidden_size")
    tower.weight("query", root.integer("query_num", 64), out)
    if seen != out:
        tower.linear("kv_proj", out, seen, bias=False)
    tower.linear("attn.in_proj", 3 * out, out)
    tower.linear("attn.out_proj", out, out)
    for name in ("ln_q", "ln_kv", "ln_post"):
        tower.norm(name, out)
    tower.weight("proj", out, out)
    return tower.tensors


def phi3_v(root: Facts, text: Facts) -> list[Tensor]:
    """Phi-3-Vision: CLIP, learned separators, and two linear layers over four patches."""
    layer, processor = root.sub("embd_layer"), root.sub("img_processor")
    kind = "clip_vision_model"
    if layer is None or processor is None or processor.word("name") != kind:
        raise UnknownTowerError(tr("that its code does not name"))
    if not layer.flag("use_hd_transform") or not layer.flag("with_learnable_separator"):
        raise UnknownTowerError(tr("{kind} without learned separators").format(kind=kind))
    processor.settle("num_img_tokens")
    tower = encoder(Facts(_CLIP_L, kind, class_defaults(kind)))
    tower.path = "img_projection."
    width, out = 4 * processor.integer("image_dim_out"), text.integer("hidden_size")
    tower.weight("glb_GN", width)
    tower.weight("sub_GN", width)
    tower.linear("0", out, width)
    tower.linear("2", out, out)
    return tower.tensors


def molmo(_root: Facts, text: Facts) -> list[Tensor]:
    """Molmo: 23 layers of CLIP, two of whose outputs are pooled by attention, and a gated MLP."""
    tower = Tower("vision_backbone.")
    hidden, layers = 1024, 23
    both = 2 * hidden
    tower.linear("image_vit.patch_embedding", hidden, 3 * 14 * 14, bias=False)
    tower.weight("image_vit.class_embedding", hidden)
    tower.weight("image_vit.positional_embedding", 24 * 24 + 1, hidden)
    tower.norm("image_vit.pre_ln", hidden)
    PLAIN.add(tower, layers, hidden, 4 * hidden, (hidden, hidden))
    for name in ("wq", "wk", "wv"):
        tower.linear(f"image_pooling_2d.{name}", hidden, both)
    tower.linear("image_pooling_2d.wo", hidden, hidden)
    width, out = text.integer("intermediate_size") // 2, text.integer("hidden_size")
    for name in ("w1", "w3"):
        tower.linear(f"image_projector.{name}", width, hidden, bias=False)
    tower.linear("image_projector.w2", out, width, bias=False)
    tower.weight("pad_embed", 2, both)
    return tower.tensors


TOWERS = {
    "llava_llama": llava, "llava_mistral": llava, "llava_qwen": llava, "llava_qwen2": llava,
    "minicpmv": minicpmv, "molmo": molmo, "phi3_v": phi3_v,
}  # fmt: skip
