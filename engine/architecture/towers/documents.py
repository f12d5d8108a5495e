"""Models that read documents with SAM's encoder or Pix2Struct's: Unlimited-OCR, PP-FormulaNet.

Source:
    transformers 5.24.0, ``unlimited_ocr/modeling_unlimited_ocr.py``,
    ``pp_formulanet/modeling_pp_formulanet.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.parts import PLAIN, encode, grid, pair, vision_of
from engine.architecture.towers.sam import sam, sam_and_shrunk

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts


def unlimited_ocr(root: Facts, text: Facts) -> list[Tensor]:
    """Unlimited-OCR: SAM, a CLIP that reads what SAM saw, and both side by side."""
    out = text.integer("hidden_size")
    tower, width = unlimited_vision(vision_of(root))
    tower.linear("multi_modal_projector", out, width)
    tower.weight("view_separator", out)
    tower.weight("image_newline", out)
    return tower.tensors


def unlimited_vision(vision: Facts) -> tuple[Tower, int]:
    """Both encoders, and the width of what they see."""
    detail = vision.sub("sam_config") or vision.empty("sam_config")
    tower = sam_and_shrunk(detail)
    reader = vision.sub("encoder_config") or vision.empty("encoder_config")
    hidden = reader.integer("hidden_size")
    tower.path = "vision_encoder."
    tower.weight("embeddings.class_embedding", hidden)
    tower.weight("embeddings.position_embedding.weight", grid(reader) + 1, hidden)
    tower.norm("pre_layrnorm", hidden)
    encode(tower, reader, PLAIN)
    tower.path = ""
    _, seen = pair(detail, "downsample_channels")
    return tower, seen + hidden


def pp_formulanet(root: Facts, _text: Facts) -> list[Tensor]:
    """PP-FormulaNet: SAM, two strided convolutions and two linear layers."""
    vision = vision_of(root)
    tower = sam(vision)
    tower.path = "multi_modal_projector."
    out, between = (
        vision.integer("post_conv_out_channels"),
        vision.integer("post_conv_mid_channels"),
    )
    tower.linear("conv1", between, 9 * vision.integer("post_conv_in_channels"), bias=False)
    tower.linear("conv2", out, 9 * between, bias=False)
    tower.linear("linear_1", out, out)
    tower.linear("linear_2", vision.integer("decoder_hidden_size"), out)
    return tower.tensors


TOWERS = {"pp_formulanet": pp_formulanet, "unlimited_ocr": unlimited_ocr}
