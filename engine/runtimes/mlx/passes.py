"""One evaluation of MLX over all layers: a chunk of a prompt, or a token of an answer.

What is asked for is the caches. The tensors of a layer follow mlx-lm's classes: their order, what
is written in place, what is a view. A convolution's last columns are asked for by nothing but the
caller, and MLX walks its graph in breadth: they are cut off last, so that the whole input of every
convolution lives until the end of the chunk.

Source:
    mlx-lm 0.31.3 and 0.32.2 ``models/*.py``; mlx ``fast.cpp`` (the unfused attention),
    ``transforms.cpp :: eval_impl``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED
from engine.runtimes.mlx.reading import (
    after_rows,
    before_rows,
    conv_input_bytes,
    kept_bytes,
    rows_bytes,
)
from engine.runtimes.mlx.tape import Buffer, Tape
from engine.units import ceil_div

if TYPE_CHECKING:
    from engine.runtimes.mlx.layers import Attention, Experts, Layer, Matrix, Stack, State
    from engine.runtimes.mlx.reading import Pass

_ALL_LAYERS = 24
"""Up to so many layers are run one by one; of more, the last ones, when caches are largest."""
_LEAST_LAYERS = 16
_LAYER_DISPATCHES = 22
_BLOCK = 256
"""Tokens that a Mamba-2 layer takes at once (``models/ssm.py``)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass holds at most, weights apart."""

    peak_bytes: int
    """Caches, states and everything for a moment."""
    pending_bytes: int
    """Of it, what was done with but not yet freed."""
    cache_bytes: int
    """Caches and states after the pass."""
    largest_bytes: int
    """The largest single buffer."""


@lru_cache(maxsize=CACHED)
def run(stack: Stack, wanted: Pass) -> Outcome:
    """Run ``wanted`` over ``stack``, cached by identity of the stack."""
    layers, width = stack.layers, stack.width
    first = len(layers) - _window(stack, wanted)
    done, ahead = layers[:first], layers[first:]
    kept = sum(kept_bytes(layer, wanted, width, after=True) for layer in done)
    live = kept + sum(kept_bytes(layer, wanted, width, after=False) for layer in ahead)
    live += sum(conv_input_bytes(layer, wanted, width) for layer in done)
    tape = Tape(live, width, is_small=wanted.is_small_chip)
    _Walk(tape, stack, wanted).all(ahead)
    after = kept + sum(kept_bytes(layer, wanted, width, after=True) for layer in ahead)
    return Outcome(tape.peak_bytes, tape.pending_bytes, after, tape.largest_bytes)


def _window(stack: Stack, wanted: Pass) -> int:
    """How many layers fill the queue of command buffers, with some to spare."""
    count = len(stack.layers)
    if count <= _ALL_LAYERS:
        return count
    per_layer = max(_elements(stack.layers[-1], wanted.tokens), 1)
    together = min(52 * 2**20 / per_layer, 50 / _LAYER_DISPATCHES)
    return min(count, max(_LEAST_LAYERS, ceil_div(round(12 * 64 * together), 64) + 2))


def _elements(layer: Layer, tokens: int) -> int:
    return sum(m.elements + tokens * m.rows for m in layer.matrices)


class _Walk:
    """Layer after layer on a tape."""

    def __init__(self, tape: Tape, stack: Stack, wanted: Pass) -> None:
        self.tape = tape
        self.stack = stack
        self.wanted = wanted
        self.tokens = wanted.tokens
        self.width = stack.width

    def all(self, layers: tuple[Layer, ...]) -> None:
        wanted, tape = self.wanted, self.tape
        stream = self.new((), self.stack.hidden)
        for index, layer in enumerate(layers):
            # Nothing asks for what the last layer gives, unless the head follows.
            is_last = index == len(layers) - 1 and not wanted.logits and wanted.tokens > 1
            stream = self.mixer(layer, stream, is_last=is_last)
            if not is_last:
                stream = self.feed(layer, stream)
        if wanted.logits:
            tape.allocate(wanted.tokens * self.stack.vocabulary)

    def new(self, reads: tuple[Buffer, ...], per_token: int, dispatches: int = 1) -> Buffer:
        """An operation that makes ``per_token`` elements of every token."""
        return self.tape.run(reads, self.tokens * per_token, dispatches=dispatches)

    def through(
        self, source: Buffer, matrix: Matrix | None, per_token: int, *, ends: bool = False
    ) -> Buffer:
        """A product with a matrix."""
        return self.tape.run(
            (source,),
            self.tokens * per_token,
            last_use=(source,) if ends else (),
            weights=matrix.elements if matrix is not None else 0,
        )

    def mixer(self, layer: Layer, stream: Buffer, *, is_last: bool) -> Buffer:
        if layer.attention is None and layer.state is None:
            return stream
        hidden = self.stack.hidden
        normed = self.new((stream,), hidden)
        outs: list[Buffer] = []
        if layer.state is not None:
            outs.append(self.recurrent(layer, layer.state, normed))
        if layer.attention is not None:
            outs += self.attend(layer, layer.attention, normed, is_last=is_last)
        self.tape.drop((normed,))
        if is_last or not outs:
            self.tape.drop((*outs, stream))
            return stream
        mixed = self.tape.run(
            tuple(outs),
            self.tokens * hidden,
            last_use=tuple(outs),
            weights=layer.leaves.elements if layer.leaves is not None else 0,
        )
        return self.tape.run((stream, mixed), into=mixed, last_use=(stream,))

    def attend(
        self, layer: Layer, spec: Attention, normed: Buffer, *, is_last: bool
    ) -> list[Buffer]:
        tape, query = self.tape, spec.heads * spec.key
        # A layer with a state beside its attention has used its matrices for that.
        mixes = layer.mixes if layer.state is None else ()
        made = [self.through(normed, matrix, matrix.rows) for matrix in mixes]
        if not made:
            made = [self.new((normed,), query + sum(spec.row))]
        gate = self.new((made[0],), query) if spec.is_gated else None
        rotated = self.new((made[0],), query)
        row = (spec.row[0] + spec.row[1]) * self.tokens
        fresh = tape.run(tuple(made[1:]) or (made[0],), row, dispatches=2)
        tape.drop(tuple(made))
        keys = self.grow(spec, fresh)
        if is_last:
            tape.drop((rotated, *((gate,) if gate is not None else ())))
            return []
        out = self.scores(spec, rotated, keys)
        if gate is not None:
            tape.run((gate,), into=gate)
            tape.run((out, gate), into=out, last_use=(gate,))
        return [out]

    def grow(self, spec: Attention, fresh: Buffer) -> tuple[Buffer, Buffer]:
        """Write new keys and values into the cache: both as buffers of their rows."""
        tape, wanted = self.tape, self.wanted
        if not spec.keeps_cache:
            tape.drop((fresh,))
            rows = after_rows(spec, wanted)
            return Buffer(rows * spec.row[0], self.width), Buffer(rows * spec.row[1], self.width)
        before, after = before_rows(spec, wanted), after_rows(spec, wanted)
        sides: list[Buffer] = []
        for elements in spec.row:
            share = rows_bytes(spec, 1, wanted, self.width) * elements // max(sum(spec.row), 1)
            per_row = max(share // self.width, 0)
            old = Buffer(before * per_row, self.width)
            if after <= before and not spec.window:
                sides.append(tape.run((old, fresh), into=old))
                continue
            reads, ended = (old, fresh), (old,)
            new = tape.run(reads, after * per_row, last_use=ended, dispatches=2)
            if not spec.window:
                tape.run((new, fresh), into=new)
            sides.append(new)
        tape.drop((fresh,))
        return sides[0], sides[1]

    def scores(self, spec: Attention, query: Buffer, keys: tuple[Buffer, Buffer]) -> Buffer:
        """Attention: one kernel where there is one, else all scores at once."""
        tape, wanted, tokens = self.tape, self.wanted, self.tokens
        made = spec.heads * spec.value
        seen = wanted.offset + tokens
        if spec.window:
            seen = min(wanted.offset, spec.window - 1) + tokens
        if tokens == 1:
            return tape.run((query, *keys), made, last_use=(query,))
        packed = wanted.packing.applies(wanted.offset) and not spec.window
        if spec.is_latent and sum(spec.row) != spec.heads * (spec.key + spec.value):
            return self.latent_scores(spec, query, keys, seen)
        if spec.key == spec.value and spec.key in wanted.fused and not packed:
            return tape.run((query, *keys), tokens * made, last_use=(query,))
        tape.run((query,), into=query)
        found = tape.run((query, keys[0]), spec.heads * tokens * seen, last_use=(query,))
        mask = tape.run((), into=tape.allocate(tokens * seen, 0 if wanted.masked else 1))
        tape.run((found, mask), into=found, last_use=(mask,))
        if wanted.masked:
            found = tape.run((found,), found.elements, last_use=(found,))
        else:
            tape.run((found,), into=found)
        out = tape.run((found, keys[1]), tokens * made, last_use=(found,))
        return tape.run((out,), tokens * made, last_use=(out,))

    def latent_scores(
        self, spec: Attention, query: Buffer, keys: tuple[Buffer, Buffer], seen: int
    ) -> Buffer:
        """A chunk over latent vectors: scores of the rotary part as a mask, then whole heads."""
        tape, tokens = self.tape, self.tokens
        rotary = spec.row[1]
        mask = tape.run((query, keys[1]), spec.heads * tokens * seen)
        tape.run((mask,), into=mask)
        plain = spec.key - rotary
        whole = tape.run((keys[0],), spec.heads * seen * plain)
        values = tape.run((keys[0],), spec.heads * seen * spec.value)
        reads = (query, whole, values, mask)
        made = tokens * spec.heads * spec.value
        if plain == spec.value and plain in self.wanted.fused:
            return tape.run(reads, made, last_use=reads)
        found = tape.run((query, whole), mask.elements, last_use=(query, whole))
        tape.run((found, mask), into=found, last_use=(mask,))
        return tape.run((found, values), made, last_use=(found, values))

    def recurrent(self, layer: Layer, spec: State, normed: Buffer) -> Buffer:
        """A state: its projections, the convolution, and what it gives."""
        tape = self.tape
        made = [self.through(normed, matrix, matrix.rows) for matrix in layer.mixes]
        first = tuple(made[:1]) or (normed,)
        given = self.new((), spec.conv, dispatches=2)
        tape.run((*first, given), into=given)
        # Not dropped: the columns that are kept are cut off at the very end.
        convolved = self.new((given,), spec.conv)
        tape.run((convolved,), into=convolved)
        queries = self.new((convolved,), max(spec.conv - spec.value, 0), dispatches=2)
        values = self.new((convolved,), spec.value)
        tape.drop((convolved, *made[:1], *made[2:]))
        blocks: tuple[Buffer, ...] = ()
        if spec.kind == "mamba2" and self.tokens > 1:
            side = min(self.tokens, _BLOCK)
            blocks = (tape.allocate(4 * spec.heads * side * side, 4),)
            tape.run((queries,), into=blocks[0], dispatches=8)
        out = self.new((queries, values), spec.value)
        tape.drop((queries, values, *blocks))
        tape.run((out, *made[1:2]), into=out, last_use=tuple(made[1:2]))
        return out

    def feed(self, layer: Layer, stream: Buffer) -> Buffer:
        if not layer.feeds and layer.experts is None:
            return stream
        hidden, tape = self.stack.hidden, self.tape
        normed = self.new((stream,), hidden)
        outs = [self.dense(layer, feed, normed) for feed in layer.feeds]
        if layer.experts is not None:
            outs.append(self.sparse(layer.experts, normed))
        return tape.run((stream, *outs), into=stream, last_use=(*outs, normed))

    def dense(self, layer: Layer, feed: tuple[Matrix, ...], normed: Buffer) -> Buffer:
        tape = self.tape
        *inward, out = feed
        made = [self.through(normed, matrix, matrix.rows) for matrix in inward]
        active = made[0]
        if layer.is_gated and len(made) == 1:
            active = self.new((made[0],), inward[0].rows // 2)
            tape.drop((made[0],))
        else:
            tape.run(tuple(made), into=active, last_use=tuple(made[1:]))
        return self.through(active, out, self.stack.hidden, ends=True)

    def sparse(self, experts: Experts, normed: Buffer) -> Buffer:
        """Tokens sorted by expert, each as often as experts read it, and put back in order."""
        tape, tokens, hidden = self.tape, self.tokens, self.stack.hidden
        *inward, down = experts.matrices
        chosen = tape.run((normed,), into=tape.allocate(tokens * experts.count, 4))
        ordering = tape.allocate(chosen.elements, 4)
        tape.run((chosen,), into=ordering, last_use=(chosen,), dispatches=4)
        rows = tokens * experts.per_token
        taken = tape.run((normed,), rows * hidden, last_use=(ordering,))
        made = [
            tape.run((taken,), rows * experts.inner, weights=matrix.elements) for matrix in inward
        ]
        tape.run(tuple(made), into=made[0], last_use=(*made[1:], taken))
        out = tape.run(
            (made[0],), rows * hidden, last_use=(made[0],),
            weights=down.elements,
        )  # fmt: skip
        ordered = tape.run((out,), rows * hidden, last_use=(out,))
        tape.run((ordered,), into=ordered)
        return tape.run((ordered,), tokens * hidden, last_use=(ordered,))
