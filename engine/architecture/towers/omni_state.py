"""What a model keeps for a sequence beside its text model's own cache, and is not counted.

Source:
    transformers 5.24.0, the generation code of each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, Subject
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.facts import Facts

_TALKER = tr_later("its talker keeps a cache of its own while it speaks, which is not counted")
_KEEPS: Mapping[str, tuple[str, str]] = {
    "csm": (
        "",
        tr_later(
            "its depth decoder keeps a cache of its own while it speaks, which is not counted"
        ),
    ),
    "qwen2_5_omni": ("enable_audio_output", _TALKER),
    "qwen3_omni_moe": ("enable_audio_output", _TALKER),
    "vibevoice": (
        "",
        tr_later("guidance keeps a second cache while it speaks, which is not counted"),
    ),
    "voxtral_realtime": (
        "",
        tr_later("its encoder keeps a cache of its own while it listens, which is not counted"),
    ),
}
"""Type of the root -> the flag that turns it on, if any, and what is kept."""


def further_state(root: Facts) -> list[Doubt]:
    """The doubt of a model that keeps more than one cache."""
    flag, reason = _KEEPS.get(root.model_type, ("", ""))
    if not reason or (flag and not root.flag(flag)):
        return []
    return [Doubt(Subject.SEQUENCE_STATE, tr(reason), Direction.LOWER)]
