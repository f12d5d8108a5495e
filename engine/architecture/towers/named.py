"""Towers that a config gives by the name alone that the library timm knows them under.

Nothing in the config says how they are built, so only those are counted whose sum is known.

Source:
    timm 1.0.31, each built on the meta device without a classifier; transformers 5.24.0,
    ``timm_wrapper/modeling_timm_wrapper.py``, ``gemma3n/modeling_gemma3n.py`` and
    ``fast_vlm/modeling_fast_vlm.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.audio import audio_of, listen
from engine.architecture.towers.encoders import encoder
from engine.architecture.towers.parts import Tower, vision_of, width_of
from engine.architecture.towers.registry import UnknownTowerError
from engine.config.facts import Facts
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor

_PARAMETERS = {
    "fastvit_mci0": 10_882_176,
    "fastvit_mci1": 21_016_832,
    "fastvit_mci2": 35_159_360,
    "fastvit_mci3": 122_875_584,
    "fastvit_mci4": 318_638_336,
    "mobilenetv5_300m": 294_126_912,
    "mobilenetv5_300m_enc": 294_126_912,
    "mobilenetv5_base": 80_598_976,
    "resnet18": 11_176_512,
    "resnet50": 23_508_032,
}
_FUSED = {
    "fastvit_mci0": 10_832_704,
    "fastvit_mci1": 20_936_256,
    "fastvit_mci2": 35_047_120,
    "fastvit_mci3": 122_714_208,
    "fastvit_mci4": 318_423_168,
}
"""The same with ``inference_mode``: branches that add up are stored as one."""


def named(vision: Facts) -> Tower:
    """The tower called ``architecture``.

    Raises:
        UnknownTowerError: its sum is not known, or arguments are given that change it.
    """
    name = vision.word("architecture")
    arguments = vision.sub("model_args") or Facts({})
    is_fused = arguments.flag("inference_mode")
    found = (_FUSED if is_fused else _PARAMETERS).get(name)
    if found is None or arguments.stated.keys() - {"inference_mode"}:
        raise UnknownTowerError(tr("{name} of timm").format(name=name[:40]))
    tower = Tower("vision_tower.")
    tower.weight("timm_model", found)
    return tower


_FAST_VLM = {
    "architecture": "fastvit_mci3",
    "hidden_size": 3072,
    "model_args": {"inference_mode": True},
}
"""FastVLM's encoder where its config leaves it out."""


def fast_vlm(root: Facts, text: Facts) -> list[Tensor]:
    """FastVLM: two linear layers behind an encoder, most often FastViT."""
    vision = vision_of(root)
    if root.raw("vision_config") is None:
        vision = Facts(_FAST_VLM, vision.model_type, vision.defaults, vision.path)
    hidden = text.integer("hidden_size")
    bias = root.flag("multimodal_projector_bias", default=True)
    projector = Tower("multi_modal_projector.")
    projector.linear("linear_1", hidden, width_of(vision), bias=bias)
    projector.linear("linear_2", hidden, hidden, bias=bias)
    return [*encoder(vision).tensors, *projector.tensors]


def gemma3n(root: Facts, text: Facts) -> list[Tensor]:
    """Gemma 3n: MobileNet sees and a Conformer hears; each has words of its own."""
    vision, audio = vision_of(root), audio_of(root)
    heard = listen(audio, "model.audio_tower.")
    for tower, facts, name in ((heard, audio, "audio"), (Tower(""), vision, "vision")):
        hidden = facts.integer("hidden_size")
        tower.path = f"model.embed_{name}."
        tower.weight("embedding.weight", facts.integer("vocab_size"), hidden)
        tower.norm("hard_embedding_norm", hidden, bias=False)
        tower.norm("soft_embedding_norm", hidden, bias=False)
        tower.linear("embedding_projection", text.integer("hidden_size"), hidden, bias=False)
        if tower is not heard:
            heard.tensors += tower.tensors
    try:
        return [*heard.tensors, *encoder(vision).tensors]
    except UnknownTowerError as unknown:
        raise UnknownTowerError(str(unknown), tuple(heard.tensors)) from unknown


TOWERS = {"fast_vlm": fast_vlm, "gemma3n": gemma3n}
VISION_ENCODERS = {"gemma3n_vision": named, "timm_wrapper": named}
