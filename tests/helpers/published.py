"""Published dimensions of well-known models, written down by hand, and how to build them.

The values are those of the models' own ``config.json``; keys that equal the class default are
left out where the publisher leaves them out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from engine.architecture.read import read
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly
from engine.source.raw import RawModel

if TYPE_CHECKING:
    from engine.architecture.model import Model

GIB = 2**30
MIB = 2**20


def _llama(
    hidden: int, inter: int, layers: int, heads: int, kv: int, **more: Any
) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 128256,
        "hidden_size": hidden,
        "intermediate_size": inter,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **more,
    }


def _qwen2(
    hidden: int, inter: int, layers: int, heads: int, kv: int, **more: Any
) -> dict[str, Any]:
    return _llama(hidden, inter, layers, heads, kv) | {
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "vocab_size": 152064,
        "max_position_embeddings": 32768,
        **more,
    }


def _qwen3(
    hidden: int, inter: int, layers: int, heads: int, kv: int, **more: Any
) -> dict[str, Any]:
    return _llama(hidden, inter, layers, heads, kv) | {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "vocab_size": 151936,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        **more,
    }


def _gemma2(
    hidden: int, inter: int, layers: int, heads: int, kv: int, head_dim: int
) -> dict[str, Any]:
    return {
        "model_type": "gemma2",
        "architectures": ["Gemma2ForCausalLM"],
        "vocab_size": 256000,
        "hidden_size": hidden,
        "intermediate_size": inter,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": head_dim,
        "sliding_window": 4096,
        "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16",
    }


def _gemma3(
    hidden: int, inter: int, layers: int, heads: int, kv: int, head_dim: int = 256
) -> dict[str, Any]:
    return {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "torch_dtype": "bfloat16",
        "text_config": {
            "model_type": "gemma3_text",
            "vocab_size": 262208,
            "hidden_size": hidden,
            "intermediate_size": inter,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv,
            "head_dim": head_dim,
            "sliding_window": 1024,
            "sliding_window_pattern": 6,
            "max_position_embeddings": 131072,
        },
        "vision_config": {
            "model_type": "siglip_vision_model",
            "hidden_size": 1152,
            "intermediate_size": 4304,
            "num_hidden_layers": 27,
            "num_attention_heads": 16,
            "image_size": 896,
            "patch_size": 14,
            "vision_use_head": False,
        },
    }


_COMPRESSED_INT8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True},
        }
    },
}
_COMPRESSED_FP8 = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
        }
    },
}
_GPT_OSS = {
    "model_type": "gpt_oss",
    "architectures": ["GptOssForCausalLM"],
    "vocab_size": 201088,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "num_experts_per_tok": 4,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    },
}

_MLA = {
    "model_type": "deepseek_v3",
    "architectures": ["DeepseekV3ForCausalLM"],
    "vocab_size": 163840,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "n_routed_experts": 384,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "num_nextn_predict_layers": 0,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

CONFIGS: dict[str, dict[str, Any]] = {
    "Llama-3.1-8B": _llama(4096, 14336, 32, 32, 8),
    "Llama-3-8B": _llama(4096, 14336, 32, 32, 8, max_position_embeddings=8192),
    "Llama-3.1-70B": _llama(8192, 28672, 80, 64, 8),
    "Llama-3.3-70B-W8A8": _llama(8192, 28672, 80, 64, 8, quantization_config=_COMPRESSED_INT8),
    "Llama-3.3-70B-FP8": _llama(8192, 28672, 80, 64, 8, quantization_config=_COMPRESSED_FP8),
    "Llama-3.2-1B": _llama(2048, 8192, 16, 32, 8, head_dim=64, tie_word_embeddings=True),
    "Llama-3.2-3B": _llama(3072, 8192, 28, 24, 8, head_dim=128, tie_word_embeddings=True),
    "Llama-2-7b": _llama(4096, 11008, 32, 32, 32, vocab_size=32000, max_position_embeddings=4096),
    "Mistral-7B-v0.3": _llama(4096, 14336, 32, 32, 8)
    | {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "vocab_size": 32768}
    | {"max_position_embeddings": 32768, "sliding_window": None},
    "Mixtral-8x7B": _llama(4096, 14336, 32, 32, 8)
    | {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
    "Qwen2-0.5B": _qwen2(896, 4864, 24, 14, 2, vocab_size=151936, tie_word_embeddings=True),
    "Qwen2.5-7B": _qwen2(3584, 18944, 28, 28, 4),
    "Qwen2.5-7B-W8A8": _qwen2(3584, 18944, 28, 28, 4, quantization_config=_COMPRESSED_INT8),
    "Qwen2.5-7B-FP8": _qwen2(3584, 18944, 28, 28, 4, quantization_config=_COMPRESSED_FP8),
    "Qwen2.5-72B": _qwen2(8192, 29568, 80, 64, 8),
    "Kimi-Dev-72B": _qwen2(8192, 29568, 80, 64, 8, max_position_embeddings=131072),
    "Qwen3-0.6B": _qwen3(1024, 3072, 28, 16, 8, tie_word_embeddings=True),
    "Qwen3-1.7B": _qwen3(2048, 6144, 28, 16, 8, tie_word_embeddings=True),
    "Qwen3-4B": _qwen3(2560, 9728, 36, 32, 8, tie_word_embeddings=True),
    "Qwen3-8B": _qwen3(4096, 12288, 36, 32, 8),
    "Qwen3-14B": _qwen3(5120, 17408, 40, 40, 8),
    "Qwen3-32B": _qwen3(5120, 25600, 64, 64, 8),
    "Qwen3-30B-A3B": _qwen3(2048, 6144, 48, 32, 4)
    | {
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
    },
    "Qwen1.5-MoE-A2.7B": _qwen2(2048, 5632, 24, 16, 16)
    | {
        "model_type": "qwen2_moe",
        "architectures": ["Qwen2MoeForCausalLM"],
        "vocab_size": 151936,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
        "num_experts": 60,
        "num_experts_per_tok": 4,
        "decoder_sparse_step": 1,
        "max_position_embeddings": 8192,
    },
    "gemma-2-2b": _gemma2(2304, 9216, 26, 8, 4, 256),
    "gemma-2-9b": _gemma2(3584, 14336, 42, 16, 8, 256),
    "gemma-2-27b": _gemma2(4608, 36864, 46, 32, 16, 128),
    "gemma-3-4b": _gemma3(2560, 10240, 34, 8, 4),
    "gemma-3-12b": _gemma3(3840, 15360, 48, 16, 8),
    "gemma-3-27b": _gemma3(5376, 21504, 62, 32, 16, 128),
    "granite-3.1-8b": _llama(4096, 12800, 40, 32, 8)
    | {
        "model_type": "granite",
        "architectures": ["GraniteForCausalLM"],
        "vocab_size": 49155,
        "tie_word_embeddings": True,
    },
    "phi-2": {
        "model_type": "phi",
        "architectures": ["PhiForCausalLM"],
        "vocab_size": 51200,
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "partial_rotary_factor": 0.4,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
    },
    "phi-4": _llama(5120, 17920, 40, 40, 10)
    | {
        "model_type": "phi3",
        "architectures": ["Phi3ForCausalLM"],
        "vocab_size": 100352,
        "max_position_embeddings": 16384,
    },
    "gpt-oss-20b": _GPT_OSS | {"num_hidden_layers": 24, "num_local_experts": 32},
    "gpt-oss-120b": _GPT_OSS | {"num_hidden_layers": 36, "num_local_experts": 128},
    "Kimi-K2": _MLA,
    "Kimi-K2-like-256": _MLA | {"num_hidden_layers": 36, "kv_lora_rank": 256},
    "Qwen3-235B-A22B": _qwen3(4096, 12288, 94, 64, 4)
    | {
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        "moe_intermediate_size": 1536,
        "num_experts": 128,
        "num_experts_per_tok": 8,
    },
    "GLM-4.7": {
        "model_type": "glm4_moe",
        "architectures": ["Glm4MoeForCausalLM"],
        "vocab_size": 151552,
        "hidden_size": 5120,
        "intermediate_size": 12288,
        "moe_intermediate_size": 1536,
        "num_hidden_layers": 92,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "attention_bias": True,
        "use_qk_norm": True,
        "n_routed_experts": 160,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "max_position_embeddings": 202752,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "MiniMax-M2": {
        "model_type": "minimax_m2",
        "architectures": ["MiniMaxM2ForCausalLM"],
        "vocab_size": 200064,
        "hidden_size": 3072,
        "intermediate_size": 1536,
        "num_hidden_layers": 62,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_local_experts": 256,
        "num_experts_per_tok": 8,
        "max_position_embeddings": 204800,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "gemma-3-1b": {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "vocab_size": 262144,
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_hidden_layers": 26,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "max_position_embeddings": 32768,
        "torch_dtype": "bfloat16",
    },
}


@cache
def model(name: str) -> Model:
    """The model of that name."""
    return read(RawModel(id=name, source="published dimensions", config=CONFIGS[name]))


def gpu(
    total_gib: float, name: str = "test card", *, sm_count: int = 0, capability: float = 0.0
) -> Device:
    """A card of which exactly ``total_gib`` can be allocated."""
    total = int(total_gib * GIB)
    return Device(
        name=name,
        vendor=Vendor.NVIDIA,
        kind=DeviceKind.DISCRETE,
        label=f"{round(total_gib)} GB",
        total_bytes=total,
        allocatable=exactly(total, Basis.READ, "given by the test"),
        sm_count=sm_count,
        compute_capability=capability,
    )


def machine(device: Device, count: int = 1, foreign_bytes: int = 0) -> Machine:
    """``count`` such cards in a computer with 256 GiB of RAM."""
    foreign = exactly(foreign_bytes, Basis.ASSUMED, "given by the test")
    ram = Device(
        name="host",
        vendor=Vendor.CPU,
        kind=DeviceKind.HOST,
        label="256 GB",
        total_bytes=256 * GIB,
        allocatable=exactly(250 * GIB, Basis.READ, "given by the test"),
    )
    slots = tuple(Slot(device, foreign) for _ in range(count))
    return Machine(
        name=f"{count} × {device.name}", slots=slots, host=Slot(ram, foreign), is_here=False
    )


H100 = gpu(79.19, "H100", sm_count=132, capability=9.0)
RTX_4090 = gpu(23.64, "RTX 4090", sm_count=128, capability=8.9)
