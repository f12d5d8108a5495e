"""From a raw model to a ``Model``: one dispatch on ``model_type``, exact or with its doubts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.build import Built, UnknownKindError, build, check_kinds
from engine.architecture.drafts import flattened, kind_of, lone_layer_doubts, notes_of, renamed
from engine.architecture.families.generic import GENERIC
from engine.architecture.families.registry import FAMILIES
from engine.architecture.heads import first_class, is_usual, other_parts
from engine.architecture.marking import mark
from engine.architecture.memory import remembered
from engine.architecture.model import Model
from engine.architecture.spec import ArchitectureSpec, Direction, Doubt, ModuleClass, Subject
from engine.architecture.strangers import class_doubts, stranger_doubts
from engine.architecture.towers.omni_state import further_state
from engine.architecture.towers.registry import TOWERS, UnknownTowerError
from engine.architecture.unread import expert_doubts, second_stack_doubts, unread_doubts
from engine.config.context import context_length
from engine.config.defaults import NO_DEFAULTS
from engine.config.facts import MissingFieldError, is_mapping, shown
from engine.config.nesting import root_facts, text_facts
from engine.config.quantisation import Stored, stored_format
from engine.errors import ConfigError, UnknownArchitectureError
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.architecture.families.base import Family
    from engine.architecture.model import StoredWeights
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.registry import TowerRule
    from engine.config.facts import Facts
    from engine.source.raw import RawModel

_BESIDE = re.compile(r"vision|visual|audio|speech|image|img|tower|projector")
_LORA = re.compile(r"[._]lora_?(A|B|down|up|embedding)\b|_lora_[AB]$")
_FILLED = (
    "head_dim", "num_key_value_heads", "num_attention_heads", "num_hidden_layers", "hidden_size",
)  # fmt: skip
"""Fields by which a state grows, and which classes of whole models set in their text part."""
_MOST_PARAMETERS = 10**15
_PREDICTED = (
    "num_nextn_predict_layers", "num_mtp_modules", "num_mtp_layers", "mtp_num_hidden_layers",
    "mtp_num_layers",
)  # fmt: skip
_STORES_NO_MTP = frozenset({"minicpmv4_6"})
"""Roots whose text config states the blocks of Qwen3.5, of which their files hold none."""


def read(raw: RawModel) -> Model:
    """Understand ``raw``: its tensors, its sequence state, and what remains in doubt.

    A model that is not understood is answered as a bound, with its reasons in ``spec.doubts``.

    Raises:
        ConfigError: a field is of the wrong type or absurd.
        HeaderError: the header contradicts itself or lacks what the config requires.
        UnknownArchitectureError: neither dimensions nor a header: not even a bound is possible.
    """
    if raw.adapter is not None:
        from engine.architecture.adapter import attach  # noqa: PLC0415 - see below

        found = attach(_read(raw), raw.adapter)
    else:
        found = _read(raw)
    return replace(found, notes=(*found.notes, *raw.notes)) if raw.notes else found


def _read(raw: RawModel) -> Model:
    # What reads headers is loaded where there is one: most plans start from a config alone.
    if raw.gguf_metadata:
        from engine.architecture.gguf import gguf_model  # noqa: PLC0415 - see above

        return gguf_model(raw)
    if raw.config is None and any(_LORA.search(tensor.name) for tensor in raw.tensors):
        message = tr(
            "{id} holds the tensors of a LoRA adapter; open the folder that has them."
        ).format(id=raw.id)
        raise UnknownArchitectureError(message, field="tensors")
    if raw.config is None and raw.tensors:
        from engine.architecture.header_only import from_header  # noqa: PLC0415 - see above

        spec = from_header(raw)
        return Model(raw.id, raw.revision, raw.source, spec, _summarised(raw, spec))
    if raw.config is None:
        message = tr("{id} has no config.json; without it the model cannot be sized.").format(
            id=raw.id
        )
        raise UnknownArchitectureError(message)
    spec = remembered(raw.config, raw.parameters_by_class, specify)
    notes = notes_of(raw.config)
    raw = renamed(raw) if notes else raw
    stored = _summarised(raw, spec)
    if stored is not None:
        from engine.architecture.reconcile import reconcile  # noqa: PLC0415 - see above

        spec, found = reconcile(spec, stored, raw)
        notes += found
    else:
        notes += _left_open(spec)
    return Model(raw.id, raw.revision, raw.source, spec, stored, config=raw.config, notes=notes)


def _summarised(raw: RawModel, spec: ArchitectureSpec) -> StoredWeights | None:
    if not raw.tensors:
        return None
    from engine.architecture.stored import summarise  # noqa: PLC0415 - see above

    return summarise(raw, spec)


def _left_open(spec: ArchitectureSpec) -> tuple[str, ...]:
    """What a config alone leaves open and puts no figure in doubt."""
    notes: list[str] = []
    if spec.origins.get("dtype") == "derived" and spec.weight_format == "bf16":
        notes.append(tr("The description states no dtype: 16 bits a weight are assumed."))
    if spec.uncounted_mtp:
        blocks = tr("a prediction block") if spec.uncounted_mtp == 1 else tr("prediction blocks")
        notes.append(
            tr(
                "The config also states {blocks} (MTP) of a layout that is not "
                "known here: not counted. A checkpoint may hold more, loaded "
                "only for speculative decoding."
            ).format(blocks=blocks)
        )
    predicting = sum(tensor.parameters for tensor in spec.mtp)
    if predicting:
        notes.append(
            tr(
                "A checkpoint may also store prediction layers (MTP), "
                "{predicting} parameters: not counted, and loaded only for "
                "speculative decoding."
            ).format(predicting=grouped(predicting))
        )
    return tuple(notes)


def specify(
    config: Mapping[str, object], sums: Mapping[str, int] | None = None
) -> ArchitectureSpec:
    """The architecture that ``config`` describes.

    Args:
        config: the parsed ``config.json``.
        sums: exact parameters per module class, where they are known from elsewhere.

    Raises:
        ConfigError: a field is of the wrong type or absurd.
        UnknownArchitectureError: it has no dimensions.
    """
    root = root_facts(flattened(config))
    text = text_facts(root)
    stored = stored_format(root, text)
    family = _family(root, text)
    doubts: list[Doubt] = []
    if family is None:
        built = _bound(text, root)
        doubts += _unknown(text)
        doubts += expert_doubts(text)
    else:
        built = _build(text, family, root, doubts)
    extra = _towers(root, text, doubts)
    doubts += [*further_state(root), *other_parts(root.stated), *_filled_in(root, text)]
    doubts += lone_layer_doubts(root.stated, tied=built.tied)
    crosses = any(layer.cross is not None for layer in built.layers)
    doubts += second_stack_doubts(root, text, crosses=crosses)
    if family is not None:
        doubts += stranger_doubts(root, text)
        doubts += [] if kind_of(root.stated) else class_doubts(root)
    if extra:
        # What the whole model has under a name is instead of the text model's own.
        named = {tensor.name for tensor in extra}
        kept = (tensor for tensor in built.outer if tensor.name not in named)
        built = replace(built, outer=(*kept, *extra))
    if root.model_type in _STORES_NO_MTP:
        built = replace(built, mtp=(), mtp_attentions=())
    built, unquantised = mark(built, stored)
    stored = replace(stored, unquantised=unquantised)
    doubts += _of_storage(stored)
    spec = _spec(text, built, stored, tuple(doubts), sums)
    if not spec.mtp:
        spec = replace(spec, uncounted_mtp=_stated_mtp(root, text))
    spec = replace(spec, root_type=root.model_type, draft=kind_of(root.stated))
    if spec.parameters > _MOST_PARAMETERS:
        message = tr(
            "The config describes {parameters} parameters; no model is that large."
        ).format(parameters=grouped(spec.parameters))
        raise ConfigError(message, field=text.name("hidden_size"))
    return spec


def _stated_mtp(root: Facts, text: Facts) -> int:
    owners = (text, root, root.sub("mtp_config") or root.empty("mtp_config"))
    counts = (owner.stated.get(key) for owner in owners for key in _PREDICTED)
    found = (n for n in counts if isinstance(n, int) and not isinstance(n, bool))
    return max(found, default=0)


def _family(root: Facts, text: Facts) -> Family | None:
    draft = kind_of(root.stated)
    if draft:
        return FAMILIES[draft]
    own = FAMILIES.get(root.model_type)
    return own if own is not None and own.owns_text else FAMILIES.get(text.model_type)


def _of_storage(stored: Stored) -> Iterator[Doubt]:
    """What is not understood of the way the weights are stored."""
    if stored.reason:
        yield Doubt(Subject.WEIGHTS, stored.reason, Direction.UPPER)
    for why, way in stored.doubts:
        yield Doubt(Subject.WEIGHTS, why, Direction(way))
    if stored.tower_unsaid:
        yield Doubt(Subject.WEIGHTS, stored.tower_unsaid, Direction.UPPER, on_tower=True)


def _build(text: Facts, family: Family, root: Facts, doubts: list[Doubt]) -> Built:
    try:
        built = build(text, family, root=root)
        check_kinds(text, family)
    except UnknownKindError as unknown:
        kind = shown(unknown.kind)
        bound = _bound(text, root)
        reason = tr("layers of kind {kind} are not known for this type").format(kind=kind)
        doubts += _in_doubt(
            tr("{reason}: counted as a plain decoder of these dimensions").format(reason=reason)
        )
        return bound
    except UnknownTowerError as unknown:
        kind, bound = shown(str(unknown) or tr("of unknown type")), _bound(text, root)
        reason = tr(
            "its encoder {kind} is not known: counted as a plain decoder of these dimensions"
        ).format(kind=kind)
        doubts += _in_doubt(reason)
        return bound
    # No class builds what predicts further tokens: it is told apart (``uncounted_mtp``).
    text.settle(*family.harmless, *_PREDICTED)
    if family.doubts:
        doubts += family.doubts(text)
    doubts += unread_doubts(text)
    return built


def _bound(text: Facts, root: Facts) -> Built:
    """An unknown decoder counted as a plain one.

    Raises:
        UnknownArchitectureError: it has no dimensions to count.
    """
    try:
        return build(text, GENERIC, root=root)
    except MissingFieldError as error:
        named = text.model_type or tr("This config")
        message = tr("{named} is not a known architecture, and its config has no {field}.").format(
            named=named, field=error.field
        )
        raise UnknownArchitectureError(message, field=error.field) from error


def _filled_in(root: Facts, text: Facts) -> list[Doubt]:
    """Doubts of a root that nobody knows: it may set what its text part leaves out."""
    if root is text or root.model_type in TOWERS or root.defaults is not NO_DEFAULTS:
        return []
    absent = ("class default", "derived")
    left = [k for k in _FILLED if text.origins.get(k) in absent and text.defaults.has(k)]
    if not left:
        return []
    named = root.model_type or tr("the whole model")
    reason = tr("{name} is left out, and what {named} sets it to is not known").format(
        name=text.name(left[0]), named=named
    )
    return [Doubt(Subject.SEQUENCE_STATE, reason, Direction.EITHER)]


def _in_doubt(reason: str) -> list[Doubt]:
    both = (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
    return [Doubt(subject, reason, Direction.EITHER) for subject in both]


def _unknown(text: Facts) -> list[Doubt]:
    from engine.architecture.unheard import keeps_more  # noqa: PLC0415 - for an unknown type only

    reason = tr("the architecture {value} is not known").format(
        value=text.model_type or tr("(none stated)")
    )
    state, side = (
        tr("all keys and values of full attention in every layer are counted"),
        Direction.UPPER,
    )
    if keeps_more(text):
        state, side = (
            tr("full attention in every layer is assumed, and no other state"),
            Direction.EITHER,
        )
    return [
        Doubt(
            Subject.WEIGHTS,
            tr("{reason}: counted as a plain decoder of these dimensions").format(reason=reason),
            Direction.EITHER,
        ),
        Doubt(
            Subject.SEQUENCE_STATE, tr("{reason}: {state}").format(reason=reason, state=state), side
        ),
    ]


def _towers(root: Facts, text: Facts, doubts: list[Doubt]) -> list[Tensor]:
    """The tensors of what is beside the text model; a doubt where they cannot be counted."""
    rule = TOWERS.get(root.model_type)
    if root is text and rule is None:
        beside = [
            k
            for k, v in root.stated.items()
            if is_mapping(v) and k not in root.asked and _BESIDE.search(k)
        ]
        if beside:
            named = root.model_type or tr("this type")
            reason = tr("{beside} of {named} is not known: not counted").format(
                beside=beside[0][:80], named=named
            )
            doubts.append(Doubt(Subject.WEIGHTS, reason, Direction.LOWER))
        return []
    counted: list[Tensor] = []
    way = Direction.LOWER
    if rule is not None:
        counted, reason = _by_rule(rule, root, text)
        if not reason:
            return counted
    else:
        beside = [
            key
            for key, value in root.stated.items()
            if is_mapping(value) and key.endswith(("_config", "_cfg")) and key not in root.asked
        ]
        if not beside and root.model_type in FAMILIES:
            return []
        named = root.model_type or tr("this type")
        reason = tr("what {named} has beside its text model is not known and not counted").format(
            named=named
        )
        from engine.architecture.towers.encoders import encoders_in  # noqa: PLC0415 - for this only

        encoders = encoders_in(root, beside)
        if encoders:
            reason = tr("what joins the encoder of {named} to its text model is not known").format(
                named=named
            )
            doubts.append(Doubt(Subject.WEIGHTS, reason, Direction.EITHER))
            return encoders
        if not is_usual(root.stated):
            reason += tr("; nor is it known what {first_class:.80} has on top").format(
                first_class=first_class(root.stated)
            )
            way = Direction.EITHER
    doubts.append(Doubt(Subject.WEIGHTS, reason, way))
    return counted


def _by_rule(rule: TowerRule, root: Facts, text: Facts) -> tuple[list[Tensor], str]:
    """The tensors of what a rule counts, and the reason for which it leaves some out."""
    try:
        return rule(root, text), ""
    except UnknownTowerError as unknown:
        named = str(unknown) or tr("of unknown type")
        if unknown.counted:
            return list(unknown.counted), tr(
                "its tower {named} is not known and not counted"
            ).format(named=named)
        reason = tr("its tower {named} is not known").format(named=named)
    except UnknownKindError as unknown:
        reason = tr("layers of kind {shown} in its tower are not known").format(
            shown=shown(unknown.kind)
        )
    except MissingFieldError as missing:
        reason = tr("{field} is missing").format(field=missing.field)
    return [], tr("{reason}: only the text model is counted").format(reason=reason)


def _spec(
    text: Facts,
    built: Built,
    stored: Stored,
    doubts: tuple[Doubt, ...],
    sums: Mapping[str, int] | None,
) -> ArchitectureSpec:
    # Whether a tower is quantised is a matter of its bytes: the parameters are known.
    in_doubt = any(doubt.subject is Subject.WEIGHTS and not doubt.on_tower for doubt in doubts)
    return ArchitectureSpec(
        model_type=text.model_type,
        layers=built.layers,
        outer=built.outer,
        mtp=built.mtp,
        mtp_attentions=built.mtp_attentions,
        hidden_size=text.integer("hidden_size"),
        vocab_size=text.count("vocab_size"),
        max_position_embeddings=context_length(text),
        dtype=stored.dtype,
        tie_word_embeddings=built.tied,
        weight_format=stored.weight_format,
        unquantised=stored.unquantised,
        kv_cache_dtype=stored.kv_cache_dtype,
        kv_scale_bytes=stored.kv_scale_bytes,
        doubts=doubts,
        origins=dict(text.origins),
        stated_parameters=_by_class(sums) if sums and in_doubt else None,
    )


def _by_class(sums: Mapping[str, int]) -> dict[ModuleClass, int]:
    return {ModuleClass(name): count for name, count in sums.items()}
