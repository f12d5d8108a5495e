"""Which layer is of which kind, where the config has no ``layer_types``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import CHUNKED, DENSE, FULL, SLIDING, SPARSE
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import PatternRule
    from engine.config.facts import Facts


def all_full(_facts: Facts, layers: int) -> tuple[str, ...]:
    """Every layer attends to everything."""
    return (FULL,) * layers


def windowed_if_stated(facts: Facts, layers: int) -> tuple[str, ...]:
    """Every layer has the window when the config has one (Mistral-7B-v0.1, Phi-3, Mixtral)."""
    window = facts.count("sliding_window")
    return (SLIDING if window else FULL,) * layers


def full_unless_stated(facts: Facts, layers: int) -> tuple[str, ...]:
    """Every layer is full, whatever window the config has: only ``layer_types`` makes one slide."""
    facts.settle("sliding_window")
    return (FULL,) * layers


def windowed_if_used(facts: Facts, layers: int) -> tuple[str, ...]:
    """Qwen3-MoE: ``use_sliding_window`` holds for every layer."""
    facts.settle("max_window_layers")
    if facts.flag("use_sliding_window"):
        return windowed_if_stated(facts, layers)
    return full_unless_stated(facts, layers)


def from_max_window_layers(facts: Facts, layers: int) -> tuple[str, ...]:
    """dots1: layers from ``max_window_layers`` on have the window, where there is one."""
    first = facts.count("max_window_layers")
    if not facts.count("sliding_window"):
        return (FULL,) * layers
    return tuple(SLIDING if i >= first else FULL for i in range(layers))


def after_max_window_layers(facts: Facts, layers: int) -> tuple[str, ...]:
    """Qwen2: layers from ``max_window_layers`` on, and only with ``use_sliding_window``."""
    kinds = from_max_window_layers(facts, layers)
    return kinds if facts.flag("use_sliding_window") else (FULL,) * layers


def every_second_below_max(facts: Facts, layers: int) -> tuple[str, ...]:
    """Qwen2-MoE: every second layer below ``max_window_layers``, with ``use_sliding_window``."""
    stop = facts.count("max_window_layers")
    slides = facts.flag("use_sliding_window") and facts.count("sliding_window")
    facts.settle("sliding_window")
    return tuple(SLIDING if slides and i < stop and i % 2 == 0 else FULL for i in range(layers))


def every(
    period: int, key: str = "", *, needs_window: bool = False, last: bool = False
) -> PatternRule:
    """Each ``period``-th layer is full (``last``: the last one too), the others slide.

    ``key`` overrides the period.
    """

    def kinds(facts: Facts, layers: int) -> tuple[str, ...]:
        step = facts.integer(key, period) if key else period
        facts.settle("sliding_window")
        if needs_window and not facts.count("sliding_window"):
            return (FULL,) * layers
        found = tuple(SLIDING if (i + 1) % step else FULL for i in range(layers))
        return (*found[:-1], FULL) if last else found

    return kinds


def full_first(period: int) -> PatternRule:
    """The first layer of every ``period`` is full, the others slide."""

    def kinds(facts: Facts, layers: int) -> tuple[str, ...]:
        facts.settle("sliding_window")
        return tuple(SLIDING if i % period else FULL for i in range(layers))

    return kinds


def full_last(period: int) -> PatternRule:
    """Each ``period``-th layer is full, counted from the last one; the others slide."""

    def kinds(facts: Facts, layers: int) -> tuple[str, ...]:
        facts.settle("sliding_window")
        return tuple(SLIDING if (layers - 1 - i) % period else FULL for i in range(layers))

    return kinds


def unroped_are_full(facts: Facts, layers: int) -> tuple[str, ...]:
    """Llama 4: layers without rotary embedding are full, the others work in chunks."""
    if not facts.count("attention_chunk_size"):
        return (FULL,) * layers
    roped = facts.integers("no_rope_layers")
    if not roped:
        step = facts.integer("no_rope_layer_interval", 4)
        roped = tuple(int((i + 1) % step != 0) for i in range(layers))
    if len(roped) != layers:
        raise facts.bad(
            "no_rope_layers",
            roped,
            tr("one entry for each of the {layers} is needed").format(layers=layers),
        )
    return tuple(CHUNKED if has_rope else FULL for has_rope in roped)


def all_dense(_facts: Facts, layers: int) -> tuple[str, ...]:
    """No layer is a mixture of experts."""
    return (DENSE,) * layers


def all_sparse(_facts: Facts, layers: int) -> tuple[str, ...]:
    """Every layer is a mixture of experts."""
    return (SPARSE,) * layers


def dense_first(key: str, absent: int = 0) -> PatternRule:
    """The first ``key`` layers are dense, ``absent`` where neither config nor class says.

    ``mlp_layer_types`` wins where it is stated.
    """

    def kinds(facts: Facts, layers: int) -> tuple[str, ...]:
        stated = stated_feeds(facts, layers)
        if stated:
            return stated
        first = min(facts.integer(key, absent, 0), layers)
        return (DENSE,) * first + (SPARSE,) * (layers - first)

    return kinds


def stated_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    """``mlp_layer_types`` where the config has it, else nothing.

    Raises:
        ConfigError: it has another length or an unknown kind.
    """
    stated = facts.words("mlp_layer_types")
    if not stated:
        return ()
    if len(stated) != layers or not set(stated) <= {DENSE, SPARSE}:
        wanted = tr("'dense' or 'sparse' for each of the {layers} layers is needed").format(
            layers=layers
        )
        raise facts.bad("mlp_layer_types", stated, wanted)
    return stated


def dense_then(absent: int) -> PatternRule:
    """DeepSeek: dense before ``first_k_dense_replace``, then sparse by ``moe_layer_freq``.

    The latter is a period, or a list of 0 (dense) and 1 (sparse). ``absent`` layers are dense
    where neither config nor class says. All are where ``n_routed_experts`` is null; 0 of them
    leave a sparse layer nothing to choose from, which is refused where it is built.
    """

    def kinds(facts: Facts, layers: int) -> tuple[str, ...]:
        stated = stated_feeds(facts, layers)
        if stated:
            facts.settle("first_k_dense_replace", "moe_layer_freq")
            return stated
        if not facts.has("n_routed_experts"):
            return (DENSE,) * layers
        first = facts.integer("first_k_dense_replace", absent, 0)
        sparse = _by_frequency(facts, layers)
        return tuple(SPARSE if i >= first and sparse[i] else DENSE for i in range(layers))

    return kinds


def _by_frequency(facts: Facts, layers: int) -> tuple[bool, ...]:
    key = "moe_layer_freq"
    if not isinstance(facts.raw(key), list):
        step = facts.integer(key, 1)
        return tuple(i % step == 0 for i in range(layers))
    entries = facts.integers(key) or ()
    if len(entries) < layers:
        raise facts.bad(
            key,
            entries,
            tr("one entry for each of the {layers} layers is needed").format(layers=layers),
        )
    return tuple(bool(entry) for entry in entries)


deepseek = dense_then(0)


def sparse_steps(facts: Facts, layers: int) -> tuple[str, ...]:
    """Qwen: every ``decoder_sparse_step``-th layer that ``mlp_only_layers`` does not name."""
    stated = stated_feeds(facts, layers)
    if stated:
        return stated
    step = facts.integer("decoder_sparse_step", 1)
    dense = set(facts.integers("mlp_only_layers") or ())
    if not facts.count("num_experts"):
        return (DENSE,) * layers
    return tuple(SPARSE if i not in dense and (i + 1) % step == 0 else DENSE for i in range(layers))


def interleaved_moe(facts: Facts, layers: int) -> tuple[str, ...]:
    """Llama 4: ``moe_layers``, else every ``interleave_moe_layer_step``-th layer."""
    named = facts.integers("moe_layers")
    if named is None:
        step = facts.integer("interleave_moe_layer_step", 1)
        named = tuple(range(step - 1, layers, step))
    sparse = set(named)
    return tuple(SPARSE if i in sparse else DENSE for i in range(layers))
