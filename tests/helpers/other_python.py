"""Small programs that answer as a Python with torch and transformers does."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Llama-3.1-8B by hand: V x H twice; per layer 2 H² + 2 H x 1024, 3 H x 14336, two norms; one norm.
H, V, KV, INNER = 4096, 128_256, 1024, 14_336
LAYER = {
    "self_attn.q_proj": [H, H], "self_attn.k_proj": [KV, H], "self_attn.v_proj": [KV, H],
    "self_attn.o_proj": [H, H], "mlp.gate_proj": [INNER, H], "mlp.up_proj": [INNER, H],
    "mlp.down_proj": [H, INNER], "input_layernorm": [H], "post_attention_layernorm": [H],
}  # fmt: skip
TENSORS = [
    ["model.embed_tokens.weight", [V, H]], ["lm_head.weight", [V, H]], ["model.norm.weight", [H]],
    *([f"model.layers.{i}.{n}.weight", s] for i in range(32) for n, s in LAYER.items()),
]  # fmt: skip


def stand_in(folder: Path, answer: str) -> Path:
    """A program that says it has torch, takes a config and answers with ``answer``."""
    path = folder / "python-with-torch"
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if sys.argv[1] == '-c':\n    sys.exit(0)\n"
        f"sys.stdin.read()\n{answer}\n"
    )
    path.chmod(0o755)
    return path


def answering(folder: Path, found: object) -> Path:
    (folder / "answer.json").write_text(json.dumps(found))
    return stand_in(folder, f"print(open({str(folder / 'answer.json')!r}).read())")


def built(tensors: object) -> dict[str, object]:
    return {"class": "LlamaForCausalLM", "tensors": tensors, "torch": "2", "transformers": "5"}
