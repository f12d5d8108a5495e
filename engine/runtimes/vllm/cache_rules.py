"""How vLLM's releases keep what a sequence needs, as data keyed by version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.runtimes.vllm.rules import Since

if TYPE_CHECKING:
    from collections.abc import Mapping

LATENT_BLOCKS: Since[Mapping[int, int]] = Since(
    ((0,), {9: 64, 10: 64, 11: 64, 12: 64}),
    ((0, 33), {9: 16, 10: 32}),
)
"""Generation of a card -> tokens of a block of latents of 512, where not 16. FlashMLA takes 64; by
the source of 0.33 FlashAttention's kernel comes first on 9, FlashInfer's on 10 and Triton's on 12.
The releases between are not established; the figure only rounds."""

INDEXED_BLOCK = 64
"""The same beside an indexer's keys: its kernel takes 64 (``mla/indexer.py``)."""

SELECTED_BLOCK = 128
"""Of keys and values of heads beside an index: the size that MiniMax-M3 selects by."""

LATENTS = Since[bool](((0,), False), ((0, 7), True))
"""Whether latent vectors (MLA) are kept as they are: since 0.7.1. Before, every head had its keys
and values, padded to 256 (0.5 in the logs)."""

STATES_AS_STATED = Since[bool](((0,), False), ((0, 12), True))
"""Whether Nemotron-H's states have the dtype that its config states. 0.10 keeps them in the
model's dtype whatever is stated (block 672); 0.14 prints the config's. The release between is not
established."""

PADDED_SETS = Since[bool](((0,), True), ((0, 29), False))
"""Whether DeepSeek-V4's pages are padded to sets of equal size; since 0.29 they lie side by
side."""

PACKING_KNOWN = Since[bool](((0,), True), ((0, 23), False), ((0, 33), True))
"""Whether the packing of DeepSeek-V4's pages is established: a log of 0.22, the source of 0.33."""

PACKED_BY_DEFAULT = Since[bool](((0,), False), ((0, 11), True), ((0, 12), False))
"""Whether DeepSeek-V3.2's latents are packed in FP8 where no KV dtype is asked for, whatever the
card: in 0.11, its first release."""

PLAIN_ON_BLACKWELL = Since[bool](((0,), False), ((0, 17), True))
"""Whether the kernels of compute capability 10 keep sparse latents in plain FP8 where FP8 is asked
for. Read in the source of 0.33; the release of the change is not established."""

STATES_CACHED = Since[bool](((0,), False), ((0, 28), True))
"""Whether models with states beside attention cache prefixes where nothing is asked for
(pull request 50991, in 0.28.0); it takes a second block of state a request."""

CHECKPOINTS = Since[bool](((0,), False), ((0, 33), True))
"""Whether a cached prefix takes a third block of state, for a checkpoint inside the prompt. Read
in the source of 0.33; logs of 0.20 to 0.25 show two."""

CHECKPOINT_TOKENS = {"mamba2": 1, "gated_delta_net": 64}
"""Kind of state whose kernels write such checkpoints -> tokens that blocks are multiples of."""

CHECKPOINT_CARDS = {"gated_delta_net": (9, 10, 12)}
"""Kind of state -> generations of cards whose kernels do, where not all of them."""
