"""Models that see, hear and speak: one text model with several towers, or a talker behind it.

Source:
    transformers 5.24.0, ``qwen2_5_omni/modeling_qwen2_5_omni.py``,
    ``qwen3_omni_moe/modeling_qwen3_omni_moe.py``,
    ``phi4_multimodal/modeling_phi4_multimodal.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.audio import audio_of, listen
from engine.architecture.towers.audio_conformer import phi4_ear
from engine.architecture.towers.encoders import tower_of
from engine.architecture.towers.omni_speech import (
    bigvgan,
    code2wav,
    code_predictor,
    dit,
    talker,
    talker_moe,
)
from engine.architecture.towers.parts import Tower, vision_of
from engine.architecture.towers.vits import siglip
from engine.config.facts import Facts

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor


def _thinker(root: Facts, _text: Facts) -> list[Tensor]:
    """A thinker: an ear and an eye, whose last layers are as wide as the text model."""
    return listen(audio_of(root)).tensors + tower_of(root).tensors


def _qwen2_5_omni(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen2.5-Omni: the thinker, and where it speaks a talker and a vocoder."""
    tensors = _thinker(audio_of(root, "thinker_config"), text)
    if not root.flag("enable_audio_output"):
        return tensors
    wave = audio_of(root, "token2wav_config")
    return [
        *tensors,
        *talker(audio_of(root, "talker_config")),
        *dit(audio_of(wave, "dit_config")),
        *bigvgan(audio_of(wave, "bigvgan_config")),
    ]


def _qwen3_omni(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen3-Omni: the thinker, and where it speaks two talkers and a vocoder."""
    tensors = _thinker(audio_of(root, "thinker_config"), text)
    if not root.flag("enable_audio_output"):
        return tensors
    voice = audio_of(root, "talker_config")
    return [
        *tensors,
        *talker_moe(voice, audio_of(voice, "text_config")),
        *code_predictor(audio_of(voice, "code_predictor_config")),
        *code2wav(audio_of(root, "code2wav_config")),
    ]


def _phi4(root: Facts, text: Facts) -> list[Tensor]:
    """Phi-4 multimodal: SigLIP with its head, a conformer, and projectors for each."""
    stated = vision_of(root)
    given = {**stated.stated, "vision_use_head": True}
    vision = Facts(given, stated.model_type, stated.defaults, stated.path)
    path = "model.embed_tokens_extend.image_embed."
    tower: Tower = siglip(vision, path + "img_processor.")
    hidden, out = vision.integer("hidden_size"), text.integer("hidden_size")
    tower.path = path
    tower.linear("img_projection_up", out, hidden)
    tower.linear("img_projection_down", out, out)
    tower.weight("global_img_feature_extensor", 1, 1, hidden)
    tower.weight("sub_img_feature_extensor", 1, 1, 1, hidden)
    return tower.tensors + phi4_ear(root, text)


TOWERS = {
    "qwen2_5_omni_thinker": _thinker,
    "qwen3_omni_moe_thinker": _thinker,
    "qwen2_5_omni": _qwen2_5_omni,
    "qwen3_omni_moe": _qwen3_omni,
    "phi4_multimodal": _phi4,
}
