"""What a GGUF file must hold to be a whole model: values in range, every block, heads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from engine.architecture.spec import Direction
from engine.errors import HeaderError
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.config.facts import Facts
    from engine.source.raw import RawModel

_RANGES = {
    "embedding_length": (1, 2**20),
    "context_length": (1, 2**40),
    "feed_forward_length": (0, 2**24),
    "vocab_size": (1, 2**27),
    "attention.head_count": (0, 2**16),
    "attention.head_count_kv": (0, 2**16),
    "attention.key_length": (1, 2**16),
    "attention.value_length": (1, 2**16),
    "attention.sliding_window": (0, 2**40),
    "rope.dimension_count": (0, 2**16),
    "expert_count": (0, 2**17),
    "expert_used_count": (0, 2**17),
}
"""What a value may be, one for all blocks or one for each."""
_BLOCK = re.compile(r"blk\.(\d{1,6})\.")
_STACK = re.compile(r"(enc|dec)\.blk\.")
"""Blocks of an encoder-decoder, which are named another way."""
_OTHER_STATE = re.compile(r"time_mix|channel_mix|ssm|conv|indexer|cross|memory")


def check_ranges(facts: Facts) -> None:
    """Refuse metadata that no model has.

    Raises:
        ConfigError: a value is out of range; names the key.
    """
    for key, (low, high) in _RANGES.items():
        value = facts.stated.get(key)
        several = isinstance(value, list | tuple)
        for number in cast("Sequence[object]", value) if several else (value,):
            if number is not None and not low <= facts.checked(key, number, 0) <= high:
                raise facts.bad(
                    key,
                    number,
                    tr("a value from {low} to {high} is needed").format(low=low, high=high),
                )


def require_blocks(raw: RawModel, count: int) -> None:
    """Every block that the metadata counts has tensors.

    Raises:
        HeaderError: some have none: the file, or a part of it, is missing.
    """
    if not raw.tensors or has_two_stacks(raw):
        return
    there = {int(found[1]) for t in raw.tensors if (found := _BLOCK.match(t.name))}
    held = sum(i in there for i in range(count))
    if held < count:
        message = tr(
            "{id} has tensors for {held} of its {count} blocks: the file "
            "is not complete, or a part of it is missing. Download it "
            "again."
        ).format(id=raw.id, held=held, count=count)
        raise HeaderError(message, field="block_count")


def require_heads(facts: Facts) -> None:
    """Where a block has keys and values, the one number of heads for all blocks cannot be 0.

    Raises:
        ConfigError: it is.
    """
    for key in ("attention.head_count", "attention.head_count_kv"):
        if facts.stated.get(key) == 0:
            raise facts.bad(key, 0, tr("1 or more is needed"))


def has_two_stacks(raw: RawModel) -> bool:
    """Whether the file holds an encoder-decoder."""
    return any(_STACK.match(tensor.name) for tensor in raw.tensors)


def direction_by_names(names: Iterable[str]) -> Direction:
    """Which way full attention in every block is off, for an architecture that is not known.

    It is the most that keys and values can be; other state may come to it.
    """
    other = any(_OTHER_STATE.search(name) for name in names)
    return Direction.EITHER if other else Direction.UPPER
