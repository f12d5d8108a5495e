"""Every tower by the ``model_type`` of the whole model: which module it is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine.architecture.lookup import Lookup

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts


class UnknownTowerError(Exception):
    """A tower without a rule: its parameters cannot be counted, those of ``counted`` can."""

    def __init__(self, named: str, counted: tuple[Tensor, ...] = ()) -> None:
        super().__init__(named)
        self.counted = counted


TowerRule = Callable[["Facts", "Facts"], "list[Tensor]"]
"""(root, text) -> the tensors of towers and projectors."""

AudioRule = Callable[["Facts", "Tower"], None]
"""Adds an encoder's tensors to a tower, under the tower's path."""

_HOMES = {
    "acting": "pi0",
    "adapters": "molmo2 nemotron_h_omni",
    "assistants": "gemma4_assistant gemma4_unified_assistant",
    "audio": (
        "voxtral glmasr audioflamingo3 musicflamingo voxtral_realtime moss_transcribe_diarize "
        "qwen2_audio omniasr qwen3_asr"
    ),
    "audio_codec": "vibevoice vibevoice_asr",
    "audio_conformer": "granite_speech granite_speech_plus",
    "audio_conv": "fun_asr_nano",
    "audio_stacked": "nemo_speechlm",
    "documents": "pp_formulanet unlimited_ocr",
    "blt": "blt",
    "codebooks": "chameleon emu3",
    "crossing": "blip evolla git idefics",
    "dots": "dots3_note",
    "flat": "llava_llama llava_mistral llava_qwen llava_qwen2 minicpmv molmo phi3_v",
    "further": "kimi_k25 minicpm_ocr minicpmv4_6 minicpmv4_7 minimax_m3_vl mllama step3p7",
    "gemma4": "diffusion_gemma gemma4 gemma4_unified",
    "kimi_k3": "kimi_k3",
    "kosmos": "kosmos-2 kosmos-2.5 pix2struct",
    "lfm3": "lfm3_vl",
    "muse": "muse_glimmer muse_spark",
    "omni": (
        "qwen2_5_omni_thinker qwen3_omni_moe_thinker qwen2_5_omni qwen3_omni_moe phi4_multimodal"
    ),
    "speaking": "csm",
    "omni_tokens": "apertus1p5 inkling_mm_model inkling2 inkling2_loop",
    "named": "fast_vlm gemma3n",
    "own_code": (
        "deepseekocr DeepseekOCR dots_ocr GOT interns1 lfm2-vl minimax_vl_01 moondream1 openvla "
        "ovis2_5 phi4mm step3_vl unlimited-ocr"
    ),
    "perception": "perception_lm",
    "projected": (
        "internvl lighton_ocr llava_onevision mistral_large4 paddleocr_vl qianfan_ocr qwen4_exp "
        "shieldgemma2 video_llama_3 video_llava vipllava"
    ),
    "published": (
        "deepseek_vl_v2 eagle_2_5_vl internvl_chat kimi_vl locateanything multi_modality ovis"
    ),
    "queries": "aria blip-2 granite4_vision idefics2 instructblip instructblipvideo",
    "stages": "florence2",
    "sam": "deepseek_ocr2 deepseek_vl_hybrid got_ocr2 pp_chart2table",
    "reading": (
        "canary t5gemma t5gemma2 encoder-decoder vision-encoder-decoder speech-encoder-decoder "
        "dia musicgen musicgen_melody kyutai_speech_to_text"
    ),
    "tokens": "janus ovis2",
    "vision": (
        "aya_vision cohere2_vision cohere_compass cosmos3_edge cosmos3_omni deepseek_vl "
        "ernie4_5_vl_moe exaone4_5 fuyu gemma3 glm46v glm4v glm4v_moe glm5_next glm_ocr glmga "
        "granite_docling hunyuan_vl hy_v4_vl hyperclovax_vision_v2 idefics3 lfm2_vl llama4 llava "
        "llava_next llava_next_video mistral3 paligemma qwen2_5_vl qwen2_vl qwen3_5 qwen3_5_moe "
        "qwen3_vl qwen3_vl_moe smolvlm"
    ),
}
TOWERS: Mapping[str, TowerRule] = Lookup("engine.architecture.towers", "TOWERS", _HOMES)

_AUDIO = {
    "audio": (
        "voxtral_encoder audioflamingo3_encoder qwen2_audio_encoder "
        "moss_transcribe_diarize_audio glmasr_encoder voxtral_realtime_encoder "
        "qwen2_5_omni_audio_encoder qwen3_omni_moe_audio_encoder qwen3_asr_encoder "
        "qwen3_asr_audio_encoder musicflamingo_encoder"
    ),
    "audio_conformer": (
        "granite_speech_encoder granite_speech_plus_encoder phi4_multimodal_audio gemma3n_audio"
    ),
    "audio_fast": (
        "parakeet_encoder nemotron_asr_streaming_encoder lasr_encoder granite_speech5_encoder"
    ),
    "audio_waves": (
        "wav2vec2 hubert unispeech unispeech-sat wavlm data2vec-audio wav2vec2-conformer "
        "wav2vec2-bert"
    ),
    "audio_conv": "omniasr_audio fun_asr_nano_encoder",
    "audio_codec": "vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_encoder",
    "codecs": "wavtokenizer_encoder",
    "omni_tokens": "inkling_audio",
    "audio_stacked": (
        "nemotron3_5_transcribe_asr_audio nemotron3_diarization nemotron3_5_transcribe_audio"
    ),
}
AUDIO_ENCODERS: Mapping[str, AudioRule] = Lookup("engine.architecture.towers", "ENCODERS", _AUDIO)
"""Audio encoders by the ``model_type`` of their own config."""
