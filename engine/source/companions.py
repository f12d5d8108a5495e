"""What lies beside a ``config.json`` and says what it leaves out.

Quantisers of the time before ``quantization_config`` wrote files of their own, and Mistral
publishes its models with a ``params.json`` instead of a config.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import cast

QUANTISATIONS = {
    "hf_quant_config.json": "modelopt",
    "quantize_config.json": "gptq",
    "quant_config.json": "awq",
}
"""File -> the method that wrote it, where the file doesn't say."""
PARAMS = "params.json"
_STATED = ("quantization_config", "compression_config", "quantization")
# Mistral's own names (mistral-inference, ``args.py``) -> those of transformers' MistralConfig.
_PARAMS = {
    "dim": "hidden_size", "hidden_dim": "intermediate_size", "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads", "n_kv_heads": "num_key_value_heads", "head_dim": "head_dim",
    "vocab_size": "vocab_size", "tied_embeddings": "tie_word_embeddings",
    "max_seq_len": "max_position_embeddings", "max_position_embeddings": "max_position_embeddings",
    "sliding_window": "sliding_window",
}  # fmt: skip
_NO_MEMORY = frozenset({"norm_eps", "rope_theta", "use_biases", "max_batch_size"})

Config = Mapping[str, object]
Load = Callable[[str], dict[str, object]]
"""The JSON object in a file of the folder, by its name."""


def completed(
    config: dict[str, object] | None, names: Collection[str], load: Load
) -> Config | None:
    """``config`` with what the files beside it add; None where there is nothing to go by.

    Args:
        config: the parsed ``config.json``, if there is one.
        names: the files beside it.
        load: reads one of them; its errors pass.
    """
    if config is None:
        return from_params(load(PARAMS)) if PARAMS in names else None
    if any(
        key in owner for owner in (config, _mapping(config.get("text_config"))) for key in _STATED
    ):
        return config
    for name, method in QUANTISATIONS.items():
        if name in names:
            found = load(name)
            quantisation = found if "quantization" in found else {"quant_method": method, **found}
            return config | {"quantization_config": quantisation}
    return config


def from_params(params: Mapping[str, object]) -> dict[str, object]:
    """Mistral's ``params.json`` as a config of transformers.

    What has no counterpart keeps its name, so that the reader can say what it doesn't know.
    """
    config: dict[str, object] = {"model_type": "mistral"}
    for key, value in params.items():
        if key in _PARAMS:
            config[_PARAMS[key]] = value
        elif key == "moe" and isinstance(value, dict):
            moe = _mapping(value)  # pyright: ignore[reportUnknownArgumentType]
            config["model_type"] = "mixtral"
            config["num_local_experts"] = moe.get("num_experts")
            config["num_experts_per_tok"] = moe.get("num_experts_per_tok")
        elif key not in _NO_MEMORY:
            config[key] = value
    # Without the key every layer attends to everything; the class would put a window there.
    config.setdefault("sliding_window", None)
    return config


def _mapping(value: object) -> Config:
    return cast("Config", value) if isinstance(value, dict) else {}
