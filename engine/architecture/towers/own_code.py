"""Further roots whose code is published with their weights, each proved by a published total.

Source:
    vLLM ``dots_ocr.py``, ``interns1.py`` and ``step3_vl.py``; rednote-hilab/dots.ocr,
    internlm/Intern-S1-mini, stepfun-ai/step3, stepfun-ai/GOT-OCR2_0, vikhyatk/moondream2,
    AIDC-AI/Ovis2.5-9B, MiniMaxAI/MiniMax-VL-01, openvla/openvla-7b and baidu/Unlimited-OCR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.parts import PLAIN, Encoder, Tower, encode, grid, patches, vision_of
from engine.architecture.towers.projected import internvl
from engine.architecture.towers.published import deepseek_vl_v2
from engine.architecture.towers.registry import UnknownTowerError
from engine.architecture.towers.sam import got_ocr2
from engine.architecture.towers.vision import lfm2_vl, llava_next
from engine.config.defaults import class_defaults
from engine.config.facts import Facts
from engine.words import tr

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
    raise UnknownTowerError(tr("with adapters of low rank"))


def step3_vl(root: Facts, text: Facts) -> list[Tensor]:
    """Step 3: a ViT with a class token, and two strided convolutions down to the text's width."""
    vision = vision_of(root)
    hidden, out = vision.integer("hidden_size"), vision.integer("output_hidden_size")
    vision.settle("num_attention_heads")
    tower = Tower("vision_model.")
    tower.linear("embeddings.patch_embedding", hidden, patches(vision))
    tower.weight("embeddings.class_embedding", hidden)
    tower.weight("embeddings.position_embedding.weight", grid(vision) + 1, hidden)
    encode(tower, vision, PLAIN)
    tower.path = ""
    root.settle("understand_projector_stride")
    tower.linear("vit_downsampler", out, 4 * hidden)
    tower.linear("vit_downsampler2", 2 * out, 9 * out)
    bias = root.flag("projector_bias")
    tower.linear("vit_large_projector", text.integer("hidden_size"), 2 * out, bias=bias)
    return tower.tensors


def minimax_vl(root: Facts, text: Facts) -> list[Tensor]:
    """MiniMax-VL-01: LLaVA-NeXT, whose CLIP has no norm behind its layers."""
    tensors = llava_next(root, text)
    root.settle("image_grid_pinpoints", "process_image_mode")
    return [tensor for tensor in tensors if "post_layernorm" not in tensor.name]


def got(root: Facts, text: Facts) -> list[Tensor]:
    """GOT-OCR 2 as first published: the sizes of its encoder are its code's."""
    text.settle("image_token_len", "im_patch_token", "im_start_token", "im_end_token")
    kind = "got_ocr2"
    return got_ocr2(Facts({}, kind, class_defaults(kind), root.path), text)


_MOONDREAM = {
    "hidden_size": 1_152, "intermediate_size": 4_304, "num_hidden_layers": 27,
    "num_attention_heads": 16, "image_size": 378, "patch_size": 14,
}  # fmt: skip
_INNER = 8_192


def moondream1(root: Facts, text: Facts) -> list[Tensor]:
    """Moondream 2: SigLIP, a projector, and what finds regions. All sizes are its code's."""
    if root.raw("config") or root.raw("vision_config"):
        raise UnknownTowerError(tr("of other sizes than its code's"))
    vision, out = Facts(_MOONDREAM), text.integer("hidden_size")
    hidden = vision.integer("hidden_size")
    tower = Tower("vision.")
    tower.linear("patch_emb", hidden, patches(vision))
    tower.weight("pos_emb", grid(vision), hidden)
    encode(tower, vision, PLAIN)
    tower.norm("post_ln", hidden)
    _two(tower, "proj_mlp", 2 * hidden, out)
    tower.path = "region."
    for name, wide, bins in (("coord", 256, 1_024), ("size", 512, 2_048)):
        tower.linear(f"{name}_encoder", out, wide)
        _two(tower, f"{name}_decoder", out, bins)
        tower.weight(f"{name}_features", wide // 256, wide // 2)
    return tower.tensors


def _two(tower: Tower, name: str, width: int, out: int) -> None:
    tower.linear(f"{name}.fc1", _INNER, width)
    tower.linear(f"{name}.fc2", out, _INNER)


_DINO = {
    "hidden_size": 1_024, "intermediate_size": 4_096, "num_hidden_layers": 24, "image_size": 224,
    "patch_size": 14,
}  # fmt: skip
_SO400M = {**_MOONDREAM, "image_size": 224}


def openvla(root: Facts, text: Facts) -> list[Tensor]:
    """OpenVLA: DINOv2 and SigLIP side by side, as timm builds them, and three linear layers."""
    root.settle("image_sizes", "n_action_bins", "norm_stats", "pad_to_multiple_of")
    root.settle("timm_model_ids", "timm_override_act_layers", "use_fused_vision_backbone")
    backbone = root.word("vision_backbone_id")
    if backbone != "dinosiglip-vit-so-224px":
        raise UnknownTowerError(backbone)
    dino, siglip = Facts(_DINO), Facts(_SO400M)
    tower = Tower("vision_backbone.featurizer.")
    width = dino.integer("hidden_size")
    tower.linear("patch_embed.proj", width, patches(dino))
    tower.weight("tokens", 1 + 4, width)
    tower.weight("pos_embed", grid(dino), width)
    encode(tower, dino, Encoder(scales=2))
    tower.norm("norm", width)
    tower.path = "vision_backbone.fused_featurizer."
    other, inner = siglip.integer("hidden_size"), siglip.integer("intermediate_size")
    tower.linear("patch_embed.proj", other, patches(siglip))
    tower.weight("pos_embed", grid(siglip), other)
    encode(tower, siglip, PLAIN)
    tower.norm("norm", other)
    tower.weight("attn_pool.latent", 1, other)
    for name, rows in (("q", other), ("kv", 2 * other), ("proj", other)):
        tower.linear(f"attn_pool.{name}", rows, other)
    tower.norm("attn_pool.norm", other)
    tower.linear("attn_pool.mlp.fc1", inner, other)
    tower.linear("attn_pool.mlp.fc2", other, inner)
    seen, out = width + other, text.integer("hidden_size")
    tower.path = "projector."
    tower.linear("fc1", 4 * seen, seen)
    tower.linear("fc2", out, 4 * seen)
    tower.linear("fc3", out, out)
    return tower.tensors


_INDICATORS = 4


def ovis2_5(root: Facts, text: Facts) -> list[Tensor]:
    """Ovis 2.5: SigLIP 2 with a table of positions, visual words as in Ovis, their embedding."""
    vision = root.sub("vit_config")
    if vision is None or not vision.flag("preserve_original_pe", default=True):
        raise UnknownTowerError(tr("without its table of positions"))
    vision.settle("num_attention_heads", "fullatt_block_indexes", "num_patches", "window_size")
    vision.settle("temporal_patch_size", "use_rope")
    hidden, side = vision.integer("hidden_size"), vision.integer("hidden_stride", 2)
    tower = Tower("visual_tokenizer.vit.")
    tower.linear("embeddings.patch_embedding", hidden, patches(vision))
    tower.weight("embeddings.position_embedding.weight", grid(vision), hidden)
    encode(tower, vision, PLAIN)
    tower.norm("post_layernorm", hidden)
    words = root.integer("visual_vocab_size", 65_536)
    seen = max(words - _INDICATORS, 1)
    tower.path = "visual_tokenizer.head."
    tower.linear("0", seen, hidden * side * side, bias=False)
    tower.norm("1", seen)
    tower.path = ""
    tower.weight("vte.weight", words, text.integer("hidden_size"))
    return tower.tensors


TOWERS = {
    "deepseekocr": deepseek_vl_v2, "DeepseekOCR": deepseek_vl_v2, "unlimited-ocr": deepseek_vl_v2,
    "dots_ocr": dots_ocr, "GOT": got, "interns1": interns1, "minimax_vl_01": minimax_vl,
    "moondream1": moondream1, "lfm2-vl": lfm2_vl, "openvla": openvla, "ovis2_5": ovis2_5,
    "phi4mm": phi4mm,
    "step3_vl": step3_vl,
}  # fmt: skip
