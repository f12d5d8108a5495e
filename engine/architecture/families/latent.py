"""Multi-head latent attention: keys and values of all heads come from one vector a token.

Source:
    transformers 5.24.0, ``deepseek_v3/modeling_deepseek_v3.py`` and its descendants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.families.base import matrix, norm
from engine.architecture.spec import AttentionKind, AttentionSpec, ModuleClass, Sharding

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE = Sharding.REPLICATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Sizes of a latent attention block, widths in elements."""

    hidden: int
    heads: int
    q_rank: int
    """Rank of the query's projection; 0 where it is one matrix."""
    kv_rank: int
    nope: int
    rope: int
    """Width of the key's rotated part, which all heads share."""
    v_width: int
    bias: bool = False

    @property
    def width(self) -> int:
        """Width of a head's query and key."""
        return self.nope + self.rope

    def query(self, path: str) -> list[Tensor]:
        """The query's projection."""
        rows = self.heads * self.width
        if not self.q_rank:
            return matrix(path + "q_proj", _A, (rows, self.hidden), Sharding.COLUMN)
        return [
            *self.query_latent(path),
            *matrix(path + "q_b_proj", _A, (rows, self.q_rank), Sharding.COLUMN),
        ]

    def query_latent(self, path: str) -> list[Tensor]:
        """What makes the query's own latent vector."""
        shape = (self.q_rank, self.hidden)
        return [
            *matrix(path + "q_a_proj", _A, shape, _WHOLE, bias=self.bias),
            *norm(path + "q_a_layernorm", self.q_rank),
        ]

    def latent(self, path: str) -> list[Tensor]:
        """What makes the vector that is kept."""
        shape = (self.kv_rank + self.rope, self.hidden)
        return [
            *matrix(path + "kv_a_proj_with_mqa", _A, shape, _WHOLE, bias=self.bias),
            *norm(path + "kv_a_layernorm", self.kv_rank),
        ]

    def unfold(self, path: str) -> list[Tensor]:
        """Keys and values from that vector, and the output."""
        rows = self.heads * (self.nope + self.v_width)
        shape = (self.hidden, self.heads * self.v_width)
        return [
            *matrix(path + "kv_b_proj", _A, (rows, self.kv_rank), Sharding.COLUMN),
            *matrix(path + "o_proj", _A, shape, Sharding.ROW, bias=self.bias),
        ]

    def tensors(self, path: str) -> list[Tensor]:
        """The whole block under ``path``."""
        return [*self.query(path), *self.latent(path), *self.unfold(path)]

    def spec(self, window: int = 0) -> AttentionSpec:
        """What the block keeps: one vector of kv_rank + rope a token."""
        return AttentionSpec(
            AttentionKind.LATENT, self.heads, self.heads, self.width, self.v_width, window,
            q_lora_rank=self.q_rank, kv_lora_rank=self.kv_rank, qk_nope_head_dim=self.nope,
            qk_rope_head_dim=self.rope,
        )  # fmt: skip


def latent_of(facts: Facts, *, bias: bool) -> Latent:
    """The block as the usual keys describe it.

    Raises:
        ConfigError: a width is missing or absurd.
    """
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    facts.settle("num_key_value_heads", "head_dim", "q_head_dim")
    return Latent(
        hidden=hidden,
        heads=heads,
        q_rank=facts.count("q_lora_rank"),
        kv_rank=facts.integer("kv_lora_rank"),
        nope=facts.integer("qk_nope_head_dim"),
        rope=facts.integer("qk_rope_head_dim", low=0),
        v_width=facts.integer("v_head_dim", max(hidden // heads, 1)),
        bias=bias,
    )
