"""Feed-forward blocks: the dense MLP and the mixture of experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import Fed, matrix
from engine.architecture.spec import ModuleClass, MoeSpec, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import Family, Moe
    from engine.config.facts import Facts


def dense(facts: Facts, family: Family, kind: str) -> Fed:
    """A dense MLP: gate, up and down, or up and down."""
    del kind
    width = family.width(facts) if family.width else facts.integer("intermediate_size")
    return Fed(mlp_tensors(facts, family, width), width)


def mlp_tensors(
    facts: Facts,
    family: Family,
    width: int,
    path: str = "",
    module: ModuleClass = ModuleClass.MLP,
) -> list[Tensor]:
    """The tensors of an MLP of ``width`` under ``path`` (the family's own where empty)."""
    hidden = facts.integer("hidden_size")
    names = family.names
    path = path or names.mlp
    path = f"{path}." if path else ""
    bias = facts.says(family.mlp_bias)
    column = Sharding.COLUMN
    if not facts.says(family.gated):
        tensors = matrix(path + names.up, module, (width, hidden), column, bias=bias)
    elif family.gate_up_fused:
        tensors = matrix(path + names.gate, module, (2 * width, hidden), column, bias=bias)
    else:
        tensors = [
            *matrix(path + names.gate, module, (width, hidden), column, bias=bias),
            *matrix(path + names.up, module, (width, hidden), column, bias=bias),
        ]
    return tensors + matrix(path + names.down, module, (hidden, width), Sharding.ROW, bias=bias)


def sparse(facts: Facts, family: Family, kind: str) -> Fed:
    """A mixture of experts with its router and, where it has one, the shared expert."""
    del kind
    moe = family.moe
    assert moe is not None  # noqa: S101 - a family with sparse layers says how they are built
    hidden = facts.integer("hidden_size")
    experts = moe.count_rule(facts) if moe.count_rule else facts.integer(moe.experts)
    per_token = _active(facts, moe.active)
    if per_token > experts:
        raise facts.bad(
            moe.active, per_token, tr("there are only {experts} experts").format(experts=experts)
        )
    width = moe.width_rule(facts) if moe.width_rule else facts.integer(moe.width)
    router_bias = facts.says(moe.router_bias)
    tensors = matrix(
        moe.router, ModuleClass.ROUTER, (experts, hidden), Sharding.REPLICATED, bias=router_bias
    )
    tensors += expert_tensors(facts, moe, family, (experts, hidden, width))
    shared = moe.shared_width(facts) if moe.shared_width else 0
    block = ModuleClass.SHARED_EXPERTS
    if shared:
        tensors += mlp_tensors(facts, family, shared, moe.shared, block)
    if moe.shared_gate:
        tensors += matrix(moe.shared_gate, block, (1, hidden), Sharding.REPLICATED)
    if moe.further:
        tensors += moe.further(facts, family)
    return Fed(tensors, 0, MoeSpec(experts, per_token, width, shared))


def _active(facts: Facts, key: str) -> int:
    """Experts of one token; the most of them where each layer has a number of its own."""
    if not key or not isinstance(facts.raw(key), list):
        return facts.integer(key, 1) if key else 1
    return max(facts.integers(key, low=1) or (1,))


def expert_tensors(
    facts: Facts, moe: Moe, family: Family, sizes: tuple[int, int, int]
) -> list[Tensor]:
    """The routed experts: ``sizes`` is (experts, hidden, width). The expert axis is ``copies``."""
    experts, hidden, width = sizes
    module = ModuleClass.EXPERTS
    column, row = Sharding.EXPERT_COLUMN, Sharding.EXPERT_ROW
    if moe.fused:
        gate_up = f"{moe.container}.gate_up_proj"
        down = f"{moe.container}.down_proj"
        rows = 2 * width if moe.gated else width
        tensors = [
            Tensor(gate_up, module, (rows, hidden), experts, column, linear=True),
            Tensor(down, module, (hidden, width), experts, row, linear=True),
        ]
        if facts.says(moe.expert_bias):
            tensors.append(Tensor(f"{gate_up}_bias", module, (rows,), experts, column))
            tensors.append(Tensor(f"{down}_bias", module, (hidden,), experts, column))
        return tensors
    names = family.names
    bias = facts.says(moe.expert_bias)
    path = f"{moe.container}.*."
    gate, up, down = moe.names or (names.gate, names.up, names.down)
    inner = (gate, up) if moe.gated else (up,)
    tensors: list[Tensor] = []
    for name in inner:
        shape = (width, hidden)
        tensors += matrix(path + name, module, shape, column, bias=bias, copies=experts)
    return tensors + matrix(path + down, module, (hidden, width), row, bias=bias, copies=experts)
