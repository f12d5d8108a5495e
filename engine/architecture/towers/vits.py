"""Plain vision transformers: what each differs in from the others, and one rule for all.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.towers.parts import Encoder, Tower, grid, number, pair, patches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.config.facts import Facts

Flag = bool | str
"""A constant, or the config key that decides (``!key`` for its opposite)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViT:
    """One kind of vision transformer. The defaults are a class token and learned positions."""

    layers: str = "num_hidden_layers"
    ratio: str = ""
    """Key of the MLP's width as a multiple of the hidden size; else ``intermediate_size``."""
    gated: Flag = False
    rounds_gated: bool = False
    """Whether a gated MLP is two thirds as wide, rounded up to 8 (DINOv2)."""
    q_bias: Flag = True
    k_bias: Flag = True
    v_bias: Flag = True
    o_bias: Flag = True
    mlp_bias: Flag = True
    by_heads: bool = False
    """Whether projections are as wide as all heads, which may leave some of the model's width."""
    rms: Flag = False
    """Whether norms have no bias."""
    scales: Flag = False
    """Whether each half of a layer ends in a learned vector."""
    patch_bias: Flag = True
    positions: Flag = True
    """Whether there is a learned position for each patch and each token of its own."""
    tokens: int | str = 1
    """Tokens of its own before the patches (class, distillation), or the key of their number."""
    registers: str = ""
    """Key of the number of further tokens, which have no position."""
    mask: Flag = False
    before: bool = False
    """Norm in front of the layers."""
    after: Flag = True
    """Norm behind the layers."""
    pooler: bool = False
    """Linear layer over the class token."""
    further: Callable[[Tower, Facts], None] | None = None

    def build(self, vision: Facts, path: str = "vision_tower.") -> Tower:
        """The tensors of a tower that ``vision`` describes, under ``path``."""
        tower = Tower(path)
        hidden = vision.integer("hidden_size")
        patch_bias = vision.says(self.patch_bias)
        tower.linear("patch_embedding", hidden, patches(vision), bias=patch_bias)
        tokens = self.tokens if isinstance(self.tokens, int) else vision.count(self.tokens)
        if tokens:
            tower.weight("class_embedding", tokens, hidden)
        if self.registers:
            tower.weight("register_tokens", vision.count(self.registers), hidden)
        if vision.says(self.mask):
            tower.weight("mask_token", 1, hidden)
        if vision.says(self.positions):
            tower.weight("position_embedding.weight", grid(vision) + tokens, hidden)
        self._layers(tower, vision, hidden)
        norm_bias = not vision.says(self.rms)
        if self.before:
            tower.norm("pre_layrnorm", hidden, bias=norm_bias)
        if vision.says(self.after):
            tower.norm("post_layernorm", hidden, bias=norm_bias)
        if self.pooler:
            tower.linear("pooler", vision.integer("pooler_output_size", hidden), hidden)
        if self.further:
            self.further(tower, vision)
        return tower

    def _layers(self, tower: Tower, vision: Facts, hidden: int) -> None:
        gated = vision.says(self.gated)
        width = self._width(vision, hidden)
        if gated and self.rounds_gated:
            width = (int(width * 2 / 3) + 7) // 8 * 8
        style = Encoder(
            gated=gated,
            q_bias=vision.says(self.q_bias),
            k_bias=vision.says(self.k_bias),
            v_bias=vision.says(self.v_bias),
            o_bias=vision.says(self.o_bias),
            mlp_bias=vision.says(self.mlp_bias),
            norm_bias=not vision.says(self.rms),
            scales=2 if vision.says(self.scales) else 0,
        )
        # Heads that don't divide the hidden size leave the rest of it out.
        heads = (vision.count("num_attention_heads") or 1) if self.by_heads else 1
        inner = hidden // heads * heads
        style.add(tower, vision.integer(self.layers), hidden, width, (inner, inner))

    def _width(self, vision: Facts, hidden: int) -> int:
        if not self.ratio:
            return vision.integer("intermediate_size")
        return int(hidden * number(vision, self.ratio, 4.0))


def pooling_head(tower: Tower, vision: Facts) -> None:
    """SigLIP's head: a learned query over the patches, only where ``vision_use_head`` says so."""
    if not vision.flag("vision_use_head"):
        return
    hidden, width = vision.integer("hidden_size"), vision.integer("intermediate_size")
    tower.weight("head.probe", 1, 1, hidden)
    tower.linear("head.attention.in_proj", 3 * hidden, hidden)
    tower.linear("head.attention.out_proj", hidden, hidden)
    tower.norm("head.layernorm", hidden)
    tower.linear("head.mlp.fc1", width, hidden)
    tower.linear("head.mlp.fc2", hidden, width)


def siglip(vision: Facts, path: str = "vision_tower.") -> Tower:
    """SigLIP as others build it in: as many positions as ``num_patches``, else as the image has."""
    places = vision.count("num_patches")
    tower = replace(_SIGLIP, positions=not places).build(vision, path)
    if places:
        tower.weight("position_embedding.weight", places, _hidden(vision))
    pooling_head(tower, vision)
    return tower


def siglip2(vision: Facts) -> Tower:
    """SigLIP 2 (NaFlex): as many positions as ``num_patches``, whatever the image."""
    tower = _naflex(vision)
    pooling_head(tower, vision)
    return tower


def _naflex(vision: Facts) -> Tower:
    tower = replace(_SIGLIP, positions=False).build(vision)
    tower.weight("position_embedding.weight", vision.integer("num_patches"), _hidden(vision))
    return tower


def _hidden(vision: Facts) -> int:
    return vision.integer("hidden_size")


def _aimv2(tower: Tower, vision: Facts) -> None:
    hidden, bias = _hidden(vision), vision.flag("qkv_bias")
    tower.norm("embeddings.rms_norm", hidden, bias=False)
    if not vision.flag("use_head"):
        return
    tower.weight("head.cls_token", 1, 1, hidden)
    tower.linear("head.k_proj", hidden, hidden, bias=bias)
    tower.linear("head.v_proj", hidden, hidden, bias=bias)
    tower.linear("head.output_proj", hidden, hidden)


def _relative(tower: Tower, vision: Facts) -> None:
    """Tables of relative positions in every layer or for all, and layer scale above 0 (BEiT)."""
    heads, layers = vision.integer("num_attention_heads"), vision.integer("num_hidden_layers")
    rows, columns = pair(vision, "image_size")
    height, width = pair(vision, "patch_size")
    distances = (2 * (rows // height) - 1) * (2 * (columns // width) - 1) + 3
    if vision.flag("use_relative_position_bias"):
        tower.weight("layers.*.relative_position_bias_table", distances, heads, copies=layers)
    if vision.flag("use_shared_relative_position_bias"):
        tower.weight("relative_position_bias_table", distances, heads)
    scale = vision.raw("layer_scale_init_value")
    if scale is None or (isinstance(scale, int | float) and scale > 0):
        tower.weight("layers.*.lambda_1", _hidden(vision), copies=layers)
        tower.weight("layers.*.lambda_2", _hidden(vision), copies=layers)


def _mlcd(tower: Tower, vision: Facts) -> None:
    head = _hidden(vision) // vision.integer("num_attention_heads")
    tower.weight("class_pos_emb", 1, head // 2)


def _radio(tower: Tower, vision: Facts) -> None:
    """Positions for the largest image, class tokens and registers, and patches of a video."""
    hidden, side = _hidden(vision), vision.integer("patch_size")
    tower.weight("position_embedding", (vision.integer("max_img_size") // side) ** 2, hidden)
    tokens = vision.count("num_cls_tokens") + vision.count("num_registers")
    tower.weight("cls_register_token", tokens, hidden)
    frames = vision.count("video_temporal_patch_size")
    if frames:
        patch = patches(vision, frames=frames)
        tower.linear("video_patch_projection", hidden, patch, bias=False)


def internvl(vision: Facts) -> Tower:
    """InternViT: norms by ``norm_type``, norms of query and key over their whole width."""
    rms = vision.word("norm_type", "layer_norm") == "rms_norm"
    style = ViT(
        q_bias="attention_bias", k_bias="attention_bias", v_bias="attention_bias", rms=rms,
        scales=True, mask="use_mask_token", positions="use_absolute_position_embeddings",
        after="!use_mean_pooling",
    )  # fmt: skip
    tower = style.build(vision)
    if vision.flag("use_qk_norm"):
        hidden, layers = _hidden(vision), vision.integer("num_hidden_layers")
        tower.norm("layers.*.q_norm", hidden, bias=False, copies=layers)
        tower.norm("layers.*.k_norm", hidden, bias=False, copies=layers)
    return tower


def intern_vit(vision: Facts) -> Tower:
    """InternViT as published with its own code: the same in other words, and no norm behind."""
    style = replace(
        _QKV_BIAS, rms=vision.word("norm_type", "rms_norm") == "rms_norm", scales=True, after=False
    )
    tower = style.build(vision)
    if vision.flag("qk_normalization", default=True):
        hidden, layers = _hidden(vision), vision.integer("num_hidden_layers")
        tower.norm("layers.*.attn.q_norm", hidden, bias=False, copies=layers)
        tower.norm("layers.*.attn.k_norm", hidden, bias=False, copies=layers)
    return tower


_QKV_BIAS = ViT(q_bias="qkv_bias", k_bias="qkv_bias", v_bias="qkv_bias")
_VIT = replace(_QKV_BIAS, by_heads=True)
_CLIP = ViT(patch_bias=False, before=True)
_MLCD = replace(_CLIP, positions=False, further=_mlcd)
_SIGLIP = ViT(tokens=0)
_BEIT = ViT(
    by_heads=True, k_bias=False, mask="use_mask_token",
    positions="use_absolute_position_embeddings", further=_relative,
)  # fmt: skip
_DINO = replace(
    _VIT, ratio="mlp_ratio", gated="use_swiglu_ffn", rounds_gated=True, scales=True, mask=True
)
_VITS: Mapping[str, ViT] = {
    "aimv2_vision_model": replace(
        _QKV_BIAS, o_bias="qkv_bias", mlp_bias="mlp_bias", gated=True, rms=True, tokens=0,
        positions="!is_native", further=_aimv2,
    ),
    "beit": _BEIT,
    "blip_2_vision_model": _QKV_BIAS,
    "blip_vision_model": ViT(),
    "chinese_clip_vision_model": _CLIP,
    "clip_vision_model": _CLIP,
    "data2vec-vision": replace(_BEIT, after="!use_mean_pooling"),
    "deit": replace(_VIT, tokens=2, pooler=True),
    "dinov2": replace(_DINO, mask="use_mask_token"),
    "dinov2_with_registers": replace(_DINO, registers="num_register_tokens"),
    "dinov3_vit": ViT(
        q_bias="query_bias", k_bias="key_bias", v_bias="value_bias", o_bias="proj_bias",
        mlp_bias="mlp_bias", gated="use_gated_mlp", scales=True, mask=True, positions=False,
        registers="num_register_tokens",
    ),
    "git_vision_model": _CLIP,
    "idefics2_vision": _SIGLIP,
    "idefics3_vision": _SIGLIP,
    "idefics_vision": _CLIP,
    "ijepa": replace(_VIT, tokens=0),
    "instructblip_vision_model": _QKV_BIAS,
    "instructblipvideo_vision_model": _QKV_BIAS,
    "mlcd": _MLCD,
    "mlcd_vision_model": _MLCD,
    "kosmos_2_vision_model": _CLIP,
    "paddleocr_vl_vision": _SIGLIP,
    "pixio": replace(_VIT, tokens="n_cls_tokens", ratio="mlp_ratio"),
    "pixtral": ViT(
        tokens=0, positions=False, patch_bias=False, before=True, after=False, rms=True, gated=True,
        q_bias=False, k_bias=False, v_bias=False, o_bias=False, mlp_bias=False,
    ),
    "radio": replace(
        _QKV_BIAS, ratio="mlp_ratio", gated="use_swiglu_ffn", rounds_gated=True, scales=True,
        tokens=0, positions=False, patch_bias=False, after=False, further=_radio,
    ),
    "siglip_vision_model": replace(_SIGLIP, further=pooling_head),
    "smolvlm_vision": _SIGLIP,
    "video_llama_3_vision": replace(_SIGLIP, positions=False),
    "tipsv2_vision_model": replace(_DINO, registers="num_register_tokens"),
    "vit": replace(_VIT, pooler=True),
    "vit_mae": _VIT,
    "vit_msn": _VIT,
}  # fmt: skip

VISION_ENCODERS: dict[str, Callable[[Facts], Tower]] = {
    **{name: style.build for name, style in _VITS.items()},
    "cosmos3_edge_vision": _naflex,
    "intern_vit_6b": intern_vit,
    "internvl_vision": internvl,
    "qianfan_ocr_vision": internvl,
    "siglip2_vision_model": siglip2,
}
