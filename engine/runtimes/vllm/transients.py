"""What vLLM takes at moments that no start-up figure shows.

The profile run skips attention and fills no cache: what only a request with a past needs comes
after the pool is taken, beside the budget.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes.vllm import activations, workspaces
from engine.runtimes.vllm.runner import Runner
from engine.units import GIB, MIB
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.devices.device import Device
    from engine.runtimes.vllm.activations import Step

COLD_COMPILE = tr_later(
    "A first start, which compiles the model, may leave 0.9 to 2.3 GiB "
    "less (16 GiB in the worst published case); a second start gets them "
    "back."
)
_COMPILING = 2355 * MIB
_FLASHINFER = 394 * MIB
"""``VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE``."""
_BLACKWELL = 10
_LOGITS_CAPPED = (0, 19)
_SPARSE_CONTEXTS = 5
_BLOCK_DRAFTS, _DRAFT_WORKSPACE = 8, 960 * MIB


def compiles(step: Step) -> bool:
    """Whether a start compiles the model, so that a cold cache costs memory."""
    return step.captures_graphs and step.runner is not Runner.V0


def starting(step: Step) -> tuple[Estimate, ...]:
    """What a first start takes beside the weights, before there is a pool."""
    if not compiles(step):
        return ()
    source = tr(
        "starts with a cold and with a warm cache: 0.9 to 2.3 GiB apart, 16 GiB in the worst case"
    )
    cold = Estimate(0, 0, _COMPILING, Basis.ASSUMED, source, tr("0 to 2.3 GiB"), tr("cold compile"))
    return (cold,)


def sustained(step: Step, device: Device, requests: int, tokens: int) -> tuple[Estimate, ...]:
    """What comes with the first requests and stays, or returns with each large step.

    Args:
        step: the largest step.
        device: the rank's own.
        requests: at once, of one replica.
        tokens: held by each of them.
    """
    logits = _index_logits(step, requests, tokens)
    return (*_lasting(step, device), logits) if logits else _lasting(step, device)


@lru_cache(maxsize=CACHED)
def _lasting(step: Step, device: Device) -> tuple[Estimate, ...]:
    found = (_attention_workspace(step, device), _context_workspace(step), _drafts(step))
    return tuple(part for part in found if part is not None and part.high_bytes)


@lru_cache(maxsize=CACHED)
def decoding(step: Step, device: Device, requests: int) -> Estimate:
    """Activations while every request gets its next token; kept work areas stay."""
    rows = max(min(requests, step.rows or requests), 1)
    tokens = min(rows * (1 + step.drafts), step.tokens)
    small = step._replace(tokens=tokens, rows=min(rows, step.rows), item=None)
    peak = activations.alone(small, device)
    return total([peak, *workspaces.kept(step, device)])


def _attention_workspace(step: Step, device: Device) -> Estimate | None:
    """FlashInfer's, where it is the default: on data-centre Blackwell."""
    if int(device.compute_capability) != _BLACKWELL or not step.keeps_cache:
        return None
    source = tr("vLLM envs.py; allocated on the first request, after profiling")
    return Estimate(
        0, _FLASHINFER, _FLASHINFER, Basis.FITTED, source, "394 MiB", tr("FlashInfer workspace")
    )


def _context_workspace(step: Step) -> Estimate | None:
    """Where latent attention gathers cached latents; its sparse form takes whole contexts."""
    latents = [
        a
        for a in (layer.attention for layer, _ in layer_kinds(step.spec))
        if a is not None and a.kind is AttentionKind.LATENT
    ]
    if not latents:
        return None
    attention = latents[0]
    width = (attention.kv_lora_rank + attention.qk_rope_head_dim) * step.element_bytes
    if attention.index_head_dim:
        size = _SPARSE_CONTEXTS * step.gathered * width
        source = "vLLM v1/attention/backends/mla/flashmla_sparse.py (0.11 to 0.19)"
        formula = tr("{sparse_contexts} × {gathered} tokens × {width} B").format(
            sparse_contexts=_SPARSE_CONTEXTS, gathered=grouped(step.gathered), width=grouped(width)
        )
        # Since 0.19 it shares the index's area, which the profile run has seen.
        likely = 0 if step.version >= _LOGITS_CAPPED else size
        return Estimate(0, likely, size, Basis.FITTED, source, formula, tr("context workspace"))
    rows = activations.unfolded_tokens(step)
    source = tr("vLLM mla_attention.py: allocated with the pool's metadata")
    formula = tr("{rows} tokens × {width} B").format(rows=grouped(rows), width=grouped(width))
    return exactly(rows * width, Basis.EXACT, source, formula, tr("context workspace"))


def _index_logits(step: Step, requests: int, tokens: int) -> Estimate | None:
    """Scores of every token of a step against every key of the requests in it."""
    if step.version >= _LOGITS_CAPPED or not workspaces.index_width(step):
        return None
    one = step.tokens * tokens * 4
    most = step.tokens * min(requests * tokens, 40 * step.gathered) * 4
    formula = tr("{tokens} tokens × up to {most} keys × 4 B").format(
        tokens=grouped(step.tokens), most=grouped(most // step.tokens // 4)
    )
    source = tr(
        "9.89 GiB asked for by GLM-5 on eight H200 at 10,240-token prompts, 48 to 64 at once"
    )
    return Estimate(
        min(one, most), max(min(one, most), most // 2), most, Basis.FITTED, source, formula,
        tr("index logits of {most} GiB at most").format(most=figures(format(most / GIB, ".1f"))),
    )  # fmt: skip


def _drafts(step: Step) -> Estimate | None:
    if step.drafts < _BLOCK_DRAFTS:
        return None
    source = tr("a block draft (DFlash) of Qwen3.8 takes 960 MiB after capture")
    return Estimate(
        0, 0, _DRAFT_WORKSPACE, Basis.ASSUMED, source, tr("up to 960 MiB"), tr("block drafts")
    )
