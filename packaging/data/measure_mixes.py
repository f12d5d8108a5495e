"""Ask llama.cpp's own quantiser which type it gives every tensor of a model in every mix.

Writes small GGUF files (a true header, zeros for data) of models that its rules tell apart and
runs ``llama-quantize --dry-run`` on each. One line a model: its tensors, and for every mix the
types of each kind of tensor. Under "" is the type of every kind that is not listed; norms and
the like, which stay in F32, are left out.

    python packaging/data/measure_mixes.py LLAMA_QUANTIZE tests/evidence/gguf_mixes.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.formats.mixes import MIXES, converted_type
from tests.helpers import synthetic_gguf

LINE = re.compile(
    r"\s*\[\s*\d+/\s*\d+\]\s+(\S+)\s+- \[.*?\], type =\s*(\S+), size = .*?(?:\((\S+)\))?$"
)


@dataclass(frozen=True)
class Case(synthetic_gguf.Dense):
    """A decoder with fused attention, experts or shared experts where asked."""

    layers: int
    hidden: int = 512
    intermediate: int = 1024
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 64
    vocabulary: int = 512
    context: int = 128
    tied: bool = False
    fused: bool = False
    experts: int = 0
    shared: bool = False
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    def metadata(self) -> dict[str, int | float]:
        """Keys without the architecture's prefix."""
        found = super().metadata()
        if self.experts:
            found |= {"expert_count": self.experts, "expert_used_count": 2}
            found["expert_feed_forward_length"] = 256
            found["expert_shared_feed_forward_length"] = 256
        return {"attention.layer_norm_epsilon": 1e-5, **found}

    def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes in ggml order."""
        found = super().tensors()
        wide = self.hidden + 2 * self.kv_heads * self.head_dim
        if self.fused:
            found = [t for t in found if not re.search(r"attn_[qkv]\.|ffn_gate", t[0])]
            found += [(f"blk.{i}.attn_qkv.weight", (self.hidden, wide)) for i in range(self.layers)]
        if not self.experts:
            return found
        found = [t for t in found if not re.search(r"ffn_(gate|up|down)\.", t[0])]
        for i in range(self.layers):
            found.append((f"blk.{i}.ffn_gate_inp.weight", (self.hidden, self.experts)))
            for suffix in ("exps", "shexp") if self.shared else ("exps",):
                copies = (self.experts,) if suffix == "exps" else ()
                block = f"blk.{i}.ffn_"
                found.append((f"{block}gate_{suffix}.weight", (self.hidden, 256, *copies)))
                found.append((f"{block}up_{suffix}.weight", (self.hidden, 256, *copies)))
                found.append((f"{block}down_{suffix}.weight", (256, self.hidden, *copies)))
        return found


CASES = (
    Case("llama", 16),
    Case("llama", 16, tied=True),
    Case("llama", 20, kv_heads=8),
    Case("llama", 3, kv_heads=4),
    Case("llama", 80, kv_heads=1),
    Case("llama", 80, kv_heads=8),
    Case("qwen2", 80, kv_heads=1, qkv_bias=True),
    Case("qwen2", 80, kv_heads=8, qkv_bias=True),
    Case("deci", 80, kv_heads=1),
    Case("olmo", 80, kv_heads=1),
    Case("jais2", 68, kv_heads=8),
    Case("gemma2", 26, hidden=768, kv_heads=4, tied=True, extra={"attention.sliding_window": 64}),
    # Rows that blocks of 256, or even of 32, do not divide.
    Case("qwen2", 24, 896, 480, 14, tied=True, qkv_bias=True),
    Case("llama", 9, 320, 496, 5, 1),
    Case("llama", 4, 320, 500, 5, 1),
    Case("falcon", 32, kv_heads=1, fused=True),
    Case("phi3", 32, kv_heads=8, fused=True),
    Case("llama", 32, experts=8),
    Case("llama", 32, kv_heads=8, experts=8),
    Case("qwen3moe", 10, kv_heads=1, experts=16),
    Case("qwen2moe", 12, kv_heads=8, experts=4, shared=True),
    Case("qwen2moe", 12, kv_heads=8, experts=3, shared=True),
)


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("quantiser", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(measured(case, asked.quantiser, Path(folder))) for case in CASES]
    asked.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measured(case: Case, quantiser: Path, folder: Path) -> dict[str, Any]:
    """The types of ``case`` in every mix."""
    shapes = dict(case.tensors())
    types = {name: converted_type(_kind(name), len(shape)) for name, shape in shapes.items()}
    path = synthetic_gguf.write(case, types, folder / "model.gguf", "F16")
    mixes = {mix: _types(quantiser, path, mix, shapes) for mix in MIXES if mix != "F32"}
    path.unlink()
    return {
        "architecture": case.architecture,
        "num_layers": case.layers,
        "num_heads": case.heads,
        "num_kv_heads": case.kv_heads,
        "num_experts": case.experts,
        "outside": {n: s for n, s in shapes.items() if not n.startswith("blk.")},
        "block": {_kind(n): s for n, s in shapes.items() if n.startswith("blk.0.")},
        "mixes": mixes,
    }


def _kind(name: str) -> str:
    return re.sub(r"^blk\.\d+\.", "", name)


def _types(
    quantiser: Path, path: Path, mix: str, shapes: dict[str, Any]
) -> dict[str, str | dict[str, int]]:
    command = [str(quantiser), "--allow-requantize", "--dry-run", str(path), mix]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    kinds: dict[str, Counter[str]] = {}
    seen = 0
    for line in (run.stdout + run.stderr).splitlines():
        if found := LINE.match(line):
            seen += 1
            kinds.setdefault(_kind(found[1]), Counter())[(found[3] or found[2]).upper()] += 1
    if seen != len(shapes):
        message = f"{path.name} in {mix}: {seen} of {len(shapes)} tensors were named"
        raise RuntimeError(message)
    kinds = {kind: types for kind, types in kinds.items() if set(types) != {"F32"}}
    alike = Counter(next(iter(types)) for types in kinds.values() if len(types) == 1)
    usual = alike.most_common(1)[0][0]
    listed = {k: dict(t) if len(t) > 1 else next(iter(t)) for k, t in kinds.items()}
    return {"": usual, **{k: t for k, t in sorted(listed.items()) if t != usual}}


if __name__ == "__main__":
    main()
