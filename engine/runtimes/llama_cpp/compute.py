"""Compute buffers: the peak of one micro-batch's graph, as the graph allocator lays it out.

The inputs are exact; the phase table was fitted to measured runs (it models the peak of an
allocator that reuses what is dead), so the sums are ``fitted``. It is that of the newest builds:
older ones hold a hidden state less in every layer and free their inputs before the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.formats.gguf import TYPES
from engine.runtimes.llama_cpp.buffers import cells
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.runtimes.llama_cpp.weights import CUDA_ALIGNMENT, HOST_ALIGNMENT
from engine.units import align_up

if TYPE_CHECKING:
    from engine.runtimes.llama_cpp.settings import Settings
    from engine.runtimes.llama_cpp.shape import Moe, Shape, Ssm

_NO_POSITIONS = frozenset({"mamba2", "nemotron_h"})
_SCALE_INPUT = frozenset({"gemma3", "gemma4", "llama4"})
_FOUR_POSITIONS = ("qwen35", "qwen3vl", "qwen2vl")
_PARALLEL_BLOCKS = frozenset({"command-r", "cohere2"})
"""Attention and feed-forward run side by side."""
_OUTPUT_GATE = ("qwen3next", "qwen35")
_LEAST_ROTATION = 64


@dataclass(frozen=True, slots=True)
class Graph:
    """One micro-batch of one model under one set of settings. Widths in bytes unless named."""

    shape: Shape
    settings: Settings

    @property
    def unit(self) -> int:
        """The hidden state of the micro-batch in f32 (``u`` in the phase table)."""
        return 4 * self.settings.tokens * self.shape.n_embd

    @property
    def _mask_element(self) -> int:
        return 2 if self.settings.flash and not self.settings.build.casts_mask else 4

    @property
    def _alive(self) -> int:
        """The hidden states that are alive in every phase of a layer."""
        return self.settings.build.layer_units * self.unit

    def mask(self, kind: CacheKind) -> int:
        """Attention mask of one cache, as it is handed over."""
        if self.shape.widths(kind) is None:
            return 0
        return cells(self.shape, self.settings, kind) * self.settings.tokens * self._mask_element

    def cast_masks(self) -> int:
        """Masks that the device makes of those in f32, for flash attention."""
        if not self.settings.flash or not self.settings.build.casts_mask:
            return 0
        return (self.mask(CacheKind.FULL) + self.mask(CacheKind.SLIDING)) // 2

    def token_ids(self) -> int:
        """Token ids: stay on the host."""
        return (8 if self.settings.build.scatters_rows else 4) * self.settings.tokens

    def per_layer_inputs(self) -> int:
        """Per-layer embeddings of the micro-batch (Gemma 3n, Gemma 4 E models)."""
        width = self.shape.per_layer_embedding * self.shape.num_layers
        return 4 * self.settings.tokens * width

    def inputs(self, alignment: int = HOST_ALIGNMENT) -> int:
        """Graph inputs that a device needs a copy of."""
        shape, tokens = self.shape, self.settings.tokens
        size = sum(self._cache_inputs(kind) for kind in (CacheKind.FULL, CacheKind.SLIDING))
        if shape.architecture not in _NO_POSITIONS:
            size += 4 * tokens * (4 if shape.architecture.startswith(_FOUR_POSITIONS) else 1)
        if shape.architecture in _SCALE_INPUT:
            size += 4 * tokens
        size += 8 * tokens if self.settings.build.scatters_rows else 0
        size += self.output_ids(alignment)
        if shape.is_hybrid:
            size += align_up(4 * self.settings.slots, alignment)
        return size

    def output_ids(self, alignment: int) -> int:
        """Which tokens of the micro-batch have logits."""
        return align_up(4 * self.settings.outputs, alignment)

    def _cache_inputs(self, kind: CacheKind) -> int:
        shape, tokens = self.shape, self.settings.tokens
        if shape.widths(kind) is None:
            return 0
        size = self.mask(kind) + self._rotation(kind)
        if not self.settings.build.scatters_rows:
            return size
        size += 8 * tokens
        if shape.mla is None:
            # V indices: one per element when V is stored transposed.
            size += 8 * tokens * (1 if self.settings.flash else shape.widest_value)
        return size

    def _rotation(self, kind: CacheKind) -> int:
        """Hadamard matrices that are inputs when the cache is quantised."""
        shape = self.shape
        head = shape.head_dim_swa if kind is CacheKind.SLIDING else shape.head_dim
        if not head or head % _LEAST_ROTATION or shape.mla is not None:
            return 0
        if not self.settings.build.rotates_cache:
            return 0
        side = _LEAST_ROTATION
        while head % (2 * side) == 0:
            side *= 2
        k = 4 * side**2 if TYPES[self.settings.type_k].is_quantised else 0
        v = 4 * _LEAST_ROTATION**2 if TYPES[self.settings.type_v].is_quantised else 0
        return k + v

    def logits(self, *, cuda: bool) -> int:
        """The phase that makes the logits."""
        settings, shape = self.settings, self.shape
        rows = 4 * settings.outputs * shape.n_vocab
        if not settings.build.keeps_inputs:
            return rows + self.unit
        mask = self.mask(CacheKind.FULL)
        if rows <= mask:
            return 0  # the freed mask leaves a hole that they fit into
        every_row = settings.outputs >= settings.tokens
        size = rows + (4 if every_row else 2) * self.unit
        if every_row:
            size += self._kept_beside_logits(mask, cuda=cuda) * self.unit
        if every_row and shape.architecture == "gemma3n":
            size -= self.per_layer_inputs() + (mask if cuda else 0)
        return size

    def _kept_beside_logits(self, mask: int, *, cuda: bool) -> int:
        """Hidden states that find no hole in what attention left, when every row has logits."""
        shape = self.shape
        per_layer = shape.architecture == "gemma4" and shape.per_layer_embedding > 0
        if cuda and (shape.architecture == "mamba2" or per_layer):
            return 1
        # Queries narrower than the hidden state (Mistral Nemo and Small) leave holes too small
        # for it; a large mask leaves one that is large enough.
        queries = 4 * self.settings.tokens * shape.n_head * shape.head_dim
        if shape.architecture != "llama" or queries >= self.unit or not self.settings.flash:
            return 0
        if not cuda:
            return 1 if mask < 4 * self.unit else 0
        if mask < queries or not self.settings.offload_kqv:
            return 2
        return 1 if mask < 2 * self.unit else 0

    @property
    def attends_on_host(self) -> bool:
        """Whether attention is computed where the caches are, on the CPU.

        Without flash attention its result is bound to the CPU then (``llama-context.cpp``,
        graph_get_cb, ``kqv_merged_cont``).
        """
        return not self.settings.offload_kqv and not self.settings.flash

    def scores(self) -> int:
        """What attention multiplies out beside a GPU, where that is done on the host."""
        if not self.attends_on_host:
            return 0
        return 4 * self.settings.tokens * self.shape.n_head * self.settings.n_ctx_seq

    def device_inputs(self) -> int:
        """Inputs that a GPU has, with the masks that it makes of them."""
        size = self.inputs(CUDA_ALIGNMENT) + self.cast_masks()
        if self.attends_on_host:
            size -= self.mask(CacheKind.FULL) + self.mask(CacheKind.SLIDING)
        return size

    def device_layers(self, *, cuda: bool, routed: bool = True) -> int:
        """The largest phase inside a layer on a GPU that shares the graph with the host.

        Args:
            cuda: whether CUDA's rules hold.
            routed: whether any experts are on the GPU.
        """
        products = max(self._dense(cuda=cuda), self.experts() if routed else 0)
        if self.attends_on_host:
            return max(products, self._alive)
        return max(products, self._attention(cuda=cuda), self.recurrent())

    def layers(self, *, cuda: bool) -> int:
        """The largest phase inside a layer."""
        products = max(self._dense(cuda=cuda), self.experts())
        return max(products, self._attention(cuda=cuda), self.recurrent())

    def _dense(self, *, cuda: bool) -> int:
        shape = self.shape
        if not shape.dense_width:
            return 0
        matrices = 3 if shape.is_gated else 2
        size = self._alive + 4 * matrices * self.settings.tokens * shape.dense_width
        if shape.architecture in ("cohere2", "nemotron_h"):
            size += self.unit
        size += self._beside_per_layer(cuda=cuda)
        if shape.architecture == "command-r" and not cuda and self.settings.is_quantised:
            size += self.unit
        copies = max(
            (self._f16_copies(k, cuda=cuda) for k in (CacheKind.FULL, CacheKind.SLIDING)),
            default=0,
        )
        if copies and shape.architecture in _PARALLEL_BLOCKS:
            size += 4 * self.settings.tokens * shape.n_head * shape.head_dim + copies
        return size

    def _beside_per_layer(self, *, cuda: bool) -> int:
        """What models with per-layer embeddings (Gemma 3n, Gemma 4 E) hold in a layer's MLP."""
        inputs = self.per_layer_inputs()
        if not inputs:
            return 0
        if cuda or self.shape.architecture == "gemma3n":
            return inputs + self.unit
        return inputs if TYPES[self.settings.type_k].is_quantised else 0

    def experts(self) -> int:
        """Routed rows, their gates and results."""
        moe = self.shape.moe
        if moe is None:
            return 0
        size = self._alive + 12 * self._routed(moe)
        if self.shape.n_embd > 2 * moe.width:
            # The experts' outputs lie side by side, whatever else is alive.
            size += (4 + moe.num_experts_per_tok) * self.unit - self._alive
        return size + (self.unit if self.shape.architecture == "llama4" else 0)

    def _routed(self, moe: Moe) -> int:
        return self.settings.tokens * moe.num_experts_per_tok * moe.width

    def _f16_copies(self, kind: CacheKind, *, cuda: bool) -> int:
        """f16 copies of one layer's K and V: CUDA's flash attention makes them."""
        if not self.settings.build.reserves_copies or not cuda:
            return 0
        return self.f16_copies(kind)

    def f16_copies(self, kind: CacheKind) -> int:
        """The copies, wherever they are held."""
        widths = self.shape.widths(kind)
        if widths is None or not self.settings.flash or self.shape.mla is not None:
            return 0
        rows = 2 * cells(self.shape, self.settings, kind) * self.settings.streams
        k = rows * widths[0] if self.settings.type_k != "F16" else 0
        v = rows * widths[1] if self.settings.type_v != "F16" else 0
        return k + v

    def attention(self, kind: CacheKind) -> int:
        """Queries and their gates, and scores or f16 copies, of attention on lent caches."""
        shape, tokens = self.shape, self.settings.tokens
        head = shape.head_dim_swa if kind is CacheKind.SLIDING else shape.head_dim
        width = head * (4 if shape.architecture.startswith(_OUTPUT_GATE) else 1)
        width += 0 if self.settings.flash else cells(shape, self.settings, kind)
        return 4 * tokens * shape.n_head * width + self.f16_copies(kind)

    def _attention(self, *, cuda: bool) -> int:
        if self.shape.mla is not None:
            return self._latent(cuda=cuda)
        kinds = (CacheKind.FULL, CacheKind.SLIDING)
        return max(self._cache_phase(kind, cuda=cuda) for kind in kinds)

    def _cache_phase(self, kind: CacheKind, *, cuda: bool) -> int:
        shape, tokens = self.shape, self.settings.tokens
        if shape.widths(kind) is None or not shape.n_head:
            return 0
        head = shape.head_dim_swa if kind is CacheKind.SLIDING else shape.head_dim
        queries = 4 * tokens * shape.n_head * head
        if not self.settings.flash:
            scores = 4 * tokens * shape.n_head * cells(shape, self.settings, kind)
            kept = queries if queries <= self.unit else 2 * queries
            kept += 4 * tokens * shape.n_head * shape.joined
            if shape.per_layer_embedding:
                kept += (2 if cuda or shape.architecture != "gemma3n" else 3) * self.unit
            return self._alive + kept + scores
        copies = self._f16_copies(kind, cuda=cuda)
        gated = 3 * queries if copies and shape.architecture.startswith(_OUTPUT_GATE) else 0
        return self._alive + 2 * queries + copies + gated

    def _latent(self, *, cuda: bool) -> int:
        mla, settings = self.shape.mla, self.settings
        if mla is None:
            return 0
        heads = 4 * settings.tokens * self.shape.n_head
        widths = 2 * mla.kv_rank + 2 * mla.rope + mla.nope + (mla.rope if mla.has_q_rank else 0)
        size = self._alive + heads * widths
        result = heads * mla.kv_rank
        if not settings.flash:
            # The values are copied out of the latent, unless a freed hole can hold the copy.
            values = 2 * settings.n_ctx * mla.kv_rank
            return size + heads * settings.n_ctx_seq + (values if values > result else 0)
        if cuda and settings.type_k != "F16":
            # An f16 copy of K rides on the attention node, unless a freed hole can hold it.
            copy = 2 * settings.n_ctx * (mla.kv_rank + mla.rope)
            if 2 * copy > result:
                return size + result + copy
        return size

    def recurrent(self) -> int:
        """What a recurrent layer works on."""
        return self._state(self.shape.ssm) if self.shape.ssm is not None else 0

    def _state(self, ssm: Ssm) -> int:
        tokens, slots = self.settings.tokens, self.settings.slots
        conv, whole = ssm.conv_width, ssm.state * ssm.inner
        if ssm.kind == "mamba2":
            projected = tokens * (ssm.inner + conv + ssm.dt_rank)
            convolved = (2 * tokens + 3 * slots) * conv
            # The states of further slots lie where the convolution was, if they fit there.
            others = (slots - 1) * whole
            scanned = tokens * ssm.inner + slots * whole
            scanned += others if others > tokens * conv else 0
            return self._alive + 4 * (projected + convolved + scanned)
        if ssm.kind == "gated_delta_net":
            convolved = (2 * tokens + 3 * slots) * conv
            return self._alive + 4 * (convolved + tokens * ssm.inner + 2 * slots * whole)
        return 0

    def holes(self) -> int:
        """What is free again when the logits are made, whether or not they find room in it."""
        return 0 if self.settings.build.keeps_inputs else self.inputs() + self.cast_masks()

    def on_host(self) -> int:
        """The CPU's buffer when no GPU takes part."""
        build = self.settings.build
        kept = self.unit if build.pinned_units > 1 else 0
        return self.token_ids() + self._peak(HOST_ALIGNMENT, cuda=False) + kept

    def on_one_gpu(self, *, cuda: bool) -> int:
        """The device's buffer when it holds every layer."""
        return self._peak(CUDA_ALIGNMENT if cuda else HOST_ALIGNMENT, cuda=cuda)

    def _peak(self, alignment: int, *, cuda: bool) -> int:
        layers, logits = self.layers(cuda=cuda) + self.cast_masks(), self.logits(cuda=cuda)
        inputs = self.inputs(alignment)
        if not self.settings.build.keeps_inputs:
            return max(inputs + layers + self.per_layer_inputs(), logits)
        return inputs + max(logits, layers) + self.per_layer_inputs()

    def pinned(self) -> int:
        """The host's part of a graph that runs on one GPU."""
        units = self.settings.build.pinned_units
        if self.shape.architecture == "gemma3n":
            units += 1
        return units * self.unit + self.token_ids() + self.inputs() + self.per_layer_inputs()
