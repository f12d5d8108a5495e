"""Which process or device a line is of: only its beginning tells."""

from __future__ import annotations

import re

from engine.words import tr

_LOOKED_AT = 200
_RANK = re.compile(
    r"\((?:Worker|VllmWorkerProcess|RayWorkerWrapper)(?:_(?P<name>[A-Z0-9_]{2,40}))?"
    r" pid=(?P<pid>\d{1,10})"
    r"|\(VllmWorker (?:rank=(?P<worker>\d{1,4})|(?P<place>[A-Z0-9_]{2,40})) pid="
    r"|\(EngineCore_DP(?P<copy>[1-9]\d{0,3})[ )]"
    r"|\d\d:\d\d:\d\d(?P<places>(?: (?:DP|TP|PP|EP|ATTN_TP|ATTN_DP)\d{1,4}){1,5})\]"
    r"|\[rank(?P<number>\d{1,4})\]"
    r"|\{rank=(?P<shard>\d{1,4})\}"
)
_TENSOR = re.compile(r"(?<![A-Z])TP(\d{1,4})")
_STAGE = re.compile(r"PP(\d{1,4})")
_DEVICE = re.compile(r"[A-Za-z]+?(\d{1,3})")


def rank_of(line: str) -> str:
    """The name of the rank that prints ``line``; empty where the line names none."""
    found = _RANK.search(line, 0, _LOOKED_AT)
    if found is None:
        return ""
    if found["name"] or found["place"]:
        return (found["name"] or found["place"]).replace("_", " ")
    if found["places"]:
        return found["places"].strip()
    if found["pid"]:
        return tr("pid {found}").format(found=found["pid"])
    if found["copy"]:
        return f"DP{found['copy']}"
    return f"TP{found['number'] or found['shard'] or found['worker']}"


def index_of(name: str, tensor_parallel_size: int, otherwise: int) -> int:
    """Number of the rank ``name`` in a plan; ``otherwise`` where the name holds none."""
    tensor, stage = _TENSOR.search(name), _STAGE.search(name)
    if tensor or stage:
        inner = int(tensor[1]) if tensor else 0
        return (int(stage[1]) if stage else 0) * tensor_parallel_size + inner
    device = _DEVICE.fullmatch(name)
    return int(device[1]) if device else otherwise
