"""``plimsoll kv``: the KV cache of one request, formula and inputs in the open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.hub import opener
from engine.cli.look import Look, fitted, wrapped
from engine.contract.desk import Desk
from engine.contract.kv import KvBaseline, kv_answer, kv_baseline
from engine.contract.request import parse
from engine.errors import UsageError
from engine.units import format_bytes, format_gib

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from engine.budget.sequence_state import CacheTerm
    from engine.deployment.spec import Deployment


_NAME, _EXACT, _ROUNDED = 18, 22, 12
_TABLE = 2 + _NAME + _EXACT + 2 + _ROUNDED


def run(options: argparse.Namespace) -> int:
    """Answer for one model; a bound is marked as such."""
    request = parse(options.given)
    context, dtype = _context(request.deployment), _dtype(request.deployment)
    model = Desk(CancelToken(), opener(options)).model(request)
    baseline = kv_baseline(model, context, dtype)
    output = streams.output()
    if options.json:
        output.write(encode(kv_answer(baseline)) + "\n")
    else:
        look = Look.of(output)
        look.write(_describe(baseline, look), output)
    return 3 if baseline.bounds else 0


def _context(plan: Deployment) -> int:
    context = plan.max_model_len
    if context is None or context < 1:
        message = "The tokens of one request aren't stated: say --context 8192, or 32k."
        raise UsageError(message, field="max_model_len")
    return context


def _dtype(plan: Deployment) -> str:
    """The cache's type as the plan states it; llama.cpp has one for keys and one for values."""
    keys, values = plan.cache_type_k, plan.cache_type_v
    if plan.kv_cache_dtype != "auto" or keys == values:
        return keys if keys and plan.kv_cache_dtype == "auto" else plan.kv_cache_dtype
    message = (
        f"The plan keeps keys as {keys or 'f16'} and values as {values or 'f16'}: say one of them "
        "with --kv-dtype."
    )
    raise UsageError(message, field="kv_cache_dtype")


def _reach(term: CacheTerm) -> str:
    if term.ratio > 1:
        return f"an entry for every {term.ratio:,} tokens"
    if term.prefix_tokens:
        return f"every token and {term.prefix_tokens:,} before them"
    if term.kind is AttentionKind.CROSS:
        return f"the encoder's {term.window:,} tokens" if term.window else "the encoder's tokens"
    return f"the last {term.window:,} tokens" if term.window else "every token"


def _describe(baseline: KvBaseline, look: Look) -> Iterator[str]:
    yield look.strong(look.line(baseline.model))
    yield from wrapped(baseline.formula, look.width, first="  ", rest="      ")
    yield ""
    for term in baseline.terms:
        tokens = term.tokens(baseline.context)
        text = (
            f"{term.layers:>3} {term.kind.value} layers keep {_reach(term)}: {term.layers} × "
            f"{term.token_bytes:,} B × {tokens:,} = {term.size_bytes(baseline.context):,} B"
        )
        yield from wrapped(text, look.width, first="  ", rest="      ")
    if baseline.state_bytes:
        text = f"recurrent state, whatever the context: {baseline.state_bytes:,} B"
        yield from wrapped(text, look.width, first="      ", rest="        ")
    yield ""
    more = baseline.bytes_per_token
    rows = (
        ("KV dtype", baseline.kv_dtype, ""),
        ("One more token", f"{more:,} B", format_bytes(more)),
        (
            f"{baseline.context:,} tokens",
            f"{baseline.total_bytes:,} B",
            format_gib(baseline.total_bytes),
        ),
    )  # fmt: skip
    is_wide = look.width >= _TABLE
    for name, exact, rounded in rows:
        figure = fitted(exact, _EXACT if is_wide else 20, right=True)
        yield f"  {fitted(name, _NAME)}{figure}{f'  {look.strong(rounded)}' if is_wide else ''}"
    yield ""
    hint = "What the model needs; a runtime reserves more: see plimsoll size."
    yield from map(look.faint, wrapped(hint, look.width, first="  ", rest="  "))
    for reason in baseline.bounds:
        yield from wrapped(reason, look.width, first="  ", rest="  ")
