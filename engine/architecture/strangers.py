"""Keys that a config states, that nothing read, and that the class of the config does not have.

Such a key may be a slip for one that decides the memory, or belong to a release that nobody here
has seen. What it would change cannot be known: the figures that it may touch are in doubt both
ways. What a class has and the reader ignores was measured to change nothing
(``tests/evidence``), and what is harmless by its name is let go.

Source:
    ``resources/data/config_fields.json``: the field names of all config classes of
    transformers 5.24.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.architecture.heads import first_class
from engine.architecture.spec import Direction, Doubt, Subject
from engine.architecture.unread import is_harmless, is_telling, says_nothing
from engine.config.defaults import SAME_CLASS, all_classes, all_fields, class_defaults
from engine.config.facts import shown
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.config.facts import Facts

_ALIKE = 0.8
"""Share of letters in common from which one name may be a slip for another."""
_KNOWN_TOPS = re.compile(
    r"For(CausalLM|ConditionalGeneration|MaskedLM|PreTraining)$|LMHeadModel$|MTModel$"
    r"|For(Sequence|Token)Classification$|ForQuestionAnswering$|(?<!Reward)(?<!Gating)Model$"
)
"""Ends of class names whose top is that of the same end everywhere."""
_LONGEST_NAME = 60
_BOTH = (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
_READ_BY_HAND = ("tie_word_embeddings", "torch_dtype", "quantization_config")
"""Looked for at the root and in the text config, without a question that is remembered."""
_MATTERS = re.compile(
    r"(?<!routing_)(?<!router_)bias(?!_dropout)|norm|tie|gate|expert|moe(?!_router)|share|proj"
    r"|embed|head|cross|mla|kv|layer|recurr|conv|ssm|mamba|linear|window|sparse|lora|wide|double"
    r"|second|extra|dual|engram|hyper|mhc|pooler|mtp|loop"
)
"""In the name of a flag: what it switches may have weights."""
_KEEPS = re.compile(r"share|cross|mla|kv|cache|recurr|conv|ssm|mamba|linear|window|sparse")
"""In the name of a flag: what it switches may have a state."""
_CHOOSES = re.compile(
    r"(ffn|mlp|feed_?forward|attn|attention|mixer|layer|block|position_embedding|embedding)s?_"
    r"(type|kind|pattern|class)|^(token_)?mixer|pattern$"
)
"""In the name of a word: what it chooses may be built otherwise."""
_USUAL = frozenset({
    "rope", "rotary", "absolute", "none", "default", "standard", "causal", "multihead_attention",
})  # fmt: skip
"""Words that choose what is built anyway."""
_WIDENS = re.compile(r"(ffn|mlp|hidden|inter\w*|expansion|width|dim)_(mult\w*|ratio|factor|rate)")
"""In the name of a fraction: it may widen a matrix."""
_HARMLESS_BESIDE = re.compile(
    r"token|tile|pixel|patch|resolution|index|indices|layer$|length|time|temporal|seconds|language"
    r"|select|num_attention_heads$"
)
"""In the name of a key beside the text model: how images and sound are cut up, not by what."""


def stranger_doubts(root: Facts, text: Facts) -> list[Doubt]:
    """One doubt a subject for the keys of ``root`` and of all below it that nobody knows."""
    found: dict[Subject, list[str]] = {}
    for facts, is_text in _all(root, text):
        for key, value in facts.stated.items():
            harmless = is_harmless(key) and not _WIDENS.search(key)
            read = facts.is_asked(key) or key in text.asked or key in facts.defaults.values
            if read or harmless:
                continue
            meant = _meant(facts, key, value)
            if not meant and not _is_strange(key, value, beside=not is_text):
                continue
            what = (
                tr("may be meant as {meant}").format(meant=meant)
                if meant
                else tr("({shown}) is not known").format(shown=shown(value))
            )
            why = tr("{name} {what}").format(name=facts.name(key), what=what)
            found.setdefault(Subject.WEIGHTS, []).append(why)
            # What lies beside the text model touches its state only by the name it should have.
            flag = value is True or isinstance(value, float)
            keeps = is_text and (not flag or _KEEPS.search(key.lower()))
            if keeps or (meant and (is_text or facts is root)):
                found.setdefault(Subject.SEQUENCE_STATE, []).append(why)
    return [
        Doubt(subject, _reason(whys, root.model_type), Direction.EITHER)
        for subject, whys in found.items()
    ]


def class_doubts(root: Facts) -> list[Doubt]:
    """Doubts of a known type whose class is the repository's own code: it may build anything."""
    name, kind = first_class(root.stated), root.model_type
    if not name or class_defaults(kind) is None or name in all_classes():
        return []
    said = tr("{name} is code of its repository: counted as {kind}").format(
        name=name[:_LONGEST_NAME], kind=kind
    )
    own = (kind, SAME_CLASS.get(kind, kind))
    if not any(_bare(name).startswith(_bare(k.removesuffix("_model"))) for k in own):
        return [Doubt(subject, said, Direction.EITHER) for subject in _BOTH]
    if _KNOWN_TOPS.search(name):
        return []
    return [
        Doubt(
            Subject.WEIGHTS,
            tr("{said}, with the top of a language model").format(said=said),
            Direction.EITHER,
        )
    ]


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _all(facts: Facts, text: Facts, *, inside: bool = False) -> Iterator[tuple[Facts, bool]]:
    """Every config, and whether it is the text model's or lies in that.

    What is at the root counts as the text model's where its own config is missing: it was filled
    with the defaults of its class. So it does where the text fields are at the root, beside
    others' configs.
    """
    inside = inside or facts is text
    yield facts, inside or facts.stated is text.stated or not (facts.path or text.stated)
    for below in facts.below.values():
        yield from _all(below, text, inside=inside)


def _is_strange(key: str, value: object, *, beside: bool) -> bool:
    """Whether ``key`` may describe something, and is no field of any class."""
    if isinstance(value, str):
        usual = value.lower() in _USUAL
        return not beside and not usual and bool(_CHOOSES.search(key.lower()))
    if isinstance(value, float):
        return not beside and value != 1.0 and bool(_WIDENS.search(key.lower()))
    if key in all_fields() or (not beside and is_telling(key)):
        return False
    if isinstance(value, bool):
        return value and bool(_MATTERS.search(key.lower()))
    if says_nothing(value):
        return False
    return not (beside and _HARMLESS_BESIDE.search(key))


def _meant(facts: Facts, key: str, value: object) -> str:
    """A key that was looked for in vain, and that ``key`` may be a slip for."""
    if len(key) > _LONGEST_NAME or key in all_fields():
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - 3 ms of a start, and seldom needed

    missing = [n for n in (*facts.asked, *_READ_BY_HAND) if n not in facts.stated]
    found = get_close_matches(key.lower(), missing, 1, _ALIKE)
    return found[0] if found and facts.raw(found[0]) != value else ""


def _reason(whys: list[str], model_type: str) -> str:
    more = " …" if len(whys) > 2 else ""
    return tr("{names}{more}: what it changes in {value} is open").format(
        names="; ".join(whys[:2]), more=more, value=model_type or "this type"
    )
