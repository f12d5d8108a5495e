"""From a raw model to a ``Model``: one dispatch on ``model_type``, exact or marked with its doubts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.build import Built, UnknownKindError, build
from engine.architecture.families.registry import FAMILIES, GENERIC
from engine.architecture.model import Model
from engine.architecture.spec import ArchitectureSpec, Doubt, ModuleClass, Subject
from engine.config.context import context_length
from engine.config.nesting import root_facts, text_facts
from engine.config.quantisation import Stored, stored_format
from engine.errors import UnknownArchitectureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.facts import Facts
    from engine.source.raw import RawModel


def read(raw: RawModel) -> Model:
    """Understand ``raw``: its tensors, its sequence state, and what remains in doubt.

    Raises:
        ConfigError: a field is of the wrong type or absurd.
        UnknownArchitectureError: neither dimensions nor a header: not even a bound is possible.
    """
    if raw.config is None:
        message = f"{raw.id} has no config.json and no header; nothing is known about it."
        raise UnknownArchitectureError(message)
    spec = specify(raw.config, raw.parameters_by_class)
    return Model(raw.id, raw.revision, raw.source, spec)


def specify(
    config: Mapping[str, object], sums: Mapping[str, int] | None = None
) -> ArchitectureSpec:
    """The architecture that ``config`` describes.

    Raises:
        ConfigError: a field is of the wrong type or absurd.
        UnknownArchitectureError: it has no dimensions.
    """
    root = root_facts(config)
    text = text_facts(root)
    stored = stored_format(root, text)
    family = FAMILIES.get(text.model_type)
    doubts: list[Doubt] = []
    if family is None:
        family = GENERIC
        doubts += _unknown(text)
    try:
        built = build(text, family, root=root)
    except UnknownKindError as unknown:
        built = build(text, GENERIC, root=root)
        doubts += _unknown(text, f"its layers of kind {unknown.kind} are not known")
    if stored.reason:
        doubts.append(Doubt(Subject.WEIGHTS, stored.reason))
    return _spec(text, built, stored, tuple(doubts), sums)


def _unknown(text: Facts, why: str = "") -> list[Doubt]:
    named = text.model_type or "without model_type"
    reason = why or f"the architecture {named} is not known"
    return [
        Doubt(Subject.WEIGHTS, f"{reason}: counted as a plain decoder of these dimensions"),
        Doubt(Subject.SEQUENCE_STATE, f"{reason}: full attention in every layer is an upper bound"),
    ]


def _spec(
    text: Facts,
    built: Built,
    stored: Stored,
    doubts: tuple[Doubt, ...],
    sums: Mapping[str, int] | None,
) -> ArchitectureSpec:
    return ArchitectureSpec(
        model_type=text.model_type,
        layers=built.layers,
        outer=built.outer,
        mtp=built.mtp,
        hidden_size=text.integer("hidden_size"),
        vocab_size=text.integer("vocab_size"),
        max_position_embeddings=context_length(text),
        dtype=stored.dtype,
        tie_word_embeddings=built.tied,
        weight_format=stored.weight_format,
        unquantised=stored.unquantised,
        kv_cache_dtype=stored.kv_cache_dtype,
        doubts=doubts,
        origins=dict(text.origins),
        stated_parameters={ModuleClass(k): v for k, v in sums.items()} if sums and doubts else None,
    )
