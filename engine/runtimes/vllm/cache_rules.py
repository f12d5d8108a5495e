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

CHECKPOINTS: Since[Mapping[str, int]] = Since(
    ((0,), {}),
    ((0, 32), {"mamba2": 1}),
    ((0, 33), {"mamba2": 1, "gated_delta_net": 64}),
)
"""Kind of state of which a cached prefix takes a third block, for a checkpoint inside the prompt
-> tokens that blocks are then multiples of (``mamba_mixer2.py``, ``qwen_gdn_linear_attn.py``)."""

CHECKPOINT_CARDS = {"gated_delta_net": (9, 10, 12)}
"""Kind of state -> generations of cards whose kernels do, where not all of them."""

HYBRID_GROUPS = Since[bool](((0,), False), ((0, 9, 1), True))
"""Whether sliding layers get groups of their own; before, they were charged in full."""

GROUP_SLACK = Since[float](((0,), 0), ((0, 12), 1.25), ((0, 18), 1.5))
"""Groups are as large as the largest bucket when that is under this many times the smallest;
until 0.11 always as large as the smallest."""

PADS_LEAST = Since[bool](((0,), False), ((0, 28), True), ((0, 29), False))
"""Whether groups are as large as pads least where some layers have windows: in 0.28 alone, whose
pool for Qwen3.8 and its block draft has 408 blocks of 8 layers where that of 0.29 has 653 of 5. It
was read of no other model."""

TOKENS_BY_CONCURRENCY = Since[bool](((0,), False), ((0, 20, 1), True))
"""Whether the token line is concurrency × length; before, blocks // groups × block size."""

CONCURRENCY_BY_BLOCKS = Since[bool](((0,), False), ((0, 9, 1), True))
"""Whether concurrency is blocks over a request's whole blocks; before, tokens over its length."""

STEPS_IN_FLIGHT = Since[str](((0,), "one"), ((0, 26), "runner 1"), ((0, 29), "runner 2"))
"""Steps whose tokens a sliding layer must hold at once (``VllmConfig.max_concurrent_batches``).
Until 0.25 one. Since, asynchronous scheduling keeps two on one stage; a pipeline keeps as many as
it has stages under model runner 1, and one more under model runner 2, the default since 0.29."""

NULL_BLOCK_KEPT = Since[bool](((0,), False), ((0, 29), True))
"""Whether the start-up check leaves out the block that is never given out."""

WHOLE_MODEL_CHECK = Since[bool](((0,), False), ((0, 14), True), ((0, 17), False))
"""Whether the start-up check holds what all layers need against the pool of the poorest stage
(``get_kv_cache_configs``; issue 34076). 0.17 projects the groups to every stage first."""

STATES_BOUND_ROWS = Since[bool](((0,), False), ((0, 20), True))
"""Whether a start with CUDA graphs is refused where ``max_num_seqs`` is more than the blocks of a
model with states (``config/compilation.py``); 0.18 and 0.19 captured fewer sizes."""

AUTO_LENGTH = (0, 14)
"""The first version that takes ``max_model_len`` -1."""

POOL_IN_BYTES = (0, 10, 2)
"""The first version that takes ``kv_cache_memory_bytes``."""
