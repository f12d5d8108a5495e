"""Draft heads without attention (Medusa, MLP speculators), and prediction blocks alone (MTP).

Source:
    vLLM ``model_executor/models/{medusa,mlp_speculator}.py`` and ``transformers_utils/configs``;
    FasterDecoding/Medusa ``medusa/model/medusa_model.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families.base import NONE, Family, Fed, Names, matrix, norm
from engine.architecture.families.dense import LLAMA
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject, Tensor
from engine.errors import ConfigError
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_OTHER, _HEAD = ModuleClass.OTHER, ModuleClass.LM_HEAD
_WHOLE = Sharding.REPLICATED
_KIND = "head"
_OWN_KEYS = (
    "medusa_num_heads", "medusa_num_layers", "n_candidates", "top_k_tokens_per_head", "n_predict",
    "num_lookahead_tokens", "max_paths", "topk", "max_seq_len", "base_model_name_or_path",
    "speculators_config", "speculators_version", "speculators_model_type",
)  # fmt: skip


def _medusa_heads(facts: Facts) -> int:
    return facts.integer("medusa_num_heads", facts.count("num_heads") or 5)


def _medusa_words(facts: Facts) -> int:
    return facts.integer("truncated_vocab_size", facts.integer("vocab_size"))


def _medusa_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """A layer for each head.

    Raises:
        ConfigError: the first format, which leaves the sizes to the target.
    """
    if not facts.has("hidden_size") or not facts.has("vocab_size"):
        message = tr(
            "Medusa heads need hidden_size and vocab_size, as their target's config has them."
        )
        raise ConfigError(message, field="hidden_size")
    return ((NONE, _KIND),) * _medusa_heads(facts)


def _medusa_head(facts: Facts, _family: Family, _kind: str) -> Fed:
    """One head: residual blocks of a square matrix each and, mostly, a head on top."""
    hidden = facts.integer("hidden_size")
    layers = facts.integer("medusa_num_layers", facts.count("num_hidden_layers") or 1)
    # Medusa's own code has a bias; vLLM's format says whether.
    biased = facts.flag("medusa_fc_bias", default=facts.has("medusa_num_heads"))
    tensors: list[Tensor] = []
    for index in range(layers):
        tensors += matrix(f"{index}.linear", _OTHER, (hidden, hidden), _WHOLE, bias=biased)
    if not facts.flag("original_lm_head"):
        tensors += matrix(f"{layers}", _HEAD, (_medusa_words(facts), hidden), Sharding.VOCAB)
    return Fed(tensors)


def _medusa_outer(facts: Facts, _family: Family) -> list[Tensor]:
    if not facts.flag("original_lm_head"):
        return []
    shape = (_medusa_words(facts), facts.integer("hidden_size"))
    return matrix("lm_head", _HEAD, shape, Sharding.VOCAB)


def _mlp_widths(facts: Facts) -> tuple[int, int, int]:
    """Width of the target, width inside, and words."""
    hidden = facts.integer("emb_dim", facts.integer("hidden_size"))
    return hidden, facts.count("inner_dim") or hidden, facts.integer("vocab_size")


def _mlp_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    count = facts.integer("n_predict")
    return ((NONE, "first"), *((NONE, "next"),) * (count - 1))


def _mlp_stage(facts: Facts, _family: Family, kind: str) -> Fed:
    """One token ahead: a table, a projection, a norm and a head; tied stages share all but one."""
    hidden, inner, vocab = _mlp_widths(facts)
    first = kind == "first"
    if not first and facts.flag("tie_weights"):
        return Fed([])
    tensors = [
        Tensor("emb.weight", ModuleClass.EMBEDDING, (vocab, inner), 1, Sharding.VOCAB),
        *matrix("proj", _OTHER, (inner, hidden if first else inner), _WHOLE),
        *matrix("head", _HEAD, (vocab, inner), Sharding.VOCAB),
        *norm("ln", inner, bias=True),
    ]
    return Fed(tensors)


def _mlp_outer(facts: Facts, _family: Family) -> list[Tensor]:
    """The one projection that tied stages after the first have."""
    _, inner, _ = _mlp_widths(facts)
    is_shared = facts.flag("tie_weights") and facts.integer("n_predict") > 1
    return matrix("proj.1", _OTHER, (inner, inner), _WHOLE) if is_shared else []


_HEADS = Family(
    names=Names(embedding="", final_norm=""), norms=(), has_head=False, tied=False,
    reads_tie=False, harmless=_OWN_KEYS,
)  # fmt: skip
MEDUSA = replace(_HEADS, kinds=_medusa_kinds, feeds={_KIND: _medusa_head}, positions=_medusa_outer)
MLP_SPECULATOR = replace(
    _HEADS, kinds=_mlp_kinds, feeds={"first": _mlp_stage, "next": _mlp_stage}, positions=_mlp_outer,
    harmless=(*_OWN_KEYS, "scale_input"),
)  # fmt: skip


def _mtp_base(facts: Facts) -> Family | None:
    """The family of the model that the block belongs to, by the type without its ending."""
    from engine.architecture.families.registry import FAMILIES  # noqa: PLC0415 - it loads this

    name = facts.model_type.removesuffix("_mtp").removesuffix("_nextn")
    names = (name, f"{name}_text", {"deepseek": "deepseek_v3"}.get(name, name))
    return next((FAMILIES[found] for found in reversed(names) if found in FAMILIES), None)


def _blocks(facts: Facts) -> int:
    return facts.integer("num_nextn_predict_layers", facts.count("n_predict") or 1)


def _mtp(facts: Facts) -> Family:
    """Blocks like the last layer of the model, behind a projection of two hidden states."""
    base = _mtp_base(facts) or LLAMA
    if base.by_class:
        base = base.by_class(facts)

    def kinds(found: Facts) -> tuple[tuple[str, str], ...]:
        from engine.architecture.build import layer_kinds  # noqa: PLC0415 - it loads families

        if base.kinds:
            return (base.kinds(found)[-1],) * _blocks(found)
        count = found.integer("num_hidden_layers")
        last = layer_kinds(found, base, count)[-1], base.feed_pattern(found, count)[-1]
        return (last,) * _blocks(found)

    return replace(
        base, kinds=kinds, names=replace(base.names, embedding=""),
        positions=_mtp_outer, has_head=False, tied=False, reads_tie=False, mtp=None,
    )  # fmt: skip


def _mtp_outer(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, blocks = facts.integer("hidden_size"), _blocks(facts)
    return [
        Tensor("eh_proj.weight", _OTHER, (hidden, 2 * hidden), blocks, _WHOLE, linear=True),
        Tensor("enorm.weight", ModuleClass.NORM, (hidden,), blocks),
        Tensor("hnorm.weight", ModuleClass.NORM, (hidden,), blocks),
    ]


def _mtp_doubts(facts: Facts) -> list[Doubt]:
    like = facts.model_type if _mtp_base(facts) else tr("a plain decoder")
    reason = tr(
        "a prediction block alone is counted as the last layer of {like}, "
        "a projection and two norms; embeddings and a head may be stored "
        "with it"
    ).format(like=like)
    return [
        Doubt(subject, reason, Direction.EITHER)
        for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
    ]


FAMILIES = {
    "medusa_draft": MEDUSA,
    "mlp_speculator_draft": MLP_SPECULATOR,
    "mtp_draft": Family(
        by_class=_mtp, doubts=_mtp_doubts, has_head=False, tied=False, reads_tie=False,
        harmless=_OWN_KEYS,
    ),
}  # fmt: skip
