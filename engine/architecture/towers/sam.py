"""SAM's encoder, with its neck, and the models that look at large images with it.

Source:
    transformers 5.24.0, ``sam/modeling_sam.py``, ``got_ocr2/modeling_got_ocr2.py``,
    ``deepseek_vl_hybrid/modeling_deepseek_vl_hybrid.py`` and
    ``deepseek_ocr2/modeling_deepseek_ocr2.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.encoders import encoder, tower_of
from engine.architecture.towers.parts import (
    Encoder,
    Tower,
    number,
    pair,
    patches,
    vision_of,
    width_of,
)

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def sam(vision: Facts) -> Tower:
    """SAM: positions by place, and by distance in each layer; windows in most; a neck of two."""
    tower = Tower("sam_encoder.")
    hidden, layers = vision.integer("hidden_size"), vision.integer("num_hidden_layers")
    width = vision.optional("mlp_dim") or int(hidden * number(vision, "mlp_ratio", 4.0))
    tower.linear("patch_embed.projection", hidden, patches(vision))
    rows, columns = pair(vision, "image_size")
    height, wide = pair(vision, "patch_size")
    image = (rows // height, columns // wide)
    if vision.flag("use_abs_pos"):
        tower.weight("pos_embed", 1, *image, hidden)
    style = Encoder(qkv_bias=vision.flag("qkv_bias"))
    style.add(tower, layers, hidden, width, (hidden, hidden))
    if vision.flag("use_rel_pos"):
        _distances(tower, vision, image)
    neck(tower, "neck", hidden, vision.integer("output_channels"))
    return tower


def _distances(tower: Tower, vision: Facts, image: tuple[int, int]) -> None:
    layers = vision.integer("num_hidden_layers")
    head = vision.integer("hidden_size") // vision.integer("num_attention_heads")
    window = vision.count("window_size")
    whole = set(vision.integers("global_attn_indexes") or ())
    around = sum(index in whole or not window for index in range(layers))
    for name, copies, sides in (
        ("around", around, image),
        ("within", layers - around, (window, window)),
    ):
        for axis, side in zip("hw", sides, strict=True):
            if copies:
                tower.weight(f"layers.{name}.rel_pos_{axis}", 2 * side - 1, head, copies=copies)


def neck(tower: Tower, name: str, hidden: int, channels: int) -> None:
    """Two convolutions, each with a norm, of ``hidden`` channels to ``channels``."""
    tower.linear(f"{name}.conv1", channels, hidden, bias=False)
    tower.norm(f"{name}.layer_norm1", channels)
    tower.linear(f"{name}.conv2", channels, 9 * channels, bias=False)
    tower.norm(f"{name}.layer_norm2", channels)


def shrink(tower: Tower, name: str, channels: int, steps: tuple[int, int]) -> None:
    """Two strided convolutions of three by three, without bias."""
    tower.linear(f"{name}.conv1", steps[0], 9 * channels, bias=False)
    tower.linear(f"{name}.conv2", steps[1], 9 * steps[0], bias=False)


def got_ocr2(root: Facts, text: Facts) -> list[Tensor]:
    """GOT-OCR 2: SAM, two strided convolutions and one linear layer."""
    vision = vision_of(root)
    tower = sam(vision)
    channels, hidden = vision.integer("output_channels"), text.integer("hidden_size")
    tower.path = "multi_modal_projector."
    shrink(tower, "conv_upsampler", channels, (2 * channels, hidden))
    tower.linear("multimodal_projector", hidden, hidden)
    return tower.tensors


def deepseek_vl_hybrid(root: Facts, text: Facts) -> list[Tensor]:
    """DeepSeek-VL hybrid: a tower for the image as a whole and SAM for its details."""
    key = "high_res_vision_config"
    high = root.sub(key) or root.empty(key)
    tower, detail = tower_of(root), encoder(high)
    channels, hidden = high.integer("output_channels"), text.integer("hidden_size")
    neck(detail, "high_res_vision_neck", high.integer("hidden_size"), channels)
    shrink(detail, "high_res_vision_proj", channels, (2 * channels, 4 * channels))
    detail.weight("high_res_vision_alpha", 1)
    tower.path = "aligner."
    tower.linear("vision_proj", hidden // 2, width_of(vision_of(root)))
    tower.linear("high_res_vision_proj", hidden // 2, 4 * channels)
    tower.linear("proj", hidden, hidden)
    return [*tower.tensors, *detail.tensors]


def sam_and_shrunk(vision: Facts) -> Tower:
    """SAM whose features are shrunk twice more (DeepSeek-OCR)."""
    tower = sam(vision)
    key = "downsample_channels"
    steps = pair(vision, key) if vision.has(key) else _SHRUNK.get(vision.model_type, (512, 1024))
    shrink(tower, "proj", vision.integer("output_channels"), steps)
    return tower


_SHRUNK = {"deepseek_ocr2_sam_vision_model": (512, 896)}
"""Channels of the two steps where the config doesn't say."""


def deepseek_ocr2(root: Facts, text: Facts) -> list[Tensor]:
    """DeepSeek-OCR 2: SAM, then a decoder as encoder with learned queries for two sizes."""
    vision = vision_of(root)
    tower = sam_and_shrunk(vision.sub("sam_config") or vision.empty("sam_config"))
    reader = vision.sub("encoder_config") or vision.empty("encoder_config")
    hidden, heads = reader.integer("hidden_size"), reader.integer("num_attention_heads")
    head = reader.integer("head_dim", hidden // heads)
    kv = reader.integer("num_key_value_heads", heads) * head
    tower.path = "vision_encoder."
    style = Encoder(gated=True, o_bias=False, mlp_bias=False, norm_bias=False)
    layers, width = reader.integer("num_hidden_layers"), reader.integer("intermediate_size")
    style.add(tower, layers, hidden, width, (heads * head, kv))
    tower.norm("norm", hidden, bias=False)
    tower.path = ""
    tower.weight("query_768_resolution.weight", 12 * 12, hidden)
    tower.weight("query_1024_resolution.weight", 16 * 16, hidden)
    tower.linear("multi_modal_projector", text.integer("hidden_size"), hidden)
    tower.weight("view_separator", text.integer("hidden_size"))
    return tower.tensors


TOWERS = {
    "deepseek_ocr2": deepseek_ocr2, "deepseek_vl_hybrid": deepseek_vl_hybrid, "got_ocr2": got_ocr2,
    "pp_chart2table": got_ocr2,
}  # fmt: skip
VISION_ENCODERS = {
    "deepseek_ocr2_sam_vision_model": sam_and_shrunk, "got_ocr2_vision": sam,
    "pp_chart2table_vision": sam, "sam_vision_model": sam,
}  # fmt: skip
