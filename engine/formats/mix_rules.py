"""Which type a mix gives to a tensor: the rules of llama.cpp's quantiser, category by category.

Source: ``llama-quant.cpp`` (b11434 and October 2026), ``llama_tensor_get_type_impl``, without an
importance matrix. Some rules count the tensors of a kind seen so far, so tensors come in file
order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.formats.gguf import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OUTSIDE = -1
"""Block number of tensors outside the blocks."""


class Unassigned(NamedTuple):
    """A tensor before its type is chosen."""

    block: int
    """``OUTSIDE`` for none."""
    name: str
    """Without the block's prefix."""
    shape: tuple[int, ...]
    """In ggml order."""


_LOW = frozenset({"IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ2_S", "IQ2_M", "IQ1_M"})
_CATEGORIES = (
    ("attn_qkv.weight", "v"),
    ("attn_kv_b.weight", "v"),
    ("attn_v.weight", "v"),
    ("attn_k.weight", "k"),
    ("attn_q.weight", "q"),
    ("attn_output.weight", "o"),
    ("ffn_up", "up"),
    ("ffn_gate", "gate"),
    ("ffn_down", "down"),
)
_EMBEDDING_TYPES = {
    "IQ2_XXS": "Q2_K",
    "IQ2_XS": "Q2_K",
    "IQ1_S": "Q2_K",
    "IQ1_M": "Q2_K",
    "IQ2_S": "IQ3_S",
    "IQ2_M": "IQ3_S",
    "IQ3_XXS": "IQ3_S",
    "TQ1_0": "Q4_K",
    "TQ2_0": "Q4_K",
    "Q2_0": "Q4_K",
}
_VALUES_WIDE_GQA = {
    "Q2_K": "Q4_K",
    "Q2_K_S": "Q4_K",
    "IQ3_XXS": "Q4_K",
    "IQ3_XS": "Q4_K",
    "IQ3_S": "Q4_K",
    "IQ4_NL": "Q5_K",
    "IQ4_XS": "Q5_K",
}
_VALUES_NARROW_GQA = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S"}
_OUT_PROJECTIONS = {
    "Q2_K": "Q3_K",
    "IQ3_XXS": "IQ3_S",
    "Q3_K_M": "Q4_K",
    "Q3_K_L": "Q5_K",
    "IQ3_M": "Q4_K",
}
_FALCON_DOWN = {
    "Q3_K_M": ("Q5_K", "Q4_K", "Q3_K"),
    "Q3_K_L": ("Q4_K", "Q4_K", "Q4_K"),
    "Q4_K_M": ("Q6_K", "Q5_K", "Q4_K"),
    "Q4_K_S": ("Q4_K", "Q4_K", "Q4_K"),
}
"""Types of Falcon's down projections: the first layers, those that get more bits, the others."""
_70B_LAYERS = {"llama": 80, "qwen2": 80, "deci": 80, "olmo": 80, "jais2": 68}
"""Architecture -> the depth by which llama.cpp knows its 70B model."""
_OUT_PROJECTIONS_8_EXPERTS = frozenset(
    {"Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ3_S"}
    | {"IQ3_M", "IQ4_XS"}
)


@dataclass(frozen=True, slots=True)
class MixFacts:
    """What the rules ask of a model."""

    architecture: str
    """GGUF name: ``llama``, ``qwen3moe`` …."""
    num_layers: int
    """Blocks in the file, prediction (NextN) blocks included."""
    num_heads: int
    num_kv_heads: int
    num_experts: int = 0

    @property
    def gqa(self) -> int:
        """Query heads per KV head."""
        return self.num_heads // self.num_kv_heads if self.num_kv_heads else 0

    @property
    def is_70b(self) -> bool:
        """llama.cpp's own test for the 70B model type; with a head a key, Llama's is a 65B."""
        if self.architecture == "llama" and self.num_heads == self.num_kv_heads:
            return False
        return self.num_layers == _70B_LAYERS.get(self.architecture)

    @property
    def is_falcon(self) -> bool:
        """Whether the rules for Falcon's fused attention hold."""
        return self.architecture == "falcon"


@lru_cache(maxsize=4096)
def _category(suffix: str) -> str:
    if suffix == "output.weight":
        return "output"
    if suffix in ("token_embd.weight", "per_layer_token_embd.weight"):
        return "embd"
    return next((category for key, category in _CATEGORIES if key in suffix), "other")


def _gets_more_bits(index: int, count: int) -> bool:
    eighth = count // 8
    return index < eighth or index >= 7 * count // 8 or (index - eighth) % 3 == 2


@dataclass(slots=True)
class Rules:
    """Chooses types in file order; some rules count the tensors of a kind seen so far."""

    mix: str
    default: str
    facts: MixFacts
    tensors: Sequence[Unassigned]
    seen: dict[str, int] = field(default_factory=dict[str, int])
    values: int = 0
    is_tied: bool = False

    def __post_init__(self) -> None:
        self.values = sum(_category(item.name) == "v" for item in self.tensors)
        self.is_tied = all(item.name != "output.weight" for item in self.tensors)

    def choose(self, item: Unassigned) -> str:
        """The type the mix wants; rows it cannot hold are the caller's to see to."""
        shape = item.shape
        category = _category(item.name)
        if category == "output" or (self.is_tied and category == "embd"):
            return self._output(shape[0])
        if self.mix == "MXFP4_MOE":
            return "MXFP4" if len(shape) > 2 and shape[2] > 1 else "Q8_0"
        if category == "embd":
            return _EMBEDDING_TYPES.get(self.mix, self.default)
        rule = self._rule(category)
        if rule is None:
            return self.default
        index = self.seen.get(category, 0)
        self.seen[category] = index + 1
        by_layer = self.facts.num_experts > 1 and category != "v" and self.mix not in _LOW
        return rule(item.block if by_layer else index)

    def _rule(self, category: str) -> Callable[[int], str] | None:
        if self.mix in _LOW:
            return {
                "v": self._low_value,
                "k": self._low_key,
                "down": self._low_down,
                "o": self._low_out,
            }.get(category)
        return {
            "v": self._value,
            "k": self._key,
            "q": self._query,
            "down": self._down,
            "o": self._out,
            "gate": self._gate_or_up,
            "up": self._gate_or_up,
        }.get(category)

    def _output(self, columns: int) -> str:
        is_wide = self.mix == "MXFP4_MOE" or self.facts.is_falcon
        if is_wide or columns % TYPES[self.default].elements:
            return "Q8_0"
        if self.mix in _LOW or self.mix == "IQ3_XXS":
            return "Q5_K"
        return self.default if self.default == "Q8_0" else "Q6_K"

    @property
    def _low_step(self) -> str:
        return "IQ3_S" if self.mix in ("IQ2_S", "IQ2_M") else "Q2_K"

    def _low_value(self, _index: int) -> str:
        wide = self.facts.gqa >= 4 or self.facts.num_experts >= 4
        return "Q4_K" if wide else self._low_step

    def _low_key(self, _index: int) -> str:
        return "Q4_K" if self.facts.num_experts == 8 else self.default

    def _low_down(self, index: int) -> str:
        return self._low_step if index < self.facts.num_layers // 8 else self.default

    def _low_out(self, _index: int) -> str:
        if self.facts.num_experts == 8:
            return "Q5_K"
        if self.mix in ("IQ1_S", "IQ1_M"):
            return "IQ2_XXS"
        return "IQ3_S" if self.mix in ("IQ2_S", "IQ2_M") else self.default

    def _value(self, index: int) -> str:
        if self.facts.num_experts == 8:
            return "Q8_0"
        chosen = self._value_by_mix(index)
        return "Q5_K" if self.facts.is_70b and chosen in ("Q3_K", "Q4_K") else chosen

    def _value_by_mix(self, index: int) -> str:
        if self.mix in ("Q4_K_M", "Q5_K_M"):
            return "Q6_K" if _gets_more_bits(index, self.values) else self.default
        positional = {
            "IQ3_M": "Q4_K",
            "Q3_K_L": "Q5_K",
            "Q3_K_M": "Q5_K" if index < 2 else "Q4_K",
            "Q4_K_S": "Q5_K" if index < 4 else self.default,
        }
        by_gqa = _VALUES_WIDE_GQA if self.facts.gqa >= 4 else _VALUES_NARROW_GQA
        return positional.get(self.mix) or by_gqa.get(self.mix, self.default)

    def _key(self, index: int) -> str:
        return "Q8_0" if self.facts.num_experts == 8 else self._query(index)

    def _query(self, _index: int) -> str:
        return {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}.get(self.mix, self.default)

    def _down(self, index: int) -> str:
        layers = self.facts.num_layers
        early = index < layers // 8
        more = _gets_more_bits(index, layers)
        if self.facts.is_falcon and self.mix in _FALCON_DOWN:
            first, some, others = _FALCON_DOWN[self.mix]
            return first if index < layers // 16 else some if more else others
        if self.mix == "IQ3_M":
            wide = early or (self.facts.num_experts == 8 and more)
            return "Q4_K" if wide else self.default
        return {
            "Q2_K": "Q3_K",
            "Q2_K_S": "Q4_K" if early else self.default,
            "IQ3_XXS": "Q4_K" if early else "Q3_K",
            "Q3_K_M": "Q5_K" if index < layers // 16 else "Q4_K",
            "Q3_K_L": "Q5_K",
            "Q4_K_M": "Q6_K" if more else self.default,
            "Q5_K_M": "Q6_K" if more else self.default,
            "IQ4_NL": "Q5_K" if early else self.default,
            "IQ4_XS": "Q5_K" if early else self.default,
            "Q4_K_S": "Q5_K" if early else self.default,
        }.get(self.mix, self.default)

    def _out(self, _index: int) -> str:
        if self.facts.is_falcon:
            return "Q4_K" if self.mix == "Q3_K_L" else self.default
        if self.facts.num_experts == 8:
            return "Q5_K" if self.mix in _OUT_PROJECTIONS_8_EXPERTS else self.default
        return _OUT_PROJECTIONS.get(self.mix, self.default)

    def _gate_or_up(self, index: int) -> str:
        layers = self.facts.num_layers
        middle = layers // 8 <= index < 7 * layers // 8
        return "IQ3_XXS" if self.mix == "IQ3_XS" and middle else self.default
