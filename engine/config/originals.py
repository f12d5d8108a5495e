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
    """``config``, or what it says in Transformers' words where it is Mamba's own."""
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
