"""How many tokens an encoder gives its decoder to read, where that is not the text's length.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import state_doubt
from engine.architecture.heads import whole_class
from engine.architecture.spec import Direction
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts

_OWN_TOKENS = {"vit": 1, "deit": 2, "beit": 1}
"""Tokens beside the patches, of encoders that keep every patch."""
_PYRAMIDS = frozenset({"swin", "donut-swin"})
_SOUND = frozenset({
    "canary_decoder", "cohere_asr", "moonshine", "moonshine_streaming", "pop2piano", "speecht5",
    "speech_to_text",
})  # fmt: skip
_WHOLES = frozenset({"vision-encoder-decoder", "speech-encoder-decoder"})


def image_tokens(facts: Facts) -> int:
    """Tokens of the image that the decoder ``facts`` reads; 0 where it reads none, or not so many.

    Each stage of a pyramid after the first halves both sides of the grid.
    """
    whole = facts.above
    if whole is None or whole.model_type != "vision-encoder-decoder":
        return 0
    encoder = whole.sub("encoder") or whole.empty("encoder")
    kind = encoder.model_type
    if kind not in _OWN_TOKENS and kind not in _PYRAMIDS:
        return 0
    from engine.architecture.towers.parts import pair  # noqa: PLC0415 - for an image only

    height, width = pair(encoder, "image_size")
    patch = encoder.integer("patch_size")
    stages = len(encoder.items("depths") or ()) - 1 if kind in _PYRAMIDS else 0
    side = patch * 2 ** max(stages, 0)
    return (height // side) * (width // side) + _OWN_TOKENS.get(kind, 0)


def source_doubts(facts: Facts) -> list[Doubt]:
    """Doubts of a decoder that reads a sound or an image of no fixed length."""
    whole = facts.above.model_type if facts.above else ""
    hears = facts.model_type in _SOUND or "ForSpeech" in whole_class(facts)
    sees = facts.model_type == "pix2struct_text_model" or whole in _WHOLES
    if not (hears or sees) or image_tokens(facts):
        return []
    reason = (
        tr("its cross-attention keeps what {name} hears: counted as long as the answer")
        if hears or whole.startswith("speech")
        else tr("its cross-attention keeps what {name} sees: counted as long as the answer")
    ).format(name=whole or facts.model_type)
    return state_doubt(reason, Direction.EITHER)
