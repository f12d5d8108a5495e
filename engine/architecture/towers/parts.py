"""Building blocks of vision and audio towers: repeated layers are one tensor with copies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_LARGEST = 2**20
"""Highest plausible ratio."""


@dataclass(slots=True)
class Tower:
    """Collects the tensors of a tower or projector under one path."""

    path: str
    module: ModuleClass = ModuleClass.VISION
    tensors: list[Tensor] = field(default_factory=list[Tensor])

    def weight(self, name: str, *shape: int, copies: int = 1) -> None:
        """A parameter that is no linear layer's."""
        self.tensors.append(Tensor(self.path + name, self.module, shape, copies))

    def linear(
        self,
        name: str,
        rows: int,
        columns: int,
        *,
        bias: bool = True,
        copies: int = 1,
        sharding: Sharding = Sharding.COLUMN,
    ) -> None:
        """A linear layer in each of ``copies`` layers."""
        path = self.path + name
        self.tensors.append(
            Tensor(f"{path}.weight", self.module, (rows, columns), copies, sharding, linear=True)
        )
        if bias:
            own = sharding if sharding is Sharding.COLUMN else Sharding.REPLICATED
            self.tensors.append(Tensor(f"{path}.bias", self.module, (rows,), copies, own))

    def add(self, other: Tower, times: int = 1) -> None:
        """The tensors of another part, ``times`` over."""
        self.tensors += [replace(tensor, copies=tensor.copies * times) for tensor in other.tensors]

    def norm(self, name: str, width: int, *, bias: bool = True, copies: int = 1) -> None:
        """A layer norm (with bias) or RMS norm (without)."""
        self.weight(f"{name}.weight", width, copies=copies)
        if bias:
            self.weight(f"{name}.bias", width, copies=copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """How the layers of a transformer encoder are built. The defaults are SigLIP's and CLIP's."""

    gated: bool = False
    qkv_bias: bool = True
    q_bias: bool = True
    k_bias: bool = True
    v_bias: bool = True
    o_bias: bool = True
    mlp_bias: bool = True
    norm_bias: bool = True
    qk_norm: bool = False
    norms: int = 2
    scales: int = 0
    """Learned vectors of layer scale."""

    def add(self, tower: Tower, layers: int, hidden: int, mlp: int, heads: tuple[int, int]) -> None:
        """Add ``layers`` layers; ``heads`` is the total width of the query and of key and value."""
        q, kv = heads
        path = "layers.*."
        row = Sharding.ROW
        bias = self.qkv_bias
        tower.linear(path + "self_attn.q_proj", q, hidden, bias=bias and self.q_bias, copies=layers)
        tower.linear(
            path + "self_attn.k_proj", kv, hidden, bias=bias and self.k_bias, copies=layers
        )
        tower.linear(
            path + "self_attn.v_proj", kv, hidden, bias=bias and self.v_bias, copies=layers
        )
        o_bias = self.o_bias
        tower.linear(path + "self_attn.o_proj", hidden, q, bias=o_bias, copies=layers, sharding=row)
        if self.gated:
            tower.linear(path + "mlp.gate_proj", mlp, hidden, bias=self.mlp_bias, copies=layers)
        tower.linear(path + "mlp.fc1", mlp, hidden, bias=self.mlp_bias, copies=layers)
        tower.linear(path + "mlp.fc2", hidden, mlp, bias=self.mlp_bias, copies=layers, sharding=row)
        for index in range(self.norms):
            tower.norm(f"{path}norm{index + 1}", hidden, bias=self.norm_bias, copies=layers)
        for index in range(self.scales):
            tower.weight(f"{path}scale{index + 1}", hidden, copies=layers)


def encode(
    tower: Tower, facts: Facts, style: Encoder, *, layers: str = "num_hidden_layers", mlp: int = 0
) -> None:
    """Add the layers that ``facts`` describes under the usual keys."""
    hidden = facts.integer("hidden_size")
    width = mlp or facts.integer("intermediate_size")
    style.add(tower, facts.integer(layers), hidden, width, (hidden, hidden))


def pair(facts: Facts, key: str) -> tuple[int, int]:
    """Height and width that ``key`` gives, as one number or as two.

    Raises:
        ConfigError: it is missing, or neither.
    """
    if not isinstance(facts.raw(key), list | tuple):
        return facts.integer(key), facts.integer(key)
    sides = facts.integers(key, 1)
    if sides is None or len(sides) not in (1, 2):
        raise facts.bad(key, sides, tr("a height and a width are needed"))
    return sides[0], sides[-1]


def number(facts: Facts, key: str, default: float) -> float:
    """The number ``key``; ``default`` where it is absent or null.

    Raises:
        ConfigError: it is none, or not above 0.
    """
    value = facts.raw(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST:
        raise facts.bad(key, value, tr("a number above 0 is needed"))
    return value


def patches(facts: Facts, *, frames: int = 1) -> int:
    """Values of one patch: channels x patch height x patch width (x frames)."""
    channels = facts.integer("num_channels", facts.integer("in_channels", 3))
    height, width = pair(facts, "patch_size")
    return channels * height * width * frames


def grid(facts: Facts) -> int:
    """Patches of a full image."""
    high, wide = pair(facts, "image_size")
    height, width = pair(facts, "patch_size")
    return (high // height) * (wide // width)


PLAIN = Encoder()
"""Layer norms and biases everywhere, plain MLP: SigLIP, CLIP and most others."""


def vision_of(root: Facts) -> Facts:
    """The vision config, with its class's defaults where the model states nothing.

    Raises:
        ConfigError: it is no object.
    """
    found = root.sub("vision_config")
    return found if found is not None else root.empty("vision_config")


_HALVED = frozenset({"donut-swin", "swin", "swinv2"})
"""Encoders in stages that double the width, of which the config states the first."""


def width_of(vision: Facts) -> int:
    """Width of what the encoder that ``vision`` describes yields."""
    if vision.model_type not in _HALVED:
        return vision.integer("hidden_size")
    vision.settle("hidden_size")
    return vision.integer("embed_dim") << max(len(vision.integers("depths") or ()) - 1, 0)
