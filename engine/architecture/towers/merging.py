"""Vision encoders that merge neighbouring patches themselves: Qwen's, GLM's, Hunyuan's, Gemma 4's.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.towers.parts import PLAIN, Encoder, Tower, encode, grid, number, patches
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.config.facts import Facts


def _start(vision: Facts, *, bias: bool, width: str = "hidden_size") -> tuple[Tower, int]:
    tower = Tower("visual.")
    hidden = vision.integer(width)
    frames = vision.integer("temporal_patch_size", 2)
    tower.linear("patch_embed.proj", hidden, patches(vision, frames=frames), bias=bias)
    return tower, hidden


def _merged(vision: Facts, hidden: int) -> int:
    return hidden * vision.integer("spatial_merge_size", 2) ** 2


def _merger(tower: Tower, name: str, width: int, merged: int, out: int, *, rms: bool) -> None:
    tower.norm(f"{name}.norm", width, bias=not rms)
    tower.linear(f"{name}.linear_fc1", merged, merged)
    tower.linear(f"{name}.linear_fc2", out, merged)


def qwen2_vl(vision: Facts) -> Tower:
    """Qwen2-VL: layer norms, plain MLP of ``mlp_ratio`` times the width."""
    tower, hidden = _start(vision, bias=False, width="embed_dim")
    width = int(hidden * number(vision, "mlp_ratio", 4))
    PLAIN.add(tower, vision.integer("depth"), hidden, width, (hidden, hidden))
    out = vision.integer("hidden_size")
    _merger(tower, "merger", hidden, _merged(vision, hidden), out, rms=False)
    return tower


def qwen2_5_vl(vision: Facts) -> Tower:
    """Qwen2.5-VL: RMS norms, gated MLP with bias."""
    return _qwen2_5(vision, vision.integer("hidden_size"))


def exaone4_5(vision: Facts) -> Tower:
    """EXAONE 4.5: as Qwen2.5-VL, with grouped queries.

    Raises:
        ConfigError: the heads do not divide the width, which the class cannot run.
    """
    heads, hidden = vision.integer("num_heads"), vision.integer("hidden_size")
    if hidden % heads:
        raise vision.bad(
            "num_heads",
            heads,
            tr("a divisor of hidden_size ({hidden}) is needed").format(hidden=hidden),
        )
    return _qwen2_5(vision, hidden // heads * vision.integer("num_key_value_heads", heads))


def _qwen2_5(vision: Facts, kv: int) -> Tower:
    tower, hidden = _start(vision, bias=False)
    width = vision.integer("intermediate_size")
    style = Encoder(gated=True, norm_bias=False)
    style.add(tower, vision.integer("depth"), hidden, width, (hidden, kv))
    out = vision.integer("out_hidden_size")
    _merger(tower, "merger", hidden, _merged(vision, hidden), out, rms=True)
    return tower


def qwen3_5(vision: Facts) -> Tower:
    """Qwen3.5: learned positions, plain MLP."""
    tower, hidden = _start(vision, bias=True)
    tower.weight("pos_embed.weight", vision.integer("num_position_embeddings"), hidden)
    encode(tower, vision, PLAIN, layers="depth")
    out = vision.integer("out_hidden_size")
    _merger(tower, "merger", hidden, _merged(vision, hidden), out, rms=False)
    return tower


def qwen3_vl(vision: Facts) -> Tower:
    """Qwen3-VL: as Qwen3.5, with one more merger for each layer of the deep stack."""
    tower = qwen3_5(vision)
    merged = _merged(vision, vision.integer("hidden_size"))
    out = vision.integer("out_hidden_size")
    for index, _ in enumerate(vision.integers("deepstack_visual_indexes") or ()):
        _merger(tower, f"deepstack_merger_list.{index}", merged, merged, out, rms=False)
    return tower


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm:
    """How GLM's encoders differ: RMS norms, gated MLPs and a convolution that merges patches."""

    inner: Callable[[Facts], int]
    """Width of the merger's MLP."""
    mlp: str = "intermediate_size"
    positions: bool = False
    """Learned positions, and a norm behind them."""
    o_bias: bool = True
    """Whether ``attention_bias`` is for the output projection and the MLP too."""
    qk_norm: bool = True

    def build(self, vision: Facts) -> Tower:
        """The tensors of the tower that ``vision`` describes."""
        tower, hidden = _start(vision, bias=True)
        out, depth = vision.integer("out_hidden_size"), vision.integer("depth")
        if self.positions:
            tower.weight("embeddings.position_embedding.weight", grid(vision), hidden)
            tower.norm("post_conv_layernorm", hidden, bias=False)
        bias = vision.flag("attention_bias")
        further = bias and self.o_bias
        style = Encoder(
            gated=True, qkv_bias=bias, o_bias=further, mlp_bias=further, norm_bias=False
        )
        encode(tower, vision, style, layers="depth", mlp=vision.integer(self.mlp))
        if self.qk_norm:
            head = hidden // vision.integer("num_heads")
            tower.norm("layers.*.q_norm", head, bias=False, copies=depth)
            tower.norm("layers.*.k_norm", head, bias=False, copies=depth)
        tower.norm("post_layernorm", hidden, bias=False)
        tower.linear("downsample", out, _merged(vision, hidden))
        inner = self.inner(vision)
        tower.linear("merger.proj", out, out, bias=False)
        tower.norm("merger.post_projection_norm", out)
        tower.linear("merger.gate_proj", inner, out, bias=False)
        tower.linear("merger.up_proj", inner, out, bias=False)
        tower.linear("merger.down_proj", out, inner, bias=False)
        return tower


glm4v = Glm(
    inner=lambda vision: vision.integer("intermediate_size"), mlp="out_hidden_size",
    positions=True, o_bias=False, qk_norm=False,
).build  # fmt: skip
glm_ocr = Glm(
    inner=lambda vision: vision.integer("out_hidden_size") * vision.integer("in_channels")
).build
glm5_next = Glm(inner=lambda vision: vision.integer("projection_intermediate_size")).build


def ernie4_5_vl(vision: Facts) -> Tower:
    """ERNIE 4.5 VL: a plain encoder; what merges the patches is the root's resampler."""
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.linear("patch_embed.proj", hidden, patches(vision), bias=False)
    encode(tower, vision, PLAIN, layers="depth")
    tower.norm("ln", hidden)
    return tower


def _hunyuan(vision: Facts) -> tuple[Tower, int]:
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.linear("patch_embedding", hidden, patches(vision))
    places = (vision.integer("max_image_size") // vision.integer("patch_size")) ** 2 + 1
    tower.weight("position_embedding.weight", places, hidden)
    heads = vision.integer("num_attention_heads")
    rows = heads * vision.integer("head_dim", hidden // heads)
    layers = vision.integer("num_hidden_layers")
    PLAIN.add(tower, layers, hidden, vision.integer("intermediate_size"), (rows, rows))
    tower.norm("patch_merger.before_rms", hidden, bias=False)
    return tower, hidden


def hunyuan_vl(vision: Facts) -> Tower:
    """HunyuanOCR on its own, with the width of the text that its config states."""
    return hunyuan_tower(vision, vision.integer("text_hidden_size"))


def hunyuan_tower(vision: Facts, text: int) -> Tower:
    """HunyuanOCR: a merger of two convolutions and a linear layer, with marks around an image.

    Args:
        vision: the encoder's config.
        text: width of the text model, which the merger ends in.
    """
    tower, hidden = _hunyuan(vision)
    tower.linear("patch_merger.proj_conv", 2 * hidden, _merged(vision, hidden))
    tower.linear("patch_merger.proj_out", 4 * hidden, 2 * hidden)
    tower.linear("patch_merger.mlp", text, 4 * hidden)
    tower.weight("patch_merger.image_newline", 4 * hidden)
    for name in ("image_begin", "image_end", "image_sep"):
        tower.weight(f"patch_merger.{name}", text)
    tower.norm("patch_merger.after_rms", text, bias=False)
    return tower


def hy_v4_vl(vision: Facts) -> Tower:
    """Hunyuan V4 VL: two convolutions straight to the text's width."""
    tower, hidden = _hunyuan(vision)
    merged, out = _merged(vision, hidden), vision.integer("out_hidden_size")
    tower.linear("patch_merger.proj_conv", merged, merged)
    tower.linear("patch_merger.proj_out", out, merged)
    tower.weight("patch_merger.image_newline", out)
    return tower


_DEEP_STACK = 3
"""Mergers of Granite Docling's deep stack where the config lists no layers (3, 7 and 10)."""


def granite_docling(vision: Facts) -> Tower:
    """Granite Docling: SigLIP and a connector that merges patches coarsely and finely."""
    tower = Tower("vision_model.")
    hidden, out = vision.integer("hidden_size"), vision.integer("out_hidden_size")
    tower.linear("patch_embedding", hidden, patches(vision))
    tower.weight("position_embedding.weight", grid(vision), hidden)
    encode(tower, vision, PLAIN)
    tower.norm("post_layernorm", hidden)
    side = vision.integer("scale_factor")
    indexes = vision.integers("deepstack_visual_indexes")
    levels = _DEEP_STACK if indexes is None else len(indexes)
    sides = (
        {"coarse": side, "fine": side // 2} if vision.flag("use_fine_route") else {"coarse": side}
    )
    for name, factor in sides.items():
        merged = hidden * factor**2
        tower.linear(f"connector.{name}.projection", out, merged, bias=False)
        path = f"connector.{name}.deepstack_mergers.*."
        tower.norm(f"{path}layer_norm", merged, copies=levels)
        tower.linear(f"{path}linear_1", out, merged, copies=levels)
        tower.linear(f"{path}linear_2", out, out, copies=levels)
    tower.norm("connector.ln_in", hidden)
    tower.norm("connector.ln_mid", out)
    tower.linear("connector.mlp_fc2", out, out, bias=False)
    tower.norm("connector.ln_out", out)
    return tower


def gemma4(vision: Facts) -> Tower:
    """Gemma 4: grouped queries with norms, four norms a layer, positions by row and column."""
    tower = Tower("vision_tower.")
    hidden, layers = vision.integer("hidden_size"), vision.integer("num_hidden_layers")
    heads = vision.integer("num_attention_heads")
    head = vision.integer("head_dim", hidden // heads)
    kv = vision.integer("num_key_value_heads", heads) * head
    patch = 3 * vision.integer("patch_size") ** 2
    tower.linear("patch_embedder.input_proj", hidden, patch, bias=False)
    places = vision.integer("position_embedding_size")
    tower.weight("patch_embedder.position_embedding_table", 2, places, hidden)
    style = Encoder(
        gated=True, qkv_bias=False, o_bias=False, mlp_bias=False, norm_bias=False, norms=4
    )
    style.add(tower, layers, hidden, vision.integer("intermediate_size"), (heads * head, kv))
    tower.norm("layers.*.q_norm", head, bias=False, copies=layers)
    tower.norm("layers.*.k_norm", head, bias=False, copies=layers)
    return tower


VISION_ENCODERS = {
    "cohere_compass_vision": qwen3_vl, "ernie4_5_vl_moe_vision": ernie4_5_vl,
    "exaone4_5_vision": exaone4_5, "gemma4_vision": gemma4, "glm4v_moe_vision": glm4v,
    "glm4v_vision": glm4v, "glm5_next_vision": glm5_next, "glm_ocr_vision": glm_ocr,
    "granite_docling_vision": granite_docling,
    "hunyuan_vl_vision": hunyuan_vl, "hy_v4_vl_vision": hy_v4_vl,
    "qwen2_5_vl_vision": qwen2_5_vl, "qwen2_vl_vision": qwen2_vl,
    "qwen3_5_moe_vision": qwen3_5, "qwen3_5_vision": qwen3_5, "qwen3_vl_moe_vision": qwen3_vl,
    "qwen3_vl_vision": qwen3_vl, "qwen4_exp_vision": qwen3_5,
}  # fmt: skip
