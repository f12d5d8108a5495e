"""Configs of reference implementations, in the words of the class that Transformers has for them.

Source:
    state-spaces/mamba, ``mamba_ssm/models/config_mamba.py`` and ``modules/mamba_simple.py``,
    ``modules/mamba2.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAMBA = {
    "hidden_size": "d_model", "num_hidden_layers": "n_layer",
    "tie_word_embeddings": "tie_embeddings",
}  # fmt: skip
_SSM = {
    "d_state": "state_size", "d_conv": "conv_kernel", "expand": "expand", "bias": "use_bias",
    "conv_bias": "use_conv_bias", "dt_rank": "time_step_rank", "headdim": "head_dim",
    "ngroups": "n_groups", "chunk_size": "chunk_size",
}  # fmt: skip


def in_known_words(config: Mapping[str, object]) -> Mapping[str, object]:
    """``config``, or what it says in Transformers' words where it is in words of its own."""
    rule = _RULES.get(str(config.get("model_type")))
    if rule:
        return rule(config)
    if config.get("model_type") or "ssm_cfg" not in config:
        return config
    given = config["ssm_cfg"]
    ssm = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    second = ssm.get("layer") == "Mamba2"
    found: dict[str, object] = {"model_type": "mamba2" if second else "mamba"}
    found["tie_word_embeddings"] = True
    renamed = ("ssm_cfg", "fused_add_norm", "rms_norm", "pad_vocab_size_multiple")
    found |= {key: value for key, value in config.items() if key not in renamed}
    for key, own in _MAMBA.items():
        if own in config:
            found[key] = found.pop(own)
    found |= {_SSM.get(key, key): value for key, value in ssm.items() if key != "layer"}
    found["vocab_size"] = _padded(config)
    if second:
        found.setdefault("head_dim", 64)
        found.setdefault("n_groups", 1)
        found.setdefault("num_heads", _heads(found))
    return found


def _padded(config: Mapping[str, object]) -> object:
    """Rows of the embedding: the vocabulary up to the next multiple of what is stated."""
    vocab, step = config.get("vocab_size"), config.get("pad_vocab_size_multiple", 8)
    if isinstance(vocab, int) and isinstance(step, int) and step > 0:
        return -(-vocab // step) * step
    return vocab


def _heads(found: Mapping[str, object]) -> object:
    hidden, width = found.get("hidden_size"), found.get("head_dim")
    expand = found.get("expand", 2)
    if all(isinstance(n, int) and n > 0 for n in (hidden, width, expand)):
        numbers = cast("tuple[int, int, int]", (hidden, width, expand))
        return numbers[0] * numbers[2] // numbers[1]
    return None


_MOONDREAM = {
    "hidden_size": 2_048, "intermediate_size": 8_192, "num_hidden_layers": 24,
    "num_attention_heads": 32, "vocab_size": 51_200, "max_position_embeddings": 2_048,
}  # fmt: skip


def _moondream(config: Mapping[str, object]) -> Mapping[str, object]:
    """Moondream 2, whose sizes are its code's (``vikhyatk/moondream2``, ``config.py``)."""
    if "text_config" in config or "hidden_size" in config:
        return config
    return {**_MOONDREAM, **config, "architectures": ["AutoModelForCausalLM"]}


_ERNIE_OWN = frozenset({
    "architectures", "auto_map", "dtype", "quantization_config", "torch_dtype", "vision_config",
})  # fmt: skip
_ERNIE_NO_WEIGHT = frozenset({
    "freq_allocation", "fuse_ln", "fuse_rms_norm", "im_patch_id", "moe_capacity",
    "moe_dense_experts_token_type_id",
    "moe_multimodal_dispatch_use_allgather", "pixel_hidden_size", "rope_3d", "spatial_conv_size",
    "temporal_conv_size", "use_rmsnorm",
})  # fmt: skip
"""How images are cut up and tokens sent to experts: sizes that its class does not read."""


def _ernie(config: Mapping[str, object]) -> Mapping[str, object]:
    """ERNIE 4.5 VL as published: its text model's fields are at the root, one entry a kind."""
    vision = config.get("vision_config")
    seen = dict(cast("dict[str, object]", vision)) if isinstance(vision, dict) else {}
    seen["model_type"] = "ernie4_5_vl_moe_vision"
    width, ratio = seen.pop("embed_dim", None), seen.pop("mlp_ratio", None)
    if isinstance(width, int) and isinstance(ratio, int):
        seen |= {"hidden_size": width, "intermediate_size": ratio * width}
    left = _ERNIE_OWN | _ERNIE_NO_WEIGHT
    text = {key: value for key, value in config.items() if key not in left}
    if "moe_num_experts" in text:
        text["moe_num_experts"] = _common(text["moe_num_experts"])
    start, end = _common(text.get("moe_layer_start_index")), text.get("moe_layer_end_index")
    if isinstance(start, int):
        text["first_k_dense_replace"] = start
        del text["moe_layer_start_index"]
    layers = text.get("num_hidden_layers")
    if isinstance(end, list) and isinstance(layers, int):
        ends = cast("list[object]", end)
        if all(isinstance(entry, int) and entry >= layers - 1 for entry in ends):
            del text["moe_layer_end_index"]
    text["model_type"] = "ernie4_5_vl_moe_text"
    whole = {key: config[key] for key in _ERNIE_OWN if key in config}
    whole |= {"model_type": "ernie4_5_vl_moe", "text_config": text, "vision_config": seen}
    if "tie_word_embeddings" in config:
        whole["tie_word_embeddings"] = config["tie_word_embeddings"]
    return whole


def _common(value: object) -> object:
    """The one value of a list that repeats it."""
    if isinstance(value, list):
        entries = cast("list[object]", value)
        if entries and all(entry == entries[0] for entry in entries):
            return entries[0]
    return value  # pyright: ignore[reportUnknownVariableType]


_PROGEN = {"embed_dim": "n_embd", "vocab_size_emb": "vocab_size"}


def _progen(config: Mapping[str, object]) -> Mapping[str, object]:
    """ProGen 2: CodeGen with other names for the width and the words."""
    found = {_PROGEN.get(key, key): value for key, value in config.items()}
    if found.get("vocab_size_lm_head") == found.get("vocab_size"):
        found.pop("vocab_size_lm_head", None)
    return found


def _rotated(config: Mapping[str, object]) -> Mapping[str, object]:
    """Jina's XLM-RoBERTa with rotary positions, which bears the type of the one without."""
    if config.get("position_embedding_type") != "rotary":
        return config
    return {**config, "model_type": "jina_embeddings_v3"}


def _one_key(config: Mapping[str, object]) -> Mapping[str, object]:
    """SantaCoder: GPT-2 whose heads share a key and a value, which GPT-BigCode became."""
    if config.get("attention_head_type") != "multiquery":
        return config
    found = {key: value for key, value in config.items() if key != "attention_head_type"}
    own = {"model_type": "gpt_bigcode", "architectures": ["GPTBigCodeForCausalLM"]}
    return {**found, **own, "multi_query": True}


def _olmo(config: Mapping[str, object]) -> Mapping[str, object]:
    """OLMo by its own code's words, under the type that Transformers' class has."""
    is_own = "d_model" in config and "hidden_size" not in config
    return {**config, "model_type": "hf_olmo"} if is_own else config


_RULES = {
    "gpt2": _one_key,
    "olmo": _olmo,
    "xlm-roberta": _rotated,
    "ernie4_5_moe_vl": _ernie,
    "moondream1": _moondream,
    "progen": _progen,
}
