"""Architectures found again: what is worked out of one config serves every equal one.

Many models are another's architecture with other weights, to the letter of its config. A spec is
the key under which sizes are kept, so that a list of thousands sizes each architecture once.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING

from engine.words import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.architecture.spec import ArchitectureSpec

_MOST = 1024
_known: OrderedDict[bytes, ArchitectureSpec] = OrderedDict()
_lock = Lock()


def remembered(
    config: Mapping[str, object],
    sums: Mapping[str, int] | None,
    specify: Callable[[Mapping[str, object], Mapping[str, int] | None], ArchitectureSpec],
) -> ArchitectureSpec:
    """What ``specify`` makes of ``config`` and ``sums``: the very same for equal ones.

    Equal means to the letter, the order of keys included; a doubt is worded in the language that
    is chosen, which is part of it.
    """
    try:
        text = repr((chosen().code, config, sums)) if isinstance(config, dict) else ""
    except (ValueError, RecursionError):
        text = ""  # a number of thousands of digits: ``specify`` says what is wrong with it
    if not text:
        return specify(config, sums)
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    made = specify(config, sums)
    with _lock:
        made = _known.setdefault(key, made)
        if len(_known) > _MOST:
            _known.popitem(last=False)
    return made
