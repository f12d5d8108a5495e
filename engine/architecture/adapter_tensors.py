"""The tensors of a LoRA adapter whose header was not read, from its config and its base.

A module of shape (out, in) that the adapter names gets A of (r, in) and B of (out, r). PEFT keeps
both in 32 bits; whole copies and biases stay in the model's own dtype.

Source:
    PEFT 0.21.2, ``tuners/tuners_utils.py :: check_target_module_exists`` for what a name means,
    ``tuners/lora`` for the shapes, ``utils/save_and_load.py`` for what is stored beside.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, cast

from engine.architecture.naming import named, pattern_of
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject, Tensor
from engine.architecture.unread import says_nothing
from engine.config.facts import is_mapping
from engine.errors import ConfigError
from engine.formats.weights import plain_format
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.spec import ArchitectureSpec
    from engine.config.facts import Facts

LORA = "LORA"
_ALL = "all-linear"
_BESIDE = (ModuleClass.VISION, ModuleClass.AUDIO)
_TABLES = ("embed_tokens", "lm_head")
"""Names by which PEFT knows a table; one that is a target is stored whole, too."""
_NO_TENSORS = re.compile(
    r"^(auto_mapping|base_model_name_or_path|fan_in_fan_out|inference_mode|init_lora_weights"
    r"|lora_alpha|alpha_pattern|lora_dropout|revision|task_type|peft_type|peft_version|use_rslora"
    r"|megatron_core|loftq_config|qalora_group_size|ensure_weight_tying|corda_config|eva_config"
    r"|alora_invocation_tokens|lora_ga_config|runtime_config|merge_weights|enable_lora|_\w+)$"
)
_NUMBER = re.compile(r"\.(\d+)\.")
_LONGEST_PATTERN = 2_000
_MOST_PATTERNS = 4_096
_REPEATED = re.compile(r"\)[*+{]")
"""A repeated group: matching it may take for ever."""
_ENDLESS = re.compile(r"[*+]|,\}")
_MOST_ENDLESS = 6
"""Repetitions without an end in one pattern; what one match costs grows with their number."""
_PATIENCE_S = 2.0
"""Time in which every pattern that was not made to take long has met every module."""
_HOLDS = {"transformer": "h"}
"""Module of the embeddings -> the list of layers beside it, where that is not ``layers``."""


@dataclass(frozen=True, slots=True)
class _Module:
    """A module of the base that an adapter may name."""

    path: str
    further: tuple[str, ...]
    """The same module by the paths that other releases give it."""
    module: ModuleClass
    shape: tuple[int, ...]
    bias: int = 0
    """Elements of its bias."""
    copies: int = 1
    linear: bool = True
    layer: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, *self.further)


_Wanted = re.Pattern[str] | frozenset[str]
"""Names of modules, each of which stands for all that end in it, or a pattern of whole paths."""
_Found = Counter[tuple[str, tuple[int, ...], str]]
"""Name, shape and format of a tensor -> how often the adapter has it."""


def tensors_of(spec: ArchitectureSpec, facts: Facts) -> tuple[tuple[Tensor, ...], list[Doubt]]:
    """The tensors that ``adapter_config.json`` describes on top of ``spec``, and what is in doubt.

    Raises:
        ConfigError: a field is of the wrong type, absurd, or a pattern that cannot be used.
    """
    reason = tr(
        "the adapter's weights were not read: they follow from "
        "adapter_config.json in 32 bits, as PEFT keeps them, and may be "
        "stored in 16, or with the tables of added tokens"
    )
    doubts = [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]
    modules = list(_modules(spec))
    own = plain_format(spec.dtype) or "bf16"
    found: _Found = Counter()
    rule = _Rule(facts)
    chosen = _chosen(modules, rule, facts)
    for module in chosen:
        _add_pair(found, module, rule, own)
    _add_experts(found, spec, rule, doubts)
    if any(module.module in _BESIDE for module in modules):
        reason = tr(
            "modules beside the text model may have other names than the adapter's config uses"
        )
        doubts.append(Doubt(Subject.WEIGHTS, reason, Direction.EITHER))
    if rule.bias == "all":
        found.update(_all_biases(spec, own))
    elif rule.bias != "none":
        for module in chosen:
            if module.bias:
                found[f"{pattern_of(module.path)}.bias", (module.bias,), own] += module.copies
    _add_copies(found, spec, rule, own, doubts)
    _add_tokens(found, spec, facts)
    if not found:
        message = tr(
            "adapter_config.target_modules names no module of the base "
            "that is known; put adapter_model.safetensors beside it."
        )
        raise ConfigError(message, field="adapter_config.target_modules")
    doubts += _unknown(facts)
    return tuple(
        Tensor(name, ModuleClass.OTHER, shape, copies, stored_as=stored)
        for (name, shape, stored), copies in found.items()
    ), doubts


def _chosen(modules: list[_Module], rule: _Rule, facts: Facts) -> list[_Module]:
    """The modules that the adapter names.

    Raises:
        ConfigError: a pattern that takes too long to say.
    """
    chosen: list[_Module] = []
    started = monotonic()
    for module in modules:
        if rule.takes(module):
            chosen.append(module)
        if monotonic() - started > _PATIENCE_S:
            raise facts.bad(
                "target_modules", tr("a pattern"), tr("one that takes less time is needed")
            )
    return chosen


def _unknown(facts: Facts) -> list[Doubt]:
    """The doubt of keys that nothing read and that are not known to have no tensors."""
    unknown = [
        key
        for key, value in facts.stated.items()
        if not says_nothing(value) and not facts.is_asked(key) and not _NO_TENSORS.match(key)
    ]
    if not unknown:
        return []
    shown = ", ".join(key[:60] for key in unknown[:3])
    reason = tr("{shown} of the adapter's config is not known and was not counted").format(
        shown=shown
    )
    return [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]


class _Rule:
    """Which modules an adapter names, and with which rank."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.rank = facts.integer("r", 8)
        self.targets = self._names("target_modules")
        self._excluded = self._names("exclude_modules")
        self.saved = facts.words("modules_to_save") or ()
        self.parameters = frozenset(facts.words("target_parameters") or ())
        if not self.targets and not self.parameters:
            wanted = tr("the names of the adapted modules are needed")
            raise facts.bad("target_modules", facts.raw("target_modules"), wanted)
        self.magnitudes = facts.flag("use_dora")
        self.biased = facts.flag("lora_bias")
        self.bias = facts.word("bias", "none")
        self.has_tokens = facts.has("trainable_token_indices")
        self._layers = self._indices()
        pattern = facts.raw("layers_pattern")
        stated = (pattern,) if isinstance(pattern, str) and pattern else None
        self._within = stated or (facts.words("layers_pattern") if pattern else ()) or ()
        ranks = facts.raw("rank_pattern")
        if ranks is None:
            ranks = dict[str, object]()
        if not is_mapping(ranks) or len(ranks) > _MOST_PATTERNS:
            wanted = tr("an object of at most {most_patterns} patterns is needed").format(
                most_patterns=_MOST_PATTERNS
            )
            raise facts.bad("rank_pattern", ranks, wanted)
        self._ranks = [
            (self._compiled("rank_pattern", rf"(.*\.)?({key})"), facts.checked("r", value, 1))
            for key, value in ranks.items()
        ]

    def _names(self, key: str) -> _Wanted:
        value = self._facts.raw(key)
        if isinstance(value, str) and value.lower() == _ALL:
            return frozenset({_ALL})
        if isinstance(value, str):
            return self._compiled(key, value)
        words = self._facts.words(key) or ()
        return frozenset((*words, *filter(None, map(_from_layer, words))))

    def _compiled(self, key: str, pattern: str) -> re.Pattern[str]:
        is_short = len(pattern) <= _LONGEST_PATTERN and not _REPEATED.search(pattern)
        if is_short and len(_ENDLESS.findall(pattern)) <= _MOST_ENDLESS:
            try:
                return re.compile(pattern)
            except (re.error, OverflowError, RecursionError):
                pass
        raise self._facts.bad(key, pattern, tr("a pattern that can be used is needed"))

    def _indices(self) -> frozenset[int] | None:
        value = self._facts.raw("layers_to_transform")
        if value is None or value == []:
            return None
        if isinstance(value, int):
            return frozenset({self._facts.checked("layers_to_transform", value, 0)})
        return frozenset(self._facts.integers("layers_to_transform") or ())

    @property
    def is_all(self) -> bool:
        """Whether every linear layer but the head is adapted."""
        return self.targets == {_ALL}

    def takes(self, module: _Module) -> bool:
        """Whether the adapter adapts ``module``."""
        if any(_names(self._excluded, path) for path in module.paths):
            return False
        if any(f".{name}." in f".{path}." for name in self.saved for path in module.paths):
            return False
        if self.is_all:
            tables = (ModuleClass.EMBEDDING, ModuleClass.LM_HEAD)
            return module.linear and module.module not in tables
        if any(_names(self.parameters, f"{path}.weight") for path in module.paths):
            return True
        # ``0.fc1`` is in an MLP here, and in the layer itself in some classes.
        alone = f"{module.layer}.{module.path.rpartition('.')[2]}"
        if not any(_names(self.targets, path) for path in (*module.paths, alone)):
            return False
        return isinstance(self.targets, re.Pattern) or self.in_layer(module.path, module.layer)

    def in_layer(self, path: str, layer: int | None) -> bool:
        """Whether the layer is one that is adapted at all."""
        if self._layers is None:
            return True
        inside = not self._within or any(f".{name}.{layer}." in path for name in self._within)
        return layer in self._layers and inside

    def rank_of(self, paths: tuple[str, ...]) -> int:
        """Rank of the pair on the module that has these ``paths``."""
        for pattern, rank in self._ranks:
            if any(pattern.fullmatch(path) for path in paths):
                return rank
        return self.rank


def _from_layer(path: str) -> str:
    """What a whole path says from its layer on: releases differ in where the layers lie.

    Empty for a path without a number, and for one beside the text model.
    """
    number = _NUMBER.search(path)
    if number is None or named(pattern_of(path)).module in _BESIDE:
        return ""
    return path[number.start(1) :]


def _names(wanted: _Wanted, path: str) -> bool:
    """Whether ``path``, or what it ends in, is one of the names."""
    if isinstance(wanted, re.Pattern):
        return bool(wanted.fullmatch(path))
    parts = path.split(".")
    return any(".".join(parts[start:]) in wanted for start in range(len(parts)))


def _paths(spec: ArchitectureSpec) -> tuple[str, ...]:
    """Where the layers lie: the path of their list, and those that other releases have."""
    table = next((t.name for t in spec.outer if t.module is ModuleClass.EMBEDDING), "")
    above = table.removesuffix(".weight").rpartition(".")[0]
    own = f"{above}.{_HOLDS.get(above, 'layers')}".lstrip(".")
    if spec.root_type in ("", spec.model_type):
        return (own,)
    return ("model.language_model.layers", "language_model.model.layers", own)


def _modules(spec: ArchitectureSpec) -> Iterator[_Module]:
    """Every module with a matrix, those that one name stands for joined (``c_attn``)."""
    homes = _paths(spec)
    for index, layer in enumerate(spec.layers):
        yield from _joined(layer.tensors, tuple(f"{home}.{index}." for home in homes), index)
    yield from _joined(spec.outer, ("",), None)
    if spec.tie_word_embeddings:
        shape = (spec.vocab_size, spec.hidden_size)
        yield _Module("lm_head", (), ModuleClass.LM_HEAD, shape)


def _merged(tensors: tuple[Tensor, ...]) -> list[Tensor]:
    """``tensors`` with those of one name as one: query, key and value in ``c_attn``."""
    found: dict[str, Tensor] = {}
    for tensor in tensors:
        before = found.get(tensor.name)
        if before is not None:
            rows = before.shape[0] + tensor.shape[0]
            tensor = replace(before, shape=(rows, *tensor.shape[1:]))  # noqa: PLW2901
        found[tensor.name] = tensor
    return list(found.values())


def _joined(
    tensors: tuple[Tensor, ...], homes: tuple[str, ...], layer: int | None
) -> Iterator[_Module]:
    merged = _merged(tensors)
    biases = {t.name.removesuffix(".bias"): t.parameters for t in merged}
    for tensor in merged:
        path, _, last = tensor.name.rpartition(".")
        is_table = tensor.module is ModuleClass.EMBEDDING and len(tensor.shape) == 2
        is_own = last == "weight" and tensor.module is not ModuleClass.EXPERTS
        if is_own and (tensor.linear or is_table):
            paths = tuple(home + path for home in homes)
            yield _Module(
                paths[0], paths[1:], tensor.module, tensor.shape, biases.get(path, 0),
                tensor.copies, tensor.linear, layer,
            )  # fmt: skip


def _add_pair(found: _Found, module: _Module, rule: _Rule, own: str) -> None:
    rank = rule.rank_of(module.paths)
    rows, columns = module.shape[0], module.shape[1]
    name = pattern_of(module.path)
    if not module.linear:
        found[f"{name}.lora_embedding_A", (rank, rows), "fp32"] += module.copies
        found[f"{name}.lora_embedding_B", (columns, rank), "fp32"] += module.copies
        rows = columns
    else:
        found[f"{name}.lora_A.weight", (rank, columns), "fp32"] += module.copies
        found[f"{name}.lora_B.weight", (rows, rank), "fp32"] += module.copies
        if rule.biased:
            found[f"{name}.lora_B.bias", (rows,), "fp32"] += module.copies
    if rule.magnitudes:
        found[f"{name}.lora_magnitude_vector", (rows,), "fp32"] += module.copies
    if _is_stored_whole(module, rule):
        found[f"{name}.base_layer.weight", module.shape, own] += 1


def _is_stored_whole(module: _Module, rule: _Rule) -> bool:
    """Whether the base's own table is stored too, since a target is a table by its name."""
    if rule.has_tokens or module.layer is not None:
        return False
    if isinstance(rule.targets, re.Pattern):
        return module.path.rpartition(".")[2] in _TABLES
    tables = (ModuleClass.EMBEDDING, ModuleClass.LM_HEAD)
    return module.module in tables and any(name in rule.targets for name in _TABLES)


def _add_experts(found: _Found, spec: ArchitectureSpec, rule: _Rule, doubts: list[Doubt]) -> None:
    """Pairs of stacked experts: one of rank r · experts for each of their two tensors."""
    home = _paths(spec)[0]
    in_doubt = False
    for index, layer in enumerate(spec.layers):
        for by_row in (False, True):
            sharding = Sharding.EXPERT_ROW if by_row else Sharding.EXPERT_COLUMN
            parts = [
                t for t in layer.tensors
                if t.module is ModuleClass.EXPERTS and t.linear and t.sharding is sharding
            ]  # fmt: skip
            if not parts:
                continue
            container = f"{home}.{index}.{parts[0].name.partition('.*')[0]}"
            container = container.removesuffix(".gate_up_proj").removesuffix(".down_proj")
            stacked = f"{container}.{'down_proj' if by_row else 'gate_up_proj'}"
            one = [f"{home}.{index}.{t.name.removesuffix('.weight')}" for t in parts]
            rank = 0
            if _names(rule.parameters, stacked):
                rank = rule.rank_of((stacked,))
            elif (rule.is_all or any(_names(rule.targets, path) for path in one)) and (
                rule.in_layer(f"{container}.", index)
            ):
                # PEFT takes what was written for single experts with twice the rank for the two
                # matrices that are now one.
                rank, in_doubt = rule.rank * (1 if by_row else 2), True
            if rank:
                rank *= parts[0].copies
                rows, columns = sum(t.shape[0] for t in parts), parts[0].shape[1]
                name = pattern_of(stacked)
                found[f"{name}.lora_A.weight", (rank, columns), "fp32"] += 1
                found[f"{name}.lora_B.weight", (rows, rank), "fp32"] += 1
    if in_doubt:
        reason = tr(
            "the adapter names modules of experts, which transformers "
            "stacks from 5.0 on: counted as PEFT adapts the stacks, and "
            "less where each expert was adapted on its own"
        )
        doubts.append(Doubt(Subject.WEIGHTS, reason, Direction.UPPER))


def _placed(spec: ArchitectureSpec) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the base with its path."""
    home = _paths(spec)[0]
    for index, layer in enumerate(spec.layers):
        for tensor in _merged(layer.tensors):
            yield f"{home}.{index}.{tensor.name}", tensor
    for tensor in spec.outer:
        yield tensor.name, tensor
    if spec.tie_word_embeddings:
        # The head that is the embedding has a name of its own, under which it can be copied.
        shape = (spec.vocab_size, spec.hidden_size)
        yield "lm_head.weight", Tensor("lm_head.weight", ModuleClass.LM_HEAD, shape)


def _all_biases(spec: ArchitectureSpec, own: str) -> _Found:
    found: _Found = Counter()
    for path, tensor in _placed(spec):
        if "bias" in tensor.name:
            found[pattern_of(path), tensor.shape, own] += tensor.copies
    return found


def _add_copies(
    found: _Found, spec: ArchitectureSpec, rule: _Rule, own: str, doubts: list[Doubt]
) -> None:
    """Whole copies of the modules that are trained as they are."""
    missing = set(rule.saved)
    for path, tensor in _placed(spec):
        parts = path.split(".")
        above = [".".join(parts[:end]) for end in range(1, len(parts))]
        hit = {name for name in rule.saved if any(place.endswith(name) for place in above)}
        missing -= hit
        if hit:
            found[pattern_of(path), tensor.shape, own] += tensor.copies
    if missing:
        named = ", ".join(sorted(name[:60] for name in missing))
        reason = tr(
            "{named} of the adapter's modules_to_save is not in its base and is not counted"
        ).format(named=named)
        doubts.append(Doubt(Subject.WEIGHTS, reason, Direction.LOWER))


def _add_tokens(found: _Found, spec: ArchitectureSpec, facts: Facts) -> None:
    """New rows for single tokens: of the embeddings, or of the tables named."""
    stated = facts.raw("trainable_token_indices")
    if not stated:
        return
    tables = stated if is_mapping(stated) else {"embed_tokens": stated}
    for name, tokens in tables.items():
        if not isinstance(tokens, list):
            raise facts.bad("trainable_token_indices", tokens, tr("a list of tokens is needed"))
        count = len(cast("list[object]", tokens))
        shape = (count, spec.hidden_size)
        paths = [t.name.removesuffix(".weight") for t in spec.outer]
        path = next((path for path in paths if path.endswith(name)), name[:60])
        found[f"{path}.token_adapter.trainable_tokens_delta", shape, "fp32"] += 1
