"""Fields that change memory and that nothing asked for: what is stated and not understood."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.architecture.spec import Doubt, Subject

if TYPE_CHECKING:
    from engine.config.facts import Facts

_WEIGHTS = re.compile(
    r"^(moe_|n_|num_)?(local_|routed_|shared_)?experts?$"
    r"|^(num|n)_(local|routed|shared)?_?experts$|moe_(intermediate_size|latent_size|layers?)"
    r"|^(q|kv|o)_lora_rank$|^block_configs$|^ffn_mult|^layer_ffn|_per_layer$|^num_(query|kv)_heads$"
    r"|^use_double_wide_mlp$|^hidden_size_per_layer_input$|^altup|^laurel|^hc_mult$|^engram"
)
_STATE = re.compile(
    r"^(ssm|mamba|linear|kda|lightning|gdn)_\w+|_block_type$|^hybrid_|^attn_layer_|^full_attn"
    r"|^num_kv_shared_layers$|^cross_attention_layers$|^(index|sparse)_(head_dim|n_heads)$"
    r"|^sparse_attention_config$|^linear_attn_config$|^compress_|^conv_L_cache$|^kv_sharing|^yoco"
    r"|^sliding_window$|^attention_chunk_size$|^layer_types$|^sliding_window_pattern$|^swa_"
    r"|^cla_|^global_attn_every|^recurrent|^rwkv"
)


def unread_doubts(text: Facts) -> list[Doubt]:
    """One doubt for each subject that a stated but unread field puts in question."""
    weights: list[str] = []
    state: list[str] = []
    for key, value in text.stated.items():
        if key in text.asked or _says_nothing(value) or _HARMLESS.search(key):
            continue
        if _WEIGHTS.search(key):
            weights.append(key)
        elif _STATE.search(key):
            state.append(key)
    found: list[Doubt] = []
    if weights:
        found.append(Doubt(Subject.WEIGHTS, _reason(text, weights)))
    if state:
        found.append(Doubt(Subject.SEQUENCE_STATE, _reason(text, state)))
    return found


# Fields that match a pattern above and change nothing.
_HARMLESS = re.compile(
    r"theta|_act$|^mtp_|^num_sliding_window_layers$|^attention_chunk_size$|^linear_(bias|scale)"
)


def _says_nothing(value: object) -> bool:
    return value is None or value is False or value in (0, 1, "", []) or value == {}


def _reason(text: Facts, keys: list[str]) -> str:
    named = ", ".join(keys[:3]) + (" …" if len(keys) > 3 else "")
    return f"{named} is not known for {text.model_type or 'this type'} and was not counted"
