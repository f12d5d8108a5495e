"""Every vision encoder by the ``model_type`` of its own config: which module it is in.

A root that takes any encoder (LLaVA and its kin, ``vision-encoder-decoder``) looks it up here.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine.architecture.lookup import Lookup
from engine.architecture.towers.parts import UnknownTowerError, vision_of

if TYPE_CHECKING:
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts

EncoderRule = Callable[["Facts"], "Tower"]
"""vision config -> the tower that it describes, without a projector."""

_HOMES = {
    "vits": (
        "aimv2_vision_model beit blip_2_vision_model blip_vision_model chinese_clip_vision_model "
        "clip_vision_model data2vec-vision deit dinov2 dinov2_with_registers dinov3_vit "
        "git_vision_model idefics2_vision idefics3_vision idefics_vision ijepa "
        "instructblip_vision_model instructblipvideo_vision_model internvl_vision "
        "mlcd_vision_model pixtral siglip2_vision_model siglip_vision_model smolvlm_vision vit "
        "vit_mae vit_msn"
    ),
}
ENCODERS: Mapping[str, EncoderRule] = Lookup("engine.architecture.towers", "ENCODERS", _HOMES)


def encoder(vision: Facts) -> Tower:
    """The tower that ``vision`` describes.

    Raises:
        UnknownTowerError: no rule for its type.
    """
    if vision.model_type not in ENCODERS:
        raise UnknownTowerError(vision.model_type)
    return ENCODERS[vision.model_type](vision)


def tower_of(root: Facts) -> Tower:
    """The vision tower of a root that takes any encoder.

    Raises:
        UnknownTowerError: no rule for its type.
    """
    return encoder(vision_of(root))
