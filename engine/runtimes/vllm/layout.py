"""How vLLM's KV pool is cut: pages, groups of layers and what a request takes of them.

Source:
    vLLM 0.33 ``v1/kv_cache_interface.py`` and ``v1/core/kv_cache_utils.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from engine.units import ceil_div

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec


class Keeps(StrEnum):
    """What a layer keeps in the pool."""

    ALL = "all"
    SOURCE = "source"
    """The encoder's tokens, whatever the answer's length."""
    WINDOW = "window"
    STATE = "state"


class LayerPage(NamedTuple):
    """What vLLM calls a KV cache spec: layers of the same one share groups."""

    keeps: Keeps
    block_tokens: int
    page_bytes: int
    window: int = 0
    """Tokens of the window, or of the encoder; 0 where the encoder's are as many as the input."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers whose blocks are given out together."""

    page: LayerPage
    count: int
    """Groups of this kind."""
    size_bytes: int = 0
    """Bytes of the pages of one such group, where groups differ."""


class RequestRule(NamedTuple):
    """What, besides its length, decides how many blocks a request takes."""

    tokens_in_flight: int
    """Tokens of the steps that may be under way: ``max_num_batched_tokens`` × batches."""
    state_blocks: int = 1
    """Blocks of constant state: one, more with prefix caching or speculation."""
    context_parallel: int = 1
    encoder_tokens: int = 0
    """Tokens that an encoder may hand over in one step, which is what a request is charged;
    0 for as many as the model's encoder has."""


class PoolRule(NamedTuple):
    """All that the layout of the pool depends on, besides the model."""

    kv_dtype: str
    tensor_parallel_size: int = 1
    block_size: int = 16
    hybrid_groups: bool = True
    group_slack: float = 1.5
    speculative_tokens: int = 0
    with_mtp: bool = False
    dtype: str = "bfloat16"
    """The model's dtype, which states have that name none."""
    keeps_latents: bool = True
    """Whether latent vectors are kept as they are; else as the keys and values of every head."""
    states_as_stated: bool = True
    """Whether a config's dtype of Nemotron-H's states counts; else the model's."""
    state_tokens: int = 1
    """Tokens that a block beside states is a multiple of, for the states' sake."""
    draft: ArchitectureSpec | None = None
    """A draft model of its own, whose layers keep their caches in the same pool."""
    pads_least: bool = False
    """Whether groups beside windows are as large as pads least, as in 0.28."""
    pads_tuples: bool = False
    """Whether layers of several sizes are padded to equal sets, as until 0.28."""


class PoolLayout(NamedTuple):
    """How the pool of one rank is cut."""

    groups: tuple[Group, ...]
    bytes_per_block: int
    block_size: int
    """Tokens of a block of the first group."""
    padding_layers: int = 0
    prints_bytes: bool = False
    """Whether what vLLM prints is worked out from the bytes of groups that differ in size."""

    @property
    def num_groups(self) -> int:
        """Groups of all kinds."""
        return sum(group.count for group in self.groups)

    @property
    def least_block_tokens(self) -> int | None:
        """Tokens of the smallest block of a growing cache; None where only states are kept."""
        pages = (group.page for group in self.groups)
        return min((p.block_tokens for p in pages if p.keeps is not Keeps.STATE), default=None)

    @property
    def has_state(self) -> bool:
        """Whether some blocks hold constant state."""
        return any(group.page.keeps is Keeps.STATE for group in self.groups)

    def blocks_per_request(self, tokens: int, request: RequestRule) -> int:
        """Blocks that one request of ``tokens`` may hold at once."""
        return sum(g.count * _blocks(g.page, tokens, request) for g in self.groups)

    def printed_blocks(self, tokens: int, request: RequestRule) -> int:
        """The same as vLLM's line of the greatest concurrency has it.

        Until 0.28 that line divides the bytes of all groups' pages by those of the first group,
        though every block is as large as the largest group.
        """
        if not self.prints_bytes:
            return self.blocks_per_request(tokens, request)
        size = sum(g.count * g.size_bytes * _blocks(g.page, tokens, request) for g in self.groups)
        return ceil_div(size, self.groups[0].size_bytes)


def _blocks(page: LayerPage, tokens: int, request: RequestRule) -> int:
    if page.keeps is Keeps.STATE:
        return request.state_blocks
    if page.keeps is Keeps.WINDOW:
        held = min(page.window - 1 + request.tokens_in_flight, tokens)
        return ceil_div(held, page.block_tokens) + 1
    if page.keeps is Keeps.SOURCE:
        return ceil_div(request.encoder_tokens or page.window or tokens, page.block_tokens)
    return ceil_div(ceil_div(tokens, request.context_parallel), page.block_tokens)
