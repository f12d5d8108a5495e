"""What the stated class puts on top of the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.config.facts import is_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.facts import Facts


def first_class(stated: Mapping[str, object]) -> str:
    """The first entry of ``architectures``; empty where there is none."""
    named = stated.get("architectures")
    first: object = cast("list[object]", named)[0] if isinstance(named, list) and named else ""
    return first if isinstance(first, str) else ""


def head_of(stated: Mapping[str, object]) -> str:
    """What is on top: ``lm``, ``none`` or ``score`` (classes or a reward)."""
    name = first_class(stated)
    if name.endswith(("LMHeadModel", "ForCausalLM")):
        return "lm"
    if name.endswith(("ForSequenceClassification", "ForTokenClassification", "RewardModel")):
        return "score"
    return "none" if name.endswith("Model") else "lm"


def labels_of(facts: Facts) -> int:
    """Outputs of a classifying head."""
    named = facts.stated.get("id2label")
    return facts.integer("num_labels", len(named) if is_mapping(named) and named else 2)
