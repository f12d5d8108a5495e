"""Draft models of speculative decoding: how their configs are told from a whole model's.

Most bear the ``model_type`` of the layers they are built of, and read as a small model of that
type they would be counted wrong. Which kind it is follows from the class or from a key of its own.

Source:
    vLLM ``transformers_utils/configs`` and ``model_executor/models``, SpecForge
    ``modeling/draft``, the ``speculators`` package.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.heads import first_class
from engine.architecture.spec import Direction, Doubt, Subject
from engine.config.facts import is_mapping
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.source.raw import RawModel

EAGLE3, EAGLE, DFLASH = "eagle3_draft", "eagle_draft", "dflash_draft"
MEDUSA, MLP, MTP = "medusa_draft", "mlp_speculator_draft", "mtp_draft"
_CLASSES = (
    (re.compile(r"Eagle3"), EAGLE3),
    (re.compile(r"^(DFlash|DSpark|\w+DSpark|\w+DFlash)\w*Model$"), DFLASH),
    (
        re.compile(
            r"ForCausalLMEagle$|^Eagle(Llama4?|MiniCPM|Mistral|Qwen\d\w*|Deepseek\w*)ForCausalLM$"
            r"|^EAGLEModel$|^EagleSpeculator$"
        ),
        EAGLE,
    ),
    (re.compile(r"^Medusa"), MEDUSA),
    (re.compile(r"^MLPSpeculator"), MLP),
    (re.compile(r"MTP(Model|ForCausalLM)?$|NextN$"), MTP),
)
"""Class of the config -> kind; the first that matches wins."""
_TYPES = (
    (re.compile(r"dspark|dflash"), DFLASH),
    (re.compile(r"^eagle$"), EAGLE),
    (re.compile(r"^medusa$"), MEDUSA),
    (re.compile(r"^mlp_speculator$"), MLP),
    (re.compile(r"_(mtp|nextn)$"), MTP),
)
_SPECULATORS = {
    "eagle": EAGLE, "eagle3": EAGLE3, "peagle": EAGLE3, "dflash": DFLASH, "dflash2": DFLASH,
    "dspark": DFLASH, "medusa": MEDUSA, "mlp": MLP, "mtp": MTP, "fast_mtp": MTP,
}  # fmt: skip
"""``speculators_model_type`` -> kind; what is not known is counted as the commonest, in doubt."""
_FORMAT = "speculators_model_type"
_KEYS = (
    ("dflash_config", DFLASH), ("medusa_num_heads", MEDUSA), ("eagle_config", EAGLE3),
    ("draft_vocab_size", EAGLE3),
)  # fmt: skip
"""Keys that only drafts have, for configs whose class says nothing."""
_WORDS = {
    EAGLE3: tr_later("An EAGLE-3 draft model"),
    EAGLE: tr_later("An EAGLE draft model"),
    DFLASH: tr_later("A draft model for whole blocks (DFlash, DSpark)"),
    MEDUSA: tr_later("Medusa heads"),
    MLP: tr_later("An MLP speculator"),
    MTP: tr_later("A prediction block (MTP)"),
}
_USES = {
    EAGLE3: tr_later(
        "it reads hidden states of its target, and uses the target's "
        "embeddings where it stores none"
    ),
    EAGLE: tr_later("it reads the last hidden state of its target, and uses the target's head"),
    DFLASH: tr_later(
        "it reads hidden states of its target, and uses the target's "
        "embeddings and head where it stores none"
    ),
    MEDUSA: tr_later("they read the last hidden state of their target"),
    MLP: tr_later("it reads the last hidden state of its target"),
    MTP: tr_later(
        "it reads the last hidden state of its target, and uses the target's embeddings and head"
    ),
}
_INNER = ("transformer_layer_config", "model", "text_config")
"""Where the layers of a draft are described: by speculators, by vLLM, by a target with towers."""
_WIDE = 2_048
"""Width from which no one publishes a model of one layer that is no draft."""
_RENAMED = (
    (re.compile(r"^(model\.)?midlayer\."), "layers.0."),
    (re.compile(r"^(model\.)?(mtp_layers|mtp(?=\.\d))\."), "layers."),
    (re.compile(r"^(model\.)?mtp\."), ""),
)
"""The layers of a draft by the names that its checkpoint gives them -> those of any layer."""
_LAYER = re.compile(r"(?<![^.])layers\.(\d{1,6})\.")


def kind_of(config: Mapping[str, object]) -> str:
    """The kind of draft that ``config`` describes; empty for a model of its own."""
    stated = config.get(_FORMAT)
    if isinstance(stated, str):
        return _SPECULATORS.get(stated, EAGLE3)
    name, model_type = first_class(config), config.get("model_type")
    for expression, kind in _CLASSES:
        if expression.search(name):
            return kind
    if isinstance(model_type, str):
        for expression, kind in _TYPES:
            if expression.search(model_type):
                return kind
    if name:
        return ""
    return next((kind for key, kind in _KEYS if config.get(key) is not None), "")


def flattened(config: Mapping[str, object]) -> Mapping[str, object]:
    """A draft's config with the keys of its layers beside its own; any other as it is."""
    # What is no object at all is refused where the config is read.
    kind = kind_of(config) if is_mapping(config) else ""
    if not kind:
        return config
    if kind == MLP and "emb_dim" in config:
        return {"hidden_size": config["emb_dim"], **config}
    for key in _INNER:
        inner = config.get(key)
        if is_mapping(inner):
            rest = {name: value for name, value in config.items() if name != key}
            own = {"model_type": "llama", **inner}
            own.pop("architectures", None)
            same = next(name for name, found in _SPECULATORS.items() if found == kind)
            own[_FORMAT] = same
            return {**own, **rest, "model_type": own["model_type"]}
    return config


def is_known(config: Mapping[str, object]) -> bool:
    """Whether the format's own word for the kind, where there is one, is known."""
    stated = config.get(_FORMAT)
    return stated is None or str(stated) in _SPECULATORS


def lone_layer_doubts(config: Mapping[str, object], *, tied: bool) -> list[Doubt]:
    """The doubt of a model of one wide layer: the first EAGLE drafts call themselves that.

    In place of the head they have a projection, which is smaller; a tied model has no head.

    Source:
        SafeAILab/EAGLE ``eagle/train/llama_2_chat_7B_config.json``.
    """
    hidden, vocab = config.get("hidden_size"), config.get("vocab_size")
    if not isinstance(hidden, int) or not isinstance(vocab, int) or hidden < _WIDE:
        return []
    is_model = first_class(config).endswith("ForCausalLM") and not kind_of(config)
    if config.get("num_hidden_layers") != 1 or not is_model:
        return []
    reason = tr(
        "a model of one layer is mostly an EAGLE draft, which has a "
        "projection in place of the head: counted as a plain model"
    )
    is_most = not tied and vocab > 2 * hidden + 1
    return [Doubt(Subject.WEIGHTS, reason, Direction.UPPER if is_most else Direction.EITHER)]


def notes_of(config: Mapping[str, object]) -> tuple[str, ...]:
    """What a draft is, and what it takes from its target."""
    kind = kind_of(config)
    if not kind:
        return ()
    return (
        tr("{words} for speculative decoding: {uses}; the target is not counted.").format(
            words=tr(_WORDS[kind]), uses=tr(_USES[kind])
        ),
    )


def renamed(raw: RawModel) -> RawModel:
    """A draft with its layers under the names that layers have, counted from 0.

    A prediction block goes by the number that follows its target's last layer.
    """
    names = [_plain(tensor.name) for tensor in raw.tensors]
    numbers = [int(found[1]) for name in names if (found := _LAYER.search(name))]
    first = min(numbers, default=0)

    def counted(found: re.Match[str]) -> str:
        return f"layers.{int(found[1]) - first}."

    tensors = tuple(
        tensor._replace(name=_LAYER.sub(counted, name, count=1))
        for tensor, name in zip(raw.tensors, names, strict=True)
    )
    return replace(raw, tensors=tensors)


def _plain(name: str) -> str:
    for expression, instead in _RENAMED:
        name = expression.sub(instead, name)
    return name
