"""GGUF files with a real architecture and no weights: a true header, the data left as a hole.

``no_vocab`` makes llama.cpp invent as many tokens as ``<architecture>.vocab_size`` says.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_MIX_NUMBERS = {"F16": 1, "Q8_0": 7, "Q4_K_M": 15}


@dataclass(frozen=True)
class Dense:
    """A decoder of the Llama or Qwen2 kind."""

    architecture: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    qkv_bias: bool = False
    tied: bool = True
    extra: dict[str, int] = field(default_factory=dict[str, int])

    def metadata(self) -> dict[str, int | float]:
        """Keys without the architecture's prefix."""
        return {
            "context_length": self.context,
            "embedding_length": self.hidden,
            "block_count": self.layers,
            "feed_forward_length": self.intermediate,
            "attention.head_count": self.heads,
            "attention.head_count_kv": self.kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "rope.dimension_count": self.head_dim,
            "rope.freq_base": 500000.0,
            "attention.layer_norm_rms_epsilon": 1e-5,
            "vocab_size": self.vocabulary,
            **self.extra,
        }

    def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes in ggml order."""
        hidden, width = self.hidden, self.head_dim
        q, kv = self.heads * width, self.kv_heads * width
        found: list[tuple[str, tuple[int, ...]]] = [
            ("token_embd.weight", (hidden, self.vocabulary)),
            ("output_norm.weight", (hidden,)),
        ]
        if not self.tied:
            found.append(("output.weight", (hidden, self.vocabulary)))
        for i in range(self.layers):
            block = f"blk.{i}."
            found += [
                (f"{block}attn_norm.weight", (hidden,)),
                (f"{block}attn_q.weight", (hidden, q)),
                (f"{block}attn_k.weight", (hidden, kv)),
                (f"{block}attn_v.weight", (hidden, kv)),
                (f"{block}attn_output.weight", (q, hidden)),
                (f"{block}ffn_norm.weight", (hidden,)),
                (f"{block}ffn_gate.weight", (hidden, self.intermediate)),
                (f"{block}ffn_up.weight", (hidden, self.intermediate)),
                (f"{block}ffn_down.weight", (self.intermediate, hidden)),
            ]
            if self.qkv_bias:
                for name, rows in (("q", q), ("k", kv), ("v", kv)):
                    found.append((f"{block}attn_{name}.bias", (rows,)))
        return found


LLAMA_1B = Dense("llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072)
"""The shape of Llama-3.2-1B."""
QWEN_HALF_B = Dense("qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, qkv_bias=True)
"""The shape of Qwen2.5-0.5B: rows of 896 that K-quants cannot hold."""


def write(
    model: Dense, types: dict[str, str], path: Path, mix: str = "Q4_K_M", *, speaks: bool = False
) -> Path:
    """A sparse GGUF of ``model`` whose tensors have the given ggml types.

    Needs the ``gguf`` package. One that ``speaks`` has tokens for bytes, so that text goes in.
    """
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(str(path), model.architecture)
    writer.add_string("general.name", path.stem)
    writer.add_uint32("general.file_type", _MIX_NUMBERS.get(mix, 0))
    for key, value in model.metadata().items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"{model.architecture}.{key}", value)
    if speaks:
        _add_bytes(writer, model.vocabulary)
    else:
        writer.add_string("tokenizer.ggml.model", "no_vocab")
    size = 0
    for name, shape in model.tensors():
        kind = gguf.GGMLQuantizationType[types[name]]
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        stored = shape[0] // block * block_bytes * int(np.prod(shape[1:], dtype=np.int64))
        writer.add_tensor_info(
            name, list(reversed(shape)), np.dtype(np.float32), stored, raw_dtype=kind
        )
        size += -(-stored // 32) * 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    file = writer.fout[0]
    writer.write_padding(file, file.tell())
    start = file.tell()
    file.flush()
    writer.close()
    os.truncate(path, start + size)
    return path


def _add_bytes(writer: Any, count: int) -> None:
    """A vocabulary of SentencePiece's kind: three of control, 256 bytes, the rest never met."""
    special = ["<unk>", "<s>", "</s>"]
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += [f"<unused{i}>" for i in range(count - len(tokens))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * count)
    writer.add_token_types([2, 3, 3, *[6] * 256, *[5] * (count - 259)])
