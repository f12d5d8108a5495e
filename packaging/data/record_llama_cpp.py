"""llama.cpp's own allocations: the runs, and the shapes of the files they were made with.

The shapes and the type of every tensor come from the corpus's own programs (``scripts/``, which
need the ``gguf`` package), not from ours.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_LAYER = re.compile(r"^blk\.(\d+)\.")
_DEFAULTS: dict[str, Any] = {
    "n_ctx": 8192, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "type_k": "f16",
    "type_v": "f16", "fa": "on", "swa_full": False, "kv_unified": False, "n_outputs_max": 0,
}  # fmt: skip
"""Settings of most runs: a run names those that differ."""
_ALL_BUT_THE_OUTPUT = -2
"""The corpus's word for every layer on the device, and the output matrix not."""


def runs(folder: Path) -> list[dict[str, Any]]:
    """Every run with bytes: what was asked, and what each buffer took."""
    found: list[dict[str, Any]] = []
    for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        if "bytes" not in raw:
            continue
        settings = {k: v for k, v in raw["settings"].items() if _DEFAULTS.get(k) != v}
        load = {k: v for k, v in raw["load"].items() if k != "use_extra_bufts"}
        if load.get("n_gpu_layers") == _ALL_BUT_THE_OUTPUT:
            load["n_gpu_layers"] = raw["shape"]["n_layer"]
        one = {
            "id": raw["id"],
            "build": raw["llama_cpp"].partition(" ")[0],
            "backend": raw["backend"],
            "model": raw["model"],
            "file_type": raw["file_type"],
            "load": load,
            "settings": settings,
            "bytes": {
                name: [held["model"], held["context"], held["compute"]]
                for name, held in raw["bytes"].items()
            },
            "output_mib": raw["printed"]["output"][0][1],
        }
        found.append(one)
    return found


def shapes(folder: Path) -> list[dict[str, Any]]:
    """Metadata and tensors of every file that a run was made with."""
    quantmix, specs = _program(folder, "quantmix"), _program(folder, "shapes").all_specs()
    pairs = dict.fromkeys((run["model"], run["file_type"]) for run in runs(folder))
    found: list[dict[str, Any]] = []
    for name, file_type in pairs:
        shape = specs[name]
        metadata = {"general.architecture": shape.arch}
        metadata |= {f"{shape.arch}.{key}": _folded(value) for key, value in shape.kv.items()}
        tensors: dict[tuple[str, str, tuple[int, ...], int], list[int]] = {}
        for tensor, kind, ne, size in (
            (tensor, kind.name, tuple(ne), quantmix.nbytes(kind, ne))
            for tensor, ne, kind in quantmix.assign(shape, file_type)
        ):
            layer = _LAYER.match(tensor)
            key = (_LAYER.sub("blk.#.", tensor), kind, ne, size)
            tensors.setdefault(key, []).append(int(layer[1]) if layer else -1)
        listed = [[*key[:2], list(key[2]), key[3], _spans(at)] for key, at in tensors.items()]
        one = {"model": name, "file_type": file_type, "metadata": metadata, "tensors": listed}
        found.append(one)
    return found


def _folded(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    pairs: list[list[Any]] = []
    for item in value:
        if pairs and pairs[-1][0] == item:
            pairs[-1][1] += 1
        else:
            pairs.append([item, 1])
    return {"runs": pairs}


def _spans(layers: list[int]) -> list[list[int]]:
    """Sorted layer numbers as ``[first, last]`` pairs; nothing for a tensor outside the layers."""
    if layers == [-1]:
        return []
    spans: list[list[int]] = []
    for layer in sorted(layers):
        if spans and spans[-1][1] == layer - 1:
            spans[-1][1] = layer
        else:
            spans.append([layer, layer])
    return spans


def _program(folder: Path, name: str) -> Any:
    """One of the corpus's programs, loaded without writing bytecode beside it."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder / "scripts"))
    return importlib.import_module(name)
