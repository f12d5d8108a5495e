"""The peak of vLLM's profile run on one rank: encoder, forward pass or sampler, whichever is most.

The sampler's part is counted from the source; it meets the 46 logged starts of 0.6 to 0.19 whose
log prints it within 0.01 GiB. The forward pass is fitted to the few starts in which it is larger.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.evidence import Basis, Estimate, total
from engine.runtimes.overheads import has_fast_links
from engine.runtimes.vllm import workspaces
from engine.runtimes.vllm.rules import Since
from engine.runtimes.vllm.runner import Runner, Sampling, runner, sampling
from engine.units import GIB, MIB, ceil_div
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec, LayerSpec
    from engine.devices.device import Device
    from engine.runtimes.vllm.encoders import Item
    from engine.runtimes.vllm.rules import Version


class Step(NamedTuple):
    """The largest step of one rank, and how the model is split."""

    spec: ArchitectureSpec
    version: Version
    tokens: int
    """``max_num_batched_tokens``."""
    rows: int
    """Rows of the sampler: ``max_num_seqs``; 0 where nothing is sampled."""
    gathered: int
    """``max_model_len`` where attention gathers what is cached: latents, keys of an index. Else 0:
    nothing in a step depends on it, and plans that differ in length alone share their step."""
    element_bytes: int
    """Of an activation."""
    tensor_parallel_size: int
    data_parallel_size: int
    expert_parallel: bool
    weight_format: str
    first_stage: bool
    last_stage: bool
    passes_on: bool
    """Whether hidden states go to another stage."""
    drafts: int
    """Speculative tokens of a request."""
    draft_layers: int
    """Of the prediction blocks, or of a draft model of its own."""
    capability: float
    """CUDA compute capability of the first device, which decides the runner for all."""
    layers: range
    captures_graphs: bool
    adapters: bool
    """Whether LoRA adapters may be loaded."""
    keeps_cache: bool
    item: Item | None = None
    """The largest image, video or sound that the encoder is profiled with."""

    @property
    def hidden_bytes(self) -> int:
        """Hidden states of all tokens."""
        return self.tokens * self.spec.hidden_size * self.element_bytes

    @property
    def runner(self) -> Runner:
        """The model runner that starts it."""
        return runner(self.spec, self.version, self.capability, self.weight_format)


@lru_cache(maxsize=CACHED)
def gathers(spec: ArchitectureSpec) -> bool:
    """Whether attention gathers what is cached into areas that grow with ``max_model_len``."""
    kinds = (layer.attention for layer, _ in layer_kinds(spec))
    return any(a.kind is AttentionKind.LATENT or a.index_head_dim for a in kinds if a is not None)


_WORD_BYTES = {
    Sampling.SORTED: 36,
    Sampling.TRITON: 12,
    Sampling.FUSED: 12,
    Sampling.COPIED: 4,
    Sampling.IN_PLACE: 0,
}
"""Bytes per row and word beside the logits: 4 for a copy in 32 bits, and 4 + 4 for two of the
softmax (Triton) or for masked logits and softmax (FlashInfer). Sorting takes 4 + 8 for values and
indices, 8 for the indices before, and 12 for the copy that CUB sorts in."""
_FEW_SORTED = 48
"""The same below 128 rows, which PyTorch sorts at once with pairs of 8 bytes (``Sort.cu``)."""
_SEGMENTS = 128
_SPECULATING = 4
"""Logits of drafts and of bonus tokens that the rejection sampler is tried with."""
_MULTIPROCESSORS, _FEWER_MULTIPROCESSORS = 132, 82
"""Where the count is not known: of an H100, and of an RTX 3090."""
_WORKSPACE, _SMALL_WORKSPACE = 32 * MIB, 8_519_680
"""cuBLAS's own since Hopper, and before (PyTorch ``CUDABlas.cpp``)."""
_COMPILED = 0.7
"""Hidden states beside the widest point of a layer that compiled code keeps: 0.85 GiB of
Granite-3.1-8B; CodeLlama-7B has the same. V0's eager code keeps none."""
_PASSED_ON = 2.5
"""Hidden states and residuals between stages: 2.1 and 2.9 of them in two starts."""
_FORWARD_SOURCE = tr_later(
    "fitted to six logged starts of 0.6 to 0.19 that peak in the forward pass"
)
_SAMPLER_SOURCE = tr_later(
    "vLLM v1/sample, v1/worker/gpu/sample: 44 logged starts of 0.6 to 0.19 within 0.01 GiB"
)
_UNPACKED_FROM, _AWQ_MARLIN = 256, (0, 5, 4)
_LATENT_TRIAL = Since[int](((0,), 128 * 1024), ((0, 11), 64 * 1024))
"""Most tokens of context whose keys and values latent attention unfolds at once."""


@lru_cache(maxsize=CACHED)
def peak(step: Step, device: Device) -> Estimate:
    """Peak of the profile run of ``step`` on ``device``."""
    forward = _forward(step, device)
    parts = [forward]
    if step.last_stage and step.rows:
        sampler = _sampler(step, device)
        if sampler.likely_bytes > forward.likely_bytes:
            forward, sampler = sampler, forward
        low, high = (max(forward.low_bytes, sampler.low_bytes),
                     max(forward.high_bytes, sampler.high_bytes))  # fmt: skip
        parts = [_spanned(forward, low, high)]
    parts += workspaces.kept(step, device)
    if step.item is not None and step.first_stage:
        parts = _with_encoder(step, step.item, device, parts)
    formula = " + ".join(
        tr("{label}: {formula}").format(label=p.label, formula=p.formula)
        if p is not parts[0]
        else p.formula
        for p in parts
    )
    return total(parts, formula=formula)


def alone(step: Step, device: Device) -> Estimate:
    """Forward pass or sampler, without the encoder and the areas that layers share."""
    forward = _forward(step, device)
    if not (step.last_stage and step.rows):
        return forward
    sampler = _sampler(step, device)
    most, other = (sampler, forward)
    if sampler.likely_bytes <= forward.likely_bytes:
        most, other = forward, sampler
    low = max(most.low_bytes, other.low_bytes)
    return _spanned(most, low, max(most.high_bytes, other.high_bytes))


def _spanned(found: Estimate, low: int, high: int) -> Estimate:
    return Estimate(
        low, found.likely_bytes, high, found.basis, found.source, found.formula, found.label
    )


def _with_encoder(step: Step, item: Item, device: Device, parts: list[Estimate]) -> list[Estimate]:
    """The encoder's peak, or the rest beside what it leaves behind."""
    kept = item.kept(step.spec.hidden_size * step.element_bytes, step.runner is not Runner.V2)
    alone = item.peak(step.element_bytes, step.version, device.total_bytes)
    beside = sum(part.likely_bytes for part in parts) + kept.likely_bytes
    if alone.likely_bytes <= beside:
        more = max(alone.high_bytes - beside - kept.high_bytes + kept.likely_bytes, 0)
        open_end = Estimate(0, 0, more, Basis.ASSUMED, alone.source, "", tr("encoder"))
        return [*parts, kept, open_end] if more else [*parts, kept]
    low = max(alone.low_bytes, sum(part.low_bytes for part in parts) + kept.low_bytes)
    return [_spanned(alone, min(low, alone.likely_bytes), alone.high_bytes)]


def _workspace(device: Device) -> int:
    return _WORKSPACE if has_fast_links(device) else _SMALL_WORKSPACE


def _sampler(step: Step, device: Device) -> Estimate:
    spec, rows = step.spec, min(step.rows, step.tokens)
    if step.item is not None and step.runner is Runner.V0:
        # V0 tried no more requests than largest items fit into a step.
        rows = min(rows, step.item.count)
    kind = sampling(step.runner, step.version, device, rows)
    word = _WORD_BYTES[kind] + step.element_bytes
    if kind is Sampling.SORTED and rows < _SEGMENTS:
        word = _FEW_SORTED + step.element_bytes
    if step.drafts and step.runner is Runner.V1:
        word += _SPECULATING
    samples = 1 if step.runner is not Runner.V1 else 2
    drawn = samples * rows * spec.hidden_size * step.element_bytes
    scratch = 0
    if kind is Sampling.TRITON:
        count = device.sm_count
        count = count or (_MULTIPROCESSORS if has_fast_links(device) else _FEWER_MULTIPROCESSORS)
        programs = min(count, rows)
        scratch = min(1 << (programs - 1).bit_length(), count) * spec.vocab_size * 4
    cells = rows * spec.vocab_size
    fixed = drawn + scratch + step.hidden_bytes + _workspace(device)
    likely = word * cells + fixed
    # What is not in a log yet (FlashInfer's kernel, few rows) is open by one copy of the logits.
    unseen = kind is Sampling.FUSED or word > _WORD_BYTES[kind] + step.element_bytes
    slack = likely // 100 + 4 * MIB
    if not device.compute_capability:
        slack += _WORKSPACE - _SMALL_WORKSPACE
    formula = tr(
        "sampler: {word} B × {rows} rows × {vocab_size} + "
        "{hidden_bytes} MiB of hidden states + {fixed} MiB"
    ).format(
        word=word,
        rows=grouped(rows),
        vocab_size=grouped(spec.vocab_size),
        hidden_bytes=figures(format(step.hidden_bytes / MIB, ",.0f")),
        fixed=figures(format((fixed - step.hidden_bytes) / MIB, ",.0f")),
    )
    low = likely - slack - (4 * cells if unseen else 0)
    high = likely + slack + (2 * cells if unseen else 0)
    return Estimate(
        max(low, 0),
        likely,
        high,
        Basis.FITTED,
        tr(_SAMPLER_SOURCE),
        formula,
        tr("peak of the sampler"),
    )


def _forward(step: Step, device: Device) -> Estimate:
    spec = step.spec
    width = _forward_width(spec, step.tensor_parallel_size)
    eager = step.runner is Runner.V0
    kept = 0.0 if eager else _COMPILED
    likely = step.tokens * step.element_bytes * width
    likely += round(kept * step.hidden_bytes) + _workspace(device)
    spread = likely // 10
    formula = tr(
        "forward pass: {tokens} tokens × ({width} + {kept} × {hidden_size}) × {element_bytes} B"
    ).format(
        tokens=grouped(step.tokens),
        width=grouped(width),
        kept=figures(format(kept, "g")),
        hidden_size=grouped(spec.hidden_size),
        element_bytes=step.element_bytes,
    )
    if step.passes_on:
        likely += round(_PASSED_ON * step.hidden_bytes)
        spread += step.hidden_bytes // 2
        formula += tr(" + {passed_on} × hidden states between stages").format(passed_on=_PASSED_ON)
    more = workspaces.passing_bytes(step) + workspaces.index_logits_bytes(step) + _unfolded(step)
    if more:
        likely += more
        spread += more // 10
        formula += tr(" + {more} GiB of experts, index or unfolded context").format(
            more=figures(format(more / GIB, ".2f"))
        )
    unpacked = _unpacked(step, device)
    if unpacked.likely_bytes:
        formula += tr(" + {likely_bytes} MiB of one matrix unpacked").format(
            likely_bytes=figures(format(unpacked.likely_bytes / MIB, ",.0f"))
        )
    low, high = max(likely - spread, 0), likely + spread
    return Estimate(
        low + unpacked.low_bytes,
        likely + unpacked.likely_bytes,
        high + unpacked.high_bytes,
        Basis.FITTED,
        tr(_FORWARD_SOURCE),
        formula,
        tr("peak of the forward pass"),
    )


def _unpacked(step: Step, device: Device) -> Estimate:
    """The widest matrix in 16 bits, which AWQ's own kernels write out for 256 tokens and more.

    Marlin's, which take their place since Ampere and 0.5.4, do not, unless ``quantization`` "awq"
    is asked for.

    Source:
        vLLM ``quantization/awq.py :: FP16_MATMUL_HEURISTIC_CONDITION`` and ``awq_marlin.py``.
    """
    size = 0
    if step.weight_format.startswith("awq") and step.tokens >= _UNPACKED_FROM:
        spec, tp = step.spec, step.tensor_parallel_size
        size = spec.hidden_size * _widest(spec, tp) * step.element_bytes
    own = step.version < _AWQ_MARLIN or 0 < device.compute_capability < 8
    likely = size if own else 0
    return Estimate(likely, likely, size, Basis.FITTED, "vLLM quantization/awq.py")


@lru_cache(maxsize=CACHED)
def _widest(spec: ArchitectureSpec, tp: int) -> int:
    """Rows of the widest matrix of an MLP, gate and up joined."""
    return max(
        (
            (2 if layer.gated_mlp else 1) * ceil_div(layer.intermediate_size, tp)
            for layer, _ in layer_kinds(spec)
        ),
        default=0,
    )


def _unfolded(step: Step) -> int:
    """Keys and values of cached context that latent attention tries to unfold.

    Source:
        vLLM ``mla_attention.py``, "try to simulate to worse case output size".
    """
    found = 0
    for layer, _ in layer_kinds(step.spec):
        a = layer.attention
        if a is None or a.kind is not AttentionKind.LATENT or a.index_head_dim:
            continue
        if step.runner is Runner.V1 and step.version < (0, 11):
            continue
        tokens = unfolded_tokens(step)
        heads = ceil_div(a.num_attention_heads, step.tensor_parallel_size)
        widths = a.qk_nope_head_dim + a.v_head_dim
        found = max(found, tokens * heads * widths * step.element_bytes)
    return found


def unfolded_tokens(step: Step) -> int:
    """Tokens of cached context that latent attention gathers at once.

    Eight longest requests or four blocks for each, up to a limit.

    Source:
        vLLM ``mla_attention.py :: determine_chunked_prefill_workspace_size``.
    """
    wanted = max(8 * step.gathered, 4 * step.rows * 16)
    return max(min(wanted, _LATENT_TRIAL.at(step.version)), step.rows * 16)


@lru_cache(maxsize=CACHED)
def _forward_width(spec: ArchitectureSpec, tp: int) -> int:
    """Elements per token at the widest point of a layer."""
    return max(
        (_layer_width(spec.hidden_size, layer, tp) for layer, _ in layer_kinds(spec)),
        default=3 * spec.hidden_size,
    )


def _layer_width(hidden: int, layer: LayerSpec, tp: int) -> int:
    shared = layer.moe.shared_intermediate_size if layer.moe else 0
    widths = [(3 if layer.gated_mlp else 2) * ceil_div(max(layer.intermediate_size, shared), tp)]
    if layer.attention is not None:
        widths.append(_attention_width(layer.attention, tp))
    if layer.state is not None:
        # What goes into the convolution, what comes out, and the state's own inputs.
        widths.append(3 * ceil_div(layer.state.conv_dim, tp))
    return 3 * hidden + max(widths)


def _attention_width(attention: AttentionSpec, tp: int) -> int:
    heads = ceil_div(attention.num_attention_heads, tp)
    if attention.kind is AttentionKind.LATENT:
        latent = attention.kv_lora_rank + attention.qk_rope_head_dim
        widths = 2 * attention.head_dim + attention.v_head_dim
        return attention.q_lora_rank + latent + heads * widths
    query = heads * attention.head_dim
    pair = max(1, attention.num_key_value_heads // tp) * (attention.head_dim + attention.v_head_dim)
    return 3 * query + 2 * pair
