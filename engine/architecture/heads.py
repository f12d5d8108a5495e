"""What the stated class puts on top of the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.architecture.spec import Direction, Doubt, Subject
from engine.config.facts import is_mapping
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.facts import Facts


_TEXT_TIES = frozenset({
    "blip-2", "encoder-decoder", "instructblip", "instructblipvideo", "kosmos-2.5", "llama4",
    "nemotron_h_omni", "speech-encoder-decoder", "vibevoice", "vision-encoder-decoder",
})  # fmt: skip
"""Models whose head is inside the text model's own class: its config decides."""
_EITHER_TIES = frozenset({
    "blip", "fast_vlm", "glm4v", "glm4v_moe", "glm_ocr", "hunyuan_vl", "kosmos-2", "llava",
    "llava_next_video", "llava_onevision", "minimax_m3_vl", "paddleocr_vl", "qwen2_5_vl",
    "qwen2_vl", "shieldgemma2", "video_llama_3",
})  # fmt: skip
"""Models that also believe a text config that says "tied", as older releases stored it."""
_NEVER_TIES = frozenset({
    "audioflamingo3", "cosmos3_edge", "evolla", "inkling2", "inkling2_loop", "inkling_mm_model",
    "mllama", "molmo2", "muse_spark", "musicflamingo", "nemo_speechlm", "omniasr", "pp_formulanet",
    "qwen2_audio", "vibevoice_asr", "voxtral",
})  # fmt: skip
"""Models whose class has a head that it ties to nothing, whatever a config says."""
_TIED = "tie_word_embeddings"
_ANSWERS = "ForQuestionAnswering"
_BIASED = ("ForTokenClassification", _ANSWERS)
_BIASED_UNUSUALLY = {
    "Qwen3ASRForTokenClassification": False, "T5Gemma2ForSequenceClassification": True,
    "T5GemmaForSequenceClassification": True,
}  # fmt: skip
"""Classes whose classifying head has a bias, or none, unlike others of its kind."""
_OTHER_PARTS = frozenset({
    "Blip2ForImageTextRetrieval", "BlipForImageTextRetrieval", "BlipForQuestionAnswering",
    "BlipModel",
})  # fmt: skip
_OWN_TOPS = ("ForMultipleChoice", "ForQuestionAnsweringSimple")
"""Classes with neither a language model's head nor one that classifies."""
_LANGUAGE = ("LMHeadModel", "ForCausalLM", "MTModel")


def first_class(stated: Mapping[str, object]) -> str:
    """The first entry of ``architectures``; empty where there is none."""
    named = stated.get("architectures")
    first: object = cast("list[object]", named)[0] if isinstance(named, list) and named else ""
    return first if isinstance(first, str) else ""


def whole_class(facts: Facts) -> str:
    """The class of the whole model in which ``facts`` describes the text model."""
    while facts.above is not None:
        facts = facts.above
    return first_class(facts.stated)


def head_of(stated: Mapping[str, object]) -> str:
    """What is on top: ``lm``, ``none`` or ``score`` (classes or a reward)."""
    name = first_class(stated)
    if name.endswith(_LANGUAGE):
        return "lm"
    if name.endswith(("ForSequenceClassification", "RewardModel", *_BIASED)):
        return "score"
    return "none" if name.endswith(("Model", *_OWN_TOPS)) else "lm"


def other_parts(stated: Mapping[str, object]) -> list[Doubt]:
    """Doubts of a class that has other parts than the one by whose rule it is counted."""
    name = first_class(stated)
    if name not in _OTHER_PARTS:
        return []
    reason = tr(
        "{name} has other parts than the class that generates text: counted as that one"
    ).format(name=name)
    both = (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
    return [Doubt(subject, reason, Direction.EITHER) for subject in both]


def is_usual(stated: Mapping[str, object]) -> bool:
    """Whether the class's name says what it has on top: others may have less than is counted."""
    name = first_class(stated)
    usual = name.endswith((*_LANGUAGE, "ForConditionalGeneration", "WithLMHead"))
    return not name or usual or head_of(stated) != "lm"


_HEADED = frozenset({
    "blip-2", "encoder-decoder", "qwen2_5_omni", "qwen3_omni_moe", "speech-encoder-decoder",
    "vision-encoder-decoder",
})  # fmt: skip
"""Models whose class with a head is itself called ``...Model``."""
_CLASS_OF = {
    "glmga": "glm46v", "inkling_mm_model": "inkling", "nemo_speechlm": "nemotron3_5_transcribe",
    "pp_chart2table": "got_ocr2",
}  # fmt: skip
"""Types built by classes of another name."""


def top_of(facts: Facts) -> tuple[str, Facts]:
    """What is on top of the whole model, and the config that says so.

    Below a root its class decides. Many that have a head are called ``...Model`` too: bare is
    only the one that bears the type's own name.
    """
    if facts.above is None:
        return head_of(facts.stated), facts
    root = facts.above
    while root.above is not None:
        root = root.above
    kind, own = head_of(root.stated), root.model_type
    name = first_class(root.stated).lower().replace("_", "")
    own = _CLASS_OF.get(own, own)
    # Classes that are published with their weights keep to no such names.
    is_native = bool(root.defaults.sub_types) and own not in _HEADED
    is_bare = is_native and name == "".join(filter(str.isalnum, own)) + "model"
    return ("lm" if kind == "none" and not is_bare else kind), root


def is_bare(facts: Facts) -> bool:
    """Whether the class of the whole model has nothing on top of its layers."""
    return top_of(facts)[0] == "none"


def score_has_bias(stated: Mapping[str, object]) -> bool:
    """Whether the classifying head of a decoder has one: it has for tokens and for answers."""
    name = first_class(stated)
    return _BIASED_UNUSUALLY.get(name, name.endswith(_BIASED))


def labels_of(facts: Facts) -> int:
    """Outputs of a classifying head: for answers their start and their end."""
    if first_class(facts.stated).endswith(_ANSWERS):
        return 2
    named = facts.stated.get("id2label")
    if named is not None and not is_mapping(named):
        raise facts.bad("id2label", named, tr("an object with a name for each label is needed"))
    return facts.integer("num_labels", len(named) if is_mapping(named) and named else 2)


def is_tied(text: Facts, root: Facts, *, otherwise: bool) -> bool:
    """Whether embedding and head share one tensor; ``otherwise`` where nothing says.

    Source:
        transformers 5.24.0, ``get_expanded_tied_weights_keys`` and the ``__post_init__`` of the
        composite configs: the class that makes the head reads its own config, the root's.
    """
    if root.model_type == "pi0":
        return True  # it has no head at all
    # Where configs nest deeper, as in a thinker beside a talker, that is the one above the text.
    root = text.above or root
    kind = root.model_type
    if root is text or not root.defaults.sub_types:
        return _first_said((root, text), otherwise=otherwise)
    says_text = _first_said((text,), otherwise=False)
    if kind in _TEXT_TIES:
        return says_text
    if kind == "perception_lm":
        return root.flag(_TIED, default=says_text)
    says_root = root.flag(_TIED) and kind not in _NEVER_TIES
    return says_root or (kind in _EITHER_TIES and says_text)


def _first_said(owners: tuple[Facts, ...], *, otherwise: bool) -> bool:
    for owner in owners:
        if owner.stated.get(_TIED) is not None:
            return owner.flag(_TIED)
    for owner in owners:
        if _TIED in owner.defaults.values:
            return owner.flag(_TIED)
    return otherwise
