"""Measure what PEFT stores for LoRA adapters: ``tests/evidence/adapters.jsonl``.

    python packaging/data/measure_adapters.py > tests/evidence/adapters.jsonl

Needs torch, transformers, peft and safetensors, none of which the product uses. Every row is a
small base, the adapter's config as PEFT wrote it (without what is null or empty), and the name,
dtype and shape of every tensor in the file.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

_SMALL: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48, "vocab_size": 64,
}  # fmt: skip
_BASES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **_SMALL},
    "llama-biased": {"model_type": "llama", **_SMALL, "attention_bias": True, "mlp_bias": True},
    "qwen2": {"model_type": "qwen2", **_SMALL, "tie_word_embeddings": True},
    "qwen3_moe": {
        "model_type": "qwen3_moe", **_SMALL, "moe_intermediate_size": 24, "num_experts": 4,
        "num_experts_per_tok": 2, "mlp_only_layers": [1],
    },
    "gemma3": {"model_type": "gemma3_text", **_SMALL, "sliding_window": 16},
    "phi3": {"model_type": "phi3", **_SMALL, "pad_token_id": 0},
    "gpt2": {
        "model_type": "gpt2", "n_embd": 32, "n_layer": 3, "n_head": 4, "vocab_size": 64,
        "n_positions": 16,
    },
    "opt": {
        "model_type": "opt", "hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 48,
        "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 64,
        "max_position_embeddings": 16,
    },
    "bloom": {
        "model_type": "bloom", "hidden_size": 32, "n_layer": 3, "n_head": 4, "vocab_size": 64,
    },
    "gpt_neox": {"model_type": "gpt_neox", **_SMALL, "max_position_embeddings": 16},
    "falcon": {
        "model_type": "falcon", "hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 64,
        "num_attention_heads": 4,
    },
    "starcoder2": {"model_type": "starcoder2", **_SMALL},
    "bert": {
        "model_type": "bert", **_SMALL, "is_decoder": True, "max_position_embeddings": 16,
    },
    "deepseek_v3": {
        "model_type": "deepseek_v3", **_SMALL, "num_key_value_heads": 4, "q_lora_rank": 12,
        "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
        "n_routed_experts": 4, "moe_intermediate_size": 24, "num_experts_per_tok": 2,
        "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
    },
}  # fmt: skip
_QV = ["q_proj", "v_proj"]
_EVERY = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
_PATTERN = r".*\.[02]\.(self_attn|mlp)\.(q_proj|down_proj)"
_CASES: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"target_modules": _QV}),
    ("llama", {"target_modules": _EVERY, "r": 5}),
    ("llama", {"target_modules": "all-linear", "use_dora": True}),
    ("llama", {"target_modules": "all-linear", "exclude_modules": ["k_proj", "mlp.up_proj"]}),
    ("llama", {"target_modules": _PATTERN}),
    ("llama", {"target_modules": _QV, "exclude_modules": r".*layers\.1\..*"}),
    ("llama", {"target_modules": ["self_attn.q_proj", "model.layers.1.mlp.up_proj"]}),
    ("llama", {"target_modules": _QV, "layers_to_transform": [0, 2]}),
    ("llama", {"target_modules": _QV, "layers_to_transform": 1, "layers_pattern": "layers"}),
    (
        "llama",
        {"target_modules": _EVERY, "rank_pattern": {"q_proj": 2, r"layers.1.mlp.up_proj": 3}},
    ),
    ("llama", {"target_modules": _QV, "modules_to_save": ["embed_tokens", "lm_head"]}),
    ("llama", {"target_modules": _QV, "modules_to_save": ["norm"]}),
    ("llama", {"target_modules": [*_QV, "embed_tokens"]}),
    ("llama", {"target_modules": [*_QV, "lm_head"]}),
    ("llama", {"target_modules": [*_QV, "embed_tokens", "lm_head"], "use_dora": True}),
    ("llama", {"target_modules": _QV, "trainable_token_indices": [1, 2, 3]}),
    ("llama", {"target_modules": _QV, "target_parameters": ["mlp.up_proj.weight"]}),
    ("llama-biased", {"target_modules": _QV, "bias": "all"}),
    ("llama-biased", {"target_modules": _EVERY, "bias": "lora_only"}),
    ("llama-biased", {"target_modules": _QV, "lora_bias": True}),
    ("qwen2", {"target_modules": _EVERY, "bias": "all"}),
    ("qwen2", {"target_modules": _QV, "modules_to_save": ["lm_head"]}),
    ("qwen2", {"target_modules": [*_QV, "lm_head"]}),
    ("qwen3_moe", {"target_modules": _QV}),
    (
        "qwen3_moe",
        {
            "target_modules": _QV,
            "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
        },
    ),
    ("qwen3_moe", {"target_modules": _EVERY}),
    ("qwen3_moe", {"target_modules": "all-linear"}),
    ("gemma3", {"target_modules": _EVERY}),
    ("gemma3", {"target_modules": "all-linear", "use_dora": True}),
    ("phi3", {"target_modules": ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]}),
    ("phi3", {"target_modules": "all-linear"}),
    ("gpt2", {"target_modules": ["c_attn"], "fan_in_fan_out": True}),
    ("gpt2", {"target_modules": ["c_attn", "c_proj", "wte"], "bias": "all"}),
    ("gpt2", {"target_modules": "all-linear", "use_dora": True}),
    ("gpt2", {"target_modules": ["c_attn"], "bias": "lora_only", "lora_bias": False}),
    ("gpt2", {"target_modules": ["c_attn"], "modules_to_save": ["wte", "ln_f"]}),
    ("opt", {"target_modules": "all-linear"}),
    ("opt", {"target_modules": ["fc1", "q_proj"], "bias": "all"}),
    ("bloom", {"target_modules": "all-linear"}),
    ("bloom", {"target_modules": ["query_key_value"], "bias": "lora_only"}),
    ("gpt_neox", {"target_modules": ["query_key_value", "dense"], "layers_to_transform": [1]}),
    ("gpt_neox", {"target_modules": "all-linear", "bias": "all"}),
    ("falcon", {"target_modules": "all-linear"}),
    ("starcoder2", {"target_modules": "all-linear", "lora_bias": True}),
    ("bert", {"target_modules": ["query", "value"], "bias": "lora_only"}),
    ("deepseek_v3", {"target_modules": ["q_a_proj", "q_b_proj", "kv_b_proj", "o_proj"]}),
    ("deepseek_v3", {"target_modules": ["self_attn.o_proj", "kv_a_proj_with_mqa"], "r": 3}),
]  # fmt: skip


def stored(base: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The files that PEFT writes for one adapter, in short."""
    import torch
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - see above
    from safetensors import safe_open  # noqa: PLC0415 - see above
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**base)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    adapted = get_peft_model(model, LoraConfig(**{"r": 4, **options}))
    with tempfile.TemporaryDirectory() as folder:
        adapted.save_pretrained(folder)
        written = json.loads((Path(folder) / "adapter_config.json").read_text())
        with safe_open(f"{folder}/adapter_model.safetensors", "pt") as file:
            tensors = {
                name: [file.get_slice(name).get_dtype(), file.get_slice(name).get_shape()]
                for name in sorted(file.keys())
            }
    kept = {key: value for key, value in written.items() if value not in (None, {}, [], False, "")}
    targets = kept.get("target_modules")
    if isinstance(targets, list):
        kept["target_modules"] = sorted(targets)
    return {"base": base, "adapter": kept, "tensors": tensors}


def main() -> None:
    """Write a row for every case."""
    for name, options in _CASES:
        try:
            row = stored(_BASES[name], options)
        except Exception as error:  # noqa: BLE001 - what PEFT refuses is no row
            print(f"{name} {options}: {error}", file=sys.stderr)
            continue
        print(json.dumps({"asked": options, **row}, separators=(",", ":")))


if __name__ == "__main__":
    main()
