"""Which types of model MLX's two loaders know, and what their classes keep.

Source:
    mlx-lm 0.32.2 ``models/*.py``, ``utils.py :: MODEL_REMAPPING``; mlx-vlm 0.7.10 ``models/``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import CACHED

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec


def _types(names: str) -> frozenset[str]:
    return frozenset(names.split())


MLX_LM = _types(
    """
    Klear afm7 afmoe apertus baichuan_m1 bailing_hybrid bailing_moe bailing_moe_linear
    bailing_moe_v3 bitnet cohere cohere2 dbrx deepseek deepseek_v2 deepseek_v3 deepseek_v32
    deepseek_v41 deepseek_v41_text dots1 ernie4_5 ernie4_5_moe exaone exaone4 exaone_moe falcon_h1
    falcon_mamba gear gemma gemma2 gemma3 gemma3_text gemma3n gemma4 gemma4_text gemma4_unified
    glm glm4 glm4_moe glm4_moe_lite glm_moe_dsa gpt2 gpt_bigcode gpt_neox gpt_oss gptj granite
    granitemoe granitemoehybrid helium hunyuan hunyuan_v1_dense internlm2 internlm3 iquestcoder
    iquestloopcoder jamba joyai_llm_flash kimi_k2 kimi_k25 kimi_k3 kimi_linear kimi_vl laguna lfm2
    lfm2-vl lfm2_moe lille-130m llama llama4 llama4_text llava longcat_flash longcat_flash_ngram
    mamba mamba2 mellum mimo mimo_v2_flash minicpm minicpm3 minimax minimax_m2 minimax_m3_vl
    ministral3 mistral mistral3 mistral4 mixtral muse_glimmer muse_spark nanbeige nanochat
    nemotron nemotron-nas nemotron_h olmo olmo2 olmo3 olmo_hybrid olmoe openelm phi phi-msft phi3
    phi3small phimoe phixtral pixtral plamo plamo2 plamo3 qwen qwen2 qwen2_5_vl qwen2_moe qwen2_vl
    qwen3 qwen3_5 qwen3_5_moe qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe recurrent_gemma rwkv7
    seed_oss smollm3 solar_open spark2_5 stablelm starcoder2 step3p5 talkie telechat3 xverse
    youtu_llm
    """
)
"""Types that mlx-lm loads: of a multimodal model the text part alone."""
MLX_VLM = _types(
    """
    aya_vision bert bonsai bunny-llama clef cohere2_moe cohere2_vision cohere_compass colidefics3
    colqwen2_5 d1 d1_omni decider2 deepseek_v4 deepseek_vl_v2 deepseekocr deepseekocr_2
    diffusion_gemma dinov2 dots_ocr embedding_gemma2 ernie4_5_moe_vl ernie_image falcon_ocr
    falcon_perception fastvlm flint florence2 flux2 flux3 gemma3_embedding gliner2_5 glm4v
    glm4v_moe glm5_next glm_ocr got granite4_vision granite_vision hrm_text hunyuan_vl hy_v4
    idefics2 idefics3 ideogram4 indic_ocr inkling internvl internvl_chat jina_vlm k2_horizon klear
    kolibri1 laya lfm2_colbert lfm2_embedding lfm2_encoder lfm2_vl lille_130m limite llada2_moe
    llada_image llama_bidirec llama_nemotron_vl_embedding llava-qwen2 llava_bunny llava_next
    llava_onevision llava_qwen2 llmjpvl locateanything longcat_flash_sparse mage_flow mage_vl
    mimo_v2 ming_image minicpmo minicpmv4_6 minicpmv4_7 minimax_h3 minimax_m3 ministral3_embedding
    mistral_large3 mllama modernbert moge3 molmo molmo2 molmo_point moondream1 moondream2
    moondream3 moss_image multi_modality nemotron_h_nano_omni nemotron_h_omni
    nemotron_labs_diffusion nemotron_nas nemotron_parse nemotron_voicechat openai_privacy_filter
    paddleocr_vl paligemma phi3_v phi4_siglip phi4mm plamo2vl pp_doclayout_v3
    prism_hadamard_qwen35 qwen3_5_moe_text qwen3_5_text qwen3_embedding qwen3_omni_moe
    qwen3_vl_embedding qwen4_exp qwen_image rfdetr rt_detr_v2 sam3 sam3_1 sam3d_body sam3d_objects
    sapiens2 siglip smolvlm step3p7 unlimited_ocr video_depth_anything xing4_0 xlm_roberta yolo11
    youtu_vl z1t z_image zaya1_vl
    """
)
"""Types that only mlx-vlm loads, towers and all."""
OWN_CACHES = _types(
    """
    afm7 afmoe baichuan_m1 bailing_hybrid bailing_moe_linear bailing_moe_v3 cohere2 deepseek_v32
    deepseek_v41 deepseek_v41_text exaone4 exaone_moe falcon_h1 falcon_mamba gear gemma3
    gemma3_text gemma3n gemma4 gemma4_text gemma4_unified gpt_oss granitemoehybrid iquestcoder
    iquestloopcoder jamba kimi_k3 kimi_linear laguna lfm2 lfm2-vl lfm2_moe llama llama4
    longcat_flash longcat_flash_ngram mamba mamba2 mellum mimo_v2_flash minimax_m3_vl ministral3
    mistral muse_glimmer muse_spark nanbeige nemotron-nas nemotron_h olmo3 olmo_hybrid plamo2
    plamo3 qwen3_5 qwen3_5_moe qwen3_next recurrent_gemma rwkv7 spark2_5 step3p5 xverse
    """
)
"""Types whose class makes its caches itself, so that ``--max-kv-size`` changes nothing."""
_BY_LAYER_TYPES = _types("llama mistral ministral3 iquestcoder xverse")
"""Classes that give a window only to layers that the config calls sliding."""
EXPANDED_LATENTS = frozenset({"deepseek_v2", "minicpm3", "youtu_llm"})
"""Latent attention that is cached as whole keys and values of every head."""


def loader(spec: ArchitectureSpec) -> str:
    """``mlx-lm``, ``mlx-vlm`` or empty: what loads a model of that type."""
    name = spec.root_type or spec.model_type
    if name in MLX_LM:
        return "mlx-lm"
    return "mlx-vlm" if name in MLX_VLM else ""


def makes_own_caches(spec: ArchitectureSpec) -> bool:
    """Whether the class says how its caches look; mlx-vlm's are like those of the text part."""
    name, text = spec.root_type or spec.model_type, spec.model_type
    if name in MLX_LM:
        return name in OWN_CACHES
    return text in OWN_CACHES or text.removesuffix("_text") in OWN_CACHES


def window_of(spec: ArchitectureSpec, attention: AttentionSpec, max_kv_size: int) -> int:
    """Tokens that a layer's cache looks back on in MLX; 0 = all.

    A class that makes no caches of its own gets plain ones: its windows save nothing (Gemma 2,
    Phi-3, Qwen2), and ``--max-kv-size`` gives every layer one.
    """
    if attention.kind not in (AttentionKind.SLIDING, AttentionKind.CHUNKED, AttentionKind.FULL):
        return 0
    if not makes_own_caches(spec):
        return max_kv_size
    if spec.model_type in _BY_LAYER_TYPES and attention.window and _is_windowed(spec):
        return 0
    return attention.window


@lru_cache(maxsize=CACHED)
def _is_windowed(spec: ArchitectureSpec) -> bool:
    return all(attention.window for attention in spec.attentions)
