"""Every family by ``model_type``: which module it is in. A family is loaded when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.lookup import Lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.families.base import Family

_HOMES = {
    "bart_text": "kosmos_2_text_model kosmos_2_5_text_model pp_formulanet_text",
    "blt": "blt_local_decoder",
    "cells": "rwkv xlstm recurrent_gemma",
    "classic": (
        "gpt2 gpt_bigcode gpt_neo gptj codegen gpt_neox bloom mpt falcon opt xglm persimmon "
        "baichuan internlm2 qwen exaone"
    ),
    "deepseek_v4": "deepseek_v4 deepseek_ref",
    "dense": (
        "llama code_llama cwm internlm3 mistral ministral ministral3 qwen2 mimo qwen3 gemma gemma2 "
        "gemma3_text vaultgemma phi phi3 granite cohere cohere2 olmo olmo2 olmo3 glm glm4 "
        "glm4v_text exaone4 seed_oss smollm3 minicpm stablelm starcoder2 nemotron arcee helium "
        "ernie4_5 hunyuan_v1_dense"
    ),
    "drafts": "eagle3_draft eagle_draft dflash_draft",
    "drafts_heads": "medusa_draft mlp_speculator_draft mtp_draft",
    "early": "biogpt ctrl openai-gpt xlm cpmant gpt_neox_japanese xlnet reformer",
    "forerunners": (
        "chatglm codeshell gpt_refact grok-1 huginn_raven iquestloopcoder llada2_moe minicpm_sala "
        "pico_decoder step3_text"
    ),
    "gated": "afmoe beam laguna muse_glimmer_text muse_spark_text step3p5",
    "gemma3n": "gemma3n_text",
    "gemma4": (
        "gemma4_text gemma4_unified_text diffusion_gemma_text gemma4_assistant "
        "gemma4_unified_assistant"
    ),
    "embedders": (
        "distilbert mpnet jina_embeddings_v3 gte nomic_bert modernbert eurobert deberta-v2 "
        "convbert dpr neobert"
    ),
    "hybrid": (
        "mllama_text_model qwen3_next qwen3_5_text qwen3_5_moe_text lfm2 lfm2_moe nemotron_h "
        "lfm3 minimax olmo_hybrid"
    ),
    "indexed": "axk2 dots3_note_text glm5_next_text hy_v4 hy_v4_vl_text mistral_large4_text",
    "inkling": "inkling_text inkling2_text inkling2_loop_text",
    "kimi_linear": "kimi_linear bailing_hybrid",
    "mixing_own": "Motif plamo2 solar_open2 transformer",
    "mixtures": "arctic dbrx ernie4_5_vl_moe_text jetmoe longcat_flash",
    "masked": (
        "bert roberta albert megatron-bert ernie roc_bert big_bird bert-generation roformer "
        "electra rembert roberta-prelayernorm xlm-roberta-xl xmod"
    ),
    "layered": "openelm deci",
    "nas": "nemotron-nas",
    "qwen4_exp": "qwen4_exp_text",
    "recurrent": "bamba granitemoehybrid falcon_h1 jamba mamba falcon_mamba mamba2",
    "seeing": "blip_text_model chameleon evolla git idefics",
    "selecting": "deepseek_v32 glm_moe_dsa minimax_m3_vl_text",
    "looped": "dory",
    "seq2seq_bart": (
        "bart plbart mbart mvp blenderbot pegasus blenderbot-small bigbird_pegasus pegasus_x "
        "marian m2m_100 nllb-moe fsmt led prophetnet trocr"
    ),
    "seq2seq_gemma": "t5_gemma_module t5gemma2_decoder",
    "seq2seq_t5": "t5 mt5 umt5 longt5 pop2piano udop switch_transformers pix2struct_text_model",
    "small": (
        "apertus apertus1p5_text bitnet diffllama doge granite_swa hyperclovax nanochat "
        "cosmos3_edge_text glm_ocr_text hrm_text modernbert-decoder"
    ),
    "small_sparse": "aria_text mellum flint lara_mini deepseek_ocr2_text unlimited_ocr_text",
    "speech_codes": ("musicgen_decoder musicgen_melody_decoder dia_decoder kyutai_speech_to_text"),
    "speech": (
        "whisper speech_to_text moonshine moonshine_streaming cohere_asr canary_decoder "
        "seamless_m4t seamless_m4t_v2 speecht5"
    ),
    "sparse": (
        "mixtral phimoe minimax_m2 qwen2_moe qwen3_moe gpt_oss deepseek_v2 deepseek_v3 kimi_k2 "
        "glm4_moe_lite glm4_moe glm4v_moe_text sarvam_moe solar_open bailing_moe deepseek "
        "dots1 olmoe flex_olmo granitemoe granitemoeshared ernie4_5_moe hunyuan_v1_moe "
        "exaone_moe llama4_text mimo_v2_flash minicpm3 youtu mistral4 sarvam_mla axk1 "
        "granitemoe_swa cohere2_moe hy_v3 kolibri1 qwen3_vl_moe_text qwen3_omni_moe_text"
    ),
    "published": (
        "bidirectional_pplx_qwen3 Dream hf_olmo illada instella internlm jais llada llama_bidirec "
        "nanbeige orion ouro phi-msft phi3small plamo3 RefinedWeb solar telechat"
    ),
    "wkv": "rwkv5 rwkv6 rwkv7",
    "zaya": "zaya",
    "zamba": "zamba zamba2",
    "voices": "higgs_audio_v2",
    "text_parts": "cohere_compass_text molmo2_text molmo_text voxtral_realtime_text",
    "speaking": "moshi",
}
# Text parts of multimodal models, and other names of the same layers.
_SAME_LAYERS = {
    "minimax_text_01": "minimax",
    "minimax_m1": "minimax",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_asr_text": "qwen3",
    "exaone4_5_text": "exaone4",
    "phi4": "phi3",
    "phi4_multimodal": "phi3",
    "csm": "llama",
    "xverse": "llama",
    "camembert": "roberta",
    "xlm-roberta": "roberta",
    "data2vec-text": "roberta",
    "gpt-sw3": "gpt2",
    "iquestcoder": "llama",
    "jais2": "nemotron",
    "emu3_text_model": "llama",
    "granite4_vision_text": "granite",
    "granite_docling_text": "granite",
    "hunyuan_vl_text": "hunyuan_v1_dense",
    "paddleocr_vl_text": "ernie4_5",
    "new": "gte",
    "lizzy": "olmo2",
    "olmo2-retrofit": "olmo2",
    "progen": "codegen",
    "joyai_llm_flash": "deepseek_v3",
    "nemotron_labs_diffusion": "illada",
    "rwkv6_world": "rwkv6",
    "bailing_moe_v2": "bailing_moe",
    "btlm": "jais",
    "mimo_v2": "mimo_v2_flash",
    "skywork": "llama",
    "Yi": "llama",
    "aquila": "llama",
    "apriel": "llama",
    "ilama": "llama",
    "k2_horizon": "llama",
    "kanana2vec": "llama_bidirec",
    "kanana2_tiny": "qwen3",
    "kormo": "llama",
    "maincoder": "qwen3",
    "mixformer-sequential": "phi-msft",
    "parambharatgen": "llama",
    "RefinedWebModel": "falcon",
    "sdar": "qwen3",
    "sdar_moe": "qwen3_moe",
    "stablelm_epoch": "stablelm",
    "zarya": "qwen3",
}
FAMILIES: Mapping[str, Family] = Lookup(
    "engine.architecture.families", "FAMILIES", _HOMES, _SAME_LAYERS
)
