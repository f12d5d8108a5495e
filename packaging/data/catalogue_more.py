"""Catalogue entries whose dimensions are written down here, model by model.

Each is a change of an entry that is there, or a config in few words. It enters when our count
equals the total that the Hub publishes, but for what ``BESIDE`` explains: files also hold blocks
that predict further tokens, biases that balance experts, keys and values of layers that share
another's. Then come twins: further models of the same type and the same exact total.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from catalogue_hub import NAMES_LEFT_OUT, ORGANISATIONS, PLAIN_TYPES

from engine.architecture.read import specify
from engine.source.catalogue import unfold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.spec import ArchitectureSpec

_LINEAR = ["linear_attention"] * 3 + ["full_attention"]
_GEMMA4 = ["sliding_attention"] * 5 + ["full_attention"]
_GRANITE_H = ["attention" if n in (5, 15, 25, 35) else "mamba" for n in range(40)]


def _sizes(
    hidden: int, inter: int, layers: int, heads: int, kv: int, **more: Any
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "intermediate_size": inter,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        **more,
    }


def _granite_h(hidden: int, inter: int, heads: int, kv: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": "granitemoehybrid",
        "architectures": ["GraniteMoeHybridForCausalLM"],
        "layer_types": _GRANITE_H,
        "mamba_d_conv": 4,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "mamba_n_heads": hidden // 32,
        "vocab_size": 100352,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "max_position_embeddings": 131072,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "shared_intermediate_size": inter,
        **_sizes(hidden, inter, 40, heads, kv),
        **more,
    }


def _qwen3_5(sizes: dict[str, Any], value_heads: int, *, tied: bool) -> dict[str, Any]:
    """Text dimensions of Qwen3.5: three layers of linear attention to one of full."""
    layers = sizes["num_hidden_layers"]
    return {
        **sizes,
        "linear_num_value_heads": value_heads,
        "layer_types": _LINEAR * (layers // 4),
        "tie_word_embeddings": tied,
    }


_SMALL_TOWER = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096}
_LFM2 = {
    "architectures": ["Lfm2ForCausalLM"],
    "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256,
    "block_ff_dim": 12288, "conv_L_cache": 3, "conv_bias": False, "dtype": "bfloat16",
    "model_type": "lfm2", "vocab_size": 65536, "max_position_embeddings": 128000,
    "layer_types": ["full_attention" if n in (2, 5, 8, 10, 12, 14) else "conv" for n in range(16)],
}  # fmt: skip
_QWEN_MOE = {
    "model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "vocab_size": 151936,
    "decoder_sparse_step": 1, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
_QWEN2_VL = {
    "model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"],
    "max_position_embeddings": 32768, "use_sliding_window": False, "torch_dtype": "bfloat16",
}  # fmt: skip
_QWEN2_TOWER = {
    "depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3,
    "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
}  # fmt: skip
_DEEPSEEK_V2 = {
    "q_lora_rank": 1536, "n_routed_experts": 160, "moe_intermediate_size": 1536,
    "n_shared_experts": 2, "n_group": 8, "topk_group": 3,
    **_sizes(5120, 12288, 60, 128, 128),
}  # fmt: skip
_NEMOTRON_DENSE: dict[str, Any] = {
    "moe_intermediate_size": None, "moe_shared_expert_intermediate_size": None,
    "n_routed_experts": None, "num_experts_per_tok": None,
}  # fmt: skip
"""Without experts."""

NEW: dict[str, dict[str, Any]] = {
    "Qwen/Qwen1.5-MoE-A2.7B": _QWEN_MOE
    | _sizes(2048, 5632, 24, 16, 16, max_position_embeddings=8192, num_experts=60)
    | {"moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632}
    | {"num_experts_per_tok": 4},
    "Qwen/Qwen2-57B-A14B-Instruct": _QWEN_MOE
    | _sizes(3584, 18944, 28, 28, 4, max_position_embeddings=32768, num_experts=64)
    | {"moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480}
    | {"num_experts_per_tok": 8},
    "Qwen/Qwen2-VL-7B-Instruct": _QWEN2_VL
    | _sizes(3584, 18944, 28, 28, 4, vocab_size=152064, tie_word_embeddings=False)
    | {"vision_config": _QWEN2_TOWER | {"hidden_size": 3584}},
    "Qwen/Qwen2-VL-2B-Instruct": _QWEN2_VL
    | _sizes(1536, 8960, 28, 12, 2, vocab_size=151936, tie_word_embeddings=True)
    | {"vision_config": _QWEN2_TOWER | {"hidden_size": 1536}},
    "ibm-granite/granite-4.0-h-small": _granite_h(4096, 768, 32, 8, num_local_experts=72)
    | {"num_experts_per_tok": 10, "shared_intermediate_size": 1536},
    "ibm-granite/granite-4.0-h-tiny": _granite_h(1536, 512, 12, 4, num_local_experts=64)
    | {"num_experts_per_tok": 6, "shared_intermediate_size": 1024},
    "ibm-granite/granite-4.0-h-micro": _granite_h(2048, 8192, 32, 8),
    "ibm-granite/granite-4.0-h-1b": _granite_h(1536, 4096, 12, 4),
    "LiquidAI/LFM2.5-1.2B-Instruct": _LFM2 | _sizes(2048, 12288, 16, 32, 8),
    "LiquidAI/LFM2-700M": _LFM2 | _sizes(1536, 10240, 16, 24, 8, block_ff_dim=10240),
    "LiquidAI/LFM2-350M": _LFM2 | _sizes(1024, 6656, 16, 16, 8, block_ff_dim=6656),
    "rednote-hilab/dots.llm1.inst": {
        "model_type": "dots1", "architectures": ["Dots1ForCausalLM"], "vocab_size": 152064,
        "n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6,
        "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "tie_word_embeddings": False,
        "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
        **_sizes(4096, 10944, 62, 32, 32),
    },
    "tencent/Hunyuan-A13B-Instruct": {
        "model_type": "hunyuan_v1_moe", "architectures": ["HunYuanMoEV1ForCausalLM"],
        "head_dim": 128, "num_experts": 64, "moe_topk": 8, "num_shared_expert": 1,
        "moe_intermediate_size": 3072, "use_qk_norm": True, "tie_word_embeddings": True,
        "max_position_embeddings": 32768, "vocab_size": 128167, "torch_dtype": "bfloat16",
        **_sizes(4096, 3072, 32, 32, 8),
    },
    "zai-org/GLM-4.7-Flash": {
        "model_type": "glm4_moe_lite", "architectures": ["Glm4MoeLiteForCausalLM"],
        "vocab_size": 154880, "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64, "v_head_dim": 256, "n_routed_experts": 64,
        "n_shared_experts": 1, "num_experts_per_tok": 4, "moe_intermediate_size": 1536,
        "first_k_dense_replace": 1, "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16",
        "tie_word_embeddings": False, "max_position_embeddings": 202752,
        **_sizes(2048, 10240, 47, 20, 20),
    },
    "meta-llama/Llama-2-70b-hf": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000,
        "max_position_embeddings": 4096, "tie_word_embeddings": False, "torch_dtype": "float16",
        **_sizes(8192, 28672, 80, 64, 8),
    },
    "HuggingFaceM4/Idefics3-8B-Llama3": {
        "model_type": "idefics3", "architectures": ["Idefics3ForConditionalGeneration"],
        "scale_factor": 2, "torch_dtype": "bfloat16",
        "text_config": {
            "model_type": "llama", "vocab_size": 128259, "max_position_embeddings": 131072,
            "tie_word_embeddings": False, **_sizes(4096, 14336, 32, 32, 8),
        },
        "vision_config": {
            "model_type": "idefics3_vision", "hidden_size": 1152, "intermediate_size": 4304,
            "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 364,
            "patch_size": 14,
        },
    },
    "openai/whisper-large-v3": {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
        "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32, "num_mel_bins": 128,
        "encoder_attention_heads": 20, "decoder_attention_heads": 20, "vocab_size": 51866,
        "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "max_source_positions": 1500,
        "max_target_positions": 448, "torch_dtype": "float16",
    },
}  # fmt: skip
"""Id -> config."""

CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "google/gemma-3-4b-it": (
        "google/gemma-3-27b-it", {"text_config": _sizes(2560, 10240, 34, 8, 4, head_dim=256)}),
    "google/gemma-3-12b-it": (
        "google/gemma-3-27b-it", {"text_config": _sizes(3840, 15360, 48, 16, 8, head_dim=256)}),
    "google/gemma-3-270m-it": ("google/gemma-3-1b-it", _sizes(640, 2048, 18, 4, 1)),
    "google/gemma-4-31B-it": ("nvidia/Gemma-4-31B-IT-NVFP4", {}),
    "google/gemma-4-26B-A4B-it": ("google/gemma-4-26B-A4B", {}),
    "google/gemma-4-12B-it": (
        "nvidia/Gemma-4-31B-IT-NVFP4",
        {"model_type": "gemma4_unified",
         "architectures": ["Gemma4UnifiedForConditionalGeneration"],
         "text_config": _sizes(3840, 15360, 48, 16, 8, num_global_key_value_heads=1)
         | {"model_type": "gemma4_unified_text", "layer_types": _GEMMA4 * 8},
         "vision_config": dict.fromkeys(
             ("head_dim", "hidden_size", "intermediate_size", "num_attention_heads",
              "num_hidden_layers", "num_key_value_heads", "position_embedding_size"))
         | {"model_type": "gemma4_unified_vision", "patch_size": 16, "pooling_kernel_size": 3,
            "mm_embed_dim": 3840, "mm_posemb_size": 1120},
         "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 640}}),
    "google/gemma-4-E4B-it": (
        "google/gemma-4-E2B-it",
        {"text_config": _sizes(2560, 10240, 42, 8, 2, num_kv_shared_layers=18)
         | {"layer_types": _GEMMA4 * 7, "use_double_wide_mlp": False}}),
    "Qwen/Qwen3.6-27B": ("Qwen/Qwen3.5-27B", {}),
    "Qwen/Qwen3.8-27B": ("Qwen/Qwen3.5-27B", {}),
    "Qwen/Qwen3.6-35B-A3B": ("Qwen/Qwen3.5-35B-A3B", {}),
    "Qwen/Qwen3.5-9B": (
        "Qwen/Qwen3.5-27B",
        {"text_config": _qwen3_5(_sizes(4096, 12288, 32, 16, 4), 32, tied=False),
         "vision_config": {"out_hidden_size": 4096}}),
    "Qwen/Qwen3.5-4B": (
        "Qwen/Qwen3.5-27B",
        {"text_config": _qwen3_5(_sizes(2560, 9216, 32, 16, 4), 32, tied=True),
         "vision_config": _SMALL_TOWER | {"out_hidden_size": 2560}, "tie_word_embeddings": True}),
    "Qwen/Qwen3.5-2B": (
        "Qwen/Qwen3.5-27B",
        {"text_config": _qwen3_5(_sizes(2048, 6144, 24, 8, 2), 16, tied=True),
         "vision_config": _SMALL_TOWER | {"out_hidden_size": 2048}, "tie_word_embeddings": True}),
    "Qwen/Qwen3-Coder-Next": ("Qwen/Qwen3-Next-80B-A3B-Instruct", {}),
    "Qwen/Qwen2.5-VL-32B-Instruct": (
        "Qwen/Qwen2.5-VL-7B-Instruct",
        _sizes(5120, 27648, 64, 40, 8)
        | {"vision_config": {"out_hidden_size": 5120, "intermediate_size": 3456}}),
    "Qwen/Qwen2.5-VL-72B-Instruct": (
        "Qwen/Qwen2.5-VL-7B-Instruct",
        _sizes(8192, 29568, 80, 64, 8)
        | {"vision_config": {"out_hidden_size": 8192, "intermediate_size": 3456}}),
    "Qwen/Qwen3-Reranker-0.6B": ("Qwen/Qwen3-0.6B", {}),
    "Qwen/Qwen-1_8B-Chat": (
        "Qwen/Qwen-7B-Chat",
        {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 24,
         "num_attention_heads": 16, "vocab_size": 151936}),
    "Qwen/Qwen-72B-Chat": (
        "Qwen/Qwen-7B-Chat",
        {"hidden_size": 8192, "intermediate_size": 49152, "num_hidden_layers": 80,
         "num_attention_heads": 64, "vocab_size": 152064, "seq_length": 32768,
         "max_position_embeddings": 32768}),
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": (
        "mistralai/Devstral-Small-2-24B-Instruct-2512",
        {"text_config": {"model_type": "mistral", "max_position_embeddings": 131072}}),
    "mistralai/Mistral-Small-4-119B-2603": (
        "mistralai/Devstral-Small-2-24B-Instruct-2512",
        {"text_config": {
            "model_type": "mistral4", "moe_intermediate_size": 2048, "n_routed_experts": 128,
            "n_shared_experts": 1, "num_experts_per_tok": 4, "first_k_dense_replace": 0,
            "q_lora_rank": 1024, "kv_lora_rank": 256, "qk_nope_head_dim": 64,
            "qk_rope_head_dim": 64, "v_head_dim": 128, "n_group": 1, "topk_group": 1,
            "max_position_embeddings": 1048576, "tie_word_embeddings": False,
            **_sizes(4096, 12288, 36, 32, 32)}}),
    "meta-llama/Llama-3.2-11B-Vision-Instruct": (
        "meta-llama/Llama-3.2-90B-Vision-Instruct",
        {"text_config": _sizes(4096, 14336, 40, 32, 8)
         | {"cross_attention_layers": list(range(3, 40, 5))}}),
    "deepseek-ai/DeepSeek-Coder-V2-Instruct": ("deepseek-ai/DeepSeek-V2-Lite", _DEEPSEEK_V2),
    "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct": ("deepseek-ai/DeepSeek-V2-Lite", {}),
    "zai-org/GLM-4.5-Air": (
        "zai-org/GLM-4.5",
        _sizes(4096, 10944, 46, 96, 8, moe_intermediate_size=1408, n_routed_experts=128)
        | {"first_k_dense_replace": 1, "use_qk_norm": False}),
    "zai-org/GLM-4.7": ("zai-org/GLM-4.5", {"max_position_embeddings": 202752}),
    "zai-org/GLM-4.6": ("zai-org/GLM-4.5", {"max_position_embeddings": 202752}),
    "MiniMaxAI/MiniMax-M2": ("MiniMaxAI/MiniMax-M2.5", {}),
    "MiniMaxAI/MiniMax-M3": ("nvidia/MiniMax-M3-NVFP4", {}),
    "microsoft/Phi-3-medium-4k-instruct": (
        "microsoft/Phi-3-mini-128k-instruct",
        _sizes(5120, 17920, 40, 40, 10, max_position_embeddings=4096, rope_scaling=None)),
    "microsoft/Phi-3-mini-4k-instruct": (
        "microsoft/Phi-3-mini-128k-instruct",
        {"max_position_embeddings": 4096, "rope_scaling": None}),
    "microsoft/Phi-4-mini-instruct": ("microsoft/Phi-4-mini-reasoning", {}),
    "nvidia/Nemotron-Cascade-2-30B-A3B": ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {}),
    "nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16": (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        _NEMOTRON_DENSE | _sizes(3136, 12544, 42, 40, 8, mamba_num_heads=96, mamba_head_dim=80)
        | {"hybrid_override_pattern": "M-M-M-MM-M-M*-M-M*-M-M-M*-M-M-MM*-MMM-M-M-",
           "mamba_ssm_cache_dtype": "float16"}),
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        _NEMOTRON_DENSE | _sizes(4480, 15680, 56, 40, 8, mamba_num_heads=128, mamba_head_dim=80)
        | {"hybrid_override_pattern":
           "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
           "max_position_embeddings": 131072}),
    "OpenGVLab/InternVL2_5-8B": (
        "OpenGVLab/InternVL2-2B",
        {"llm_config": _sizes(4096, 14336, 32, 32, 8, max_position_embeddings=32768)}),
    "EleutherAI/pythia-1.4b": ("EleutherAI/pythia-1.4b-deduped", {}),
    "BAAI/bge-m3": ("intfloat/multilingual-e5-large", {"max_position_embeddings": 8194}),
    "bigcode/starcoder": ("WizardLM/WizardCoder-15B-V1.0", {"vocab_size": 49152}),
    "bigcode/octocoder": ("WizardLM/WizardCoder-15B-V1.0", {"vocab_size": 49152}),
    "01-ai/Yi-34B-200K": ("01-ai/Yi-34B", {"max_position_embeddings": 200000}),
    "mistralai/Mistral-7B-v0.3": ("mistralai/Mistral-7B-Instruct-v0.3", {}),
    "mistralai/Mistral-Nemo-Base-2407": ("mistralai/Mistral-Nemo-Instruct-2407", {}),
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": (
        "mistralai/Mistral-Small-3.1-24B-Instruct-2503", {}),
    "mistralai/Magistral-Small-2509": ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", {}),
    "moonshotai/Kimi-Dev-72B": ("Qwen/Qwen2.5-72B", {}),
}  # fmt: skip
"""Id -> the entry that it differs from, and in what. Without the other's quantisation."""

QUANTISED_ALIKE = {"mistralai/Mistral-Small-4-119B-2603", "MiniMaxAI/MiniMax-M2"}
"""Of these, models that are published in the same format as the entry they differ from."""

TOTALS = {
    "meta-llama/Llama-2-70b-hf": 68_976_648_192,
    "LiquidAI/LFM2-700M": 742_489_344,
    "openai/whisper-large-v3": 1_543_490_560,
    "ibm-granite/granite-4.0-h-micro": 3_191_396_096,
    "BAAI/bge-m3": 567_754_752,
    "bigcode/starcoder": 15_517_456_384,
    "bigcode/octocoder": 15_517_456_384,
    "Qwen/Qwen-1_8B-Chat": 1_836_828_672,
    "Qwen/Qwen-72B-Chat": 72_287_920_128,
    "01-ai/Yi-34B-200K": 34_388_917_248,
    "mistralai/Mistral-7B-v0.3": 7_248_023_552,
    "mistralai/Mistral-Nemo-Base-2407": 12_247_782_400,
    "moonshotai/Kimi-Dev-72B": 72_706_203_648,
    "Qwen/Qwen3-Reranker-0.6B": 596_049_920,
}
"""Published totals that the table of the Hub lacks or rounds."""

ALIKE = {
    "ibm-granite/granite-4.0-h-1b": "a measured start loaded 2.72 GiB",
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": "a measured start loaded 44.76 GiB",
    "mistralai/Magistral-Small-2509": "trained from Mistral Small 3.2",
}
"""Models whose total is published nowhere here, and what speaks for their dimensions."""

_BALANCE = "biases that balance its experts"
BESIDE: dict[str, tuple[int, str]] = {
    "google/gemma-4-31B-it": (2_364, "limits of its vision tower and one number a layer"),
    "google/gemma-4-26B-A4B-it": (2_334, "limits of its vision tower and one number a layer"),
    "google/gemma-4-12B-it": (48, "one number a layer"),
    "google/gemma-4-E4B-it": (
        15 * (2 * 2560 * 512 + 256) + 3 * (2 * 2560 * 1024 + 512) + 42,
        "keys and values of 18 layers that share another's, and one number a layer",
    ),
    "zai-org/GLM-4.5-Air": (46 * 128, _BALANCE),
    "zai-org/GLM-4.7": (90 * 160, _BALANCE),
    "zai-org/GLM-4.6": (
        90 * 160 - 2 * 151_552 * 5_120,
        _BALANCE + ", and no copy of the embedding and the head for the next token's block",
    ),
    "zai-org/GLM-4.7-Flash": (47 * 64, _BALANCE),
    "MiniMaxAI/MiniMax-M2": (62 * 256, _BALANCE),
    "MiniMaxAI/MiniMax-M3": (57 * 128, _BALANCE),
    "rednote-hilab/dots.llm1.inst": (61 * 128, _BALANCE),
    "mistralai/Mistral-Small-4-119B-2603": (
        36 * 2 * (2 * 128 + 8),
        "two scales of each matrix in FP8",
    ),
    "EleutherAI/pythia-1.4b": (24 * (2048 * 2048 + 16), "masks and rotations of its layers"),
}
"""What files hold beside the model and its blocks for further tokens: numbers, and why."""


def changed(config: Any, changes: Any) -> Any:
    """``config`` with ``changes`` laid over it, mapping by mapping; None takes a key away."""
    if not isinstance(changes, dict) or not isinstance(config, dict):
        return changes
    result = dict(config)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = changed(result.get(key), value)
    return result


def written_models(
    hub: dict[str, dict[str, Any]], models: list[dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(id, config, how it was verified) of every model written down here."""
    configs = {model["id"]: unfold(model["config"]) for model in models} | NEW
    for name, config in NEW.items():
        yield name, config, verified(name, specify(config), hub)
    for name, (base, changes) in CHANGED.items():
        config = changed(copy.deepcopy(configs[base]), changes)
        if name not in QUANTISED_ALIKE:
            config.pop("quantization_config", None)
        configs[name] = config
        yield name, config, verified(name, specify(config), hub)


def verified(name: str, spec: ArchitectureSpec, hub: dict[str, dict[str, Any]]) -> str:
    """How the count of ``name`` was confirmed.

    Raises:
        ValueError: it was not.
    """
    if name in ALIKE:
        return f"dimensions written down; no total is at hand, {ALIKE[name]}"
    row = hub.get(name, {})
    published = TOTALS.get(name) or row["parameters_raw"]
    further = sum(tensor.elements for tensor in spec.mtp)
    beside, why = BESIDE.get(name, (0, ""))
    for count, also in ((0, ""), (further, "its blocks for further tokens")):
        if spec.parameters + count + beside == published:
            extra = " and ".join(filter(None, (also, why)))
            return "dimensions written down; equals the published total" + (
                f" less {extra}" if extra else ""
            )
    message = f"{name}: {spec.parameters} + {further} + {beside} against {published}"
    raise ValueError(message)


def twins(
    hub: dict[str, dict[str, Any]], models: list[dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(id, config, how) of models with the type and the exact published total of an entry."""
    known = {model["id"] for model in models}
    origins: dict[tuple[str, int], str] = {}
    for model in models:
        row = hub.get(model["id"], {})
        if row and not row.get("parameters_rounded") and model["weight_format"] in ("bf16", "fp16"):
            origins.setdefault((row["architecture"], row["parameters_raw"]), model["id"])
    configs = {model["id"]: unfold(model["config"]) for model in models}
    for name, row in hub.items():
        organisation, _, rest = name.partition("/")
        if name in known or row["architecture"] in PLAIN_TYPES or row.get("parameters_rounded"):
            continue
        left_out = (*NAMES_LEFT_OUT, "qat")
        if organisation not in ORGANISATIONS or any(p in rest.lower() for p in left_out):
            continue
        origin = origins.get((row["architecture"], row["parameters_raw"]))
        if origin is None:
            continue
        config = copy.deepcopy(configs[origin])
        text = config.get("text_config") or config.get("llm_config") or config
        if row.get("config_readable_anonymously") and "max_position_embeddings" in text:
            text["max_position_embeddings"] = row["context_length"]
        yield name, config, f"type and total of {origin}; equals the total on the Hub"
