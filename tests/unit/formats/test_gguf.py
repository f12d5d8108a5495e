"""Block types, and the mixes of llama-quantize for Llama-3.1-8B."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.formats.gguf import TYPES, row_bytes, tensor_bytes
from engine.formats.mix_rules import MixFacts
from engine.formats.mixes import MIXES, mix_types
from engine.units import GIB

_LLAMA = MixFacts("llama", 32, 32, 8)


def _llama_8b() -> list[tuple[str, tuple[int, ...]]]:
    tensors: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (4096, 128256)),
        ("output_norm.weight", (4096,)),
        ("output.weight", (4096, 128256)),
        ("rope_freqs.weight", (64,)),
    ]
    for i in range(32):
        tensors += [
            (f"blk.{i}.attn_norm.weight", (4096,)),
            (f"blk.{i}.attn_q.weight", (4096, 4096)),
            (f"blk.{i}.attn_k.weight", (4096, 1024)),
            (f"blk.{i}.attn_v.weight", (4096, 1024)),
            (f"blk.{i}.attn_output.weight", (4096, 4096)),
            (f"blk.{i}.ffn_norm.weight", (4096,)),
            (f"blk.{i}.ffn_gate.weight", (4096, 14336)),
            (f"blk.{i}.ffn_up.weight", (4096, 14336)),
            (f"blk.{i}.ffn_down.weight", (14336, 4096)),
        ]
    return tensors


def _size(mix: str) -> int:
    types = mix_types(mix, _llama_8b(), _LLAMA)
    return sum(tensor_bytes(types[name], shape) for name, shape in _llama_8b())


@pytest.mark.parametrize(
    ("ggml_type", "bits"),
    [
        # ggml-common.h block layouts, bits per weight.
        ("F16", 16),
        ("Q4_0", 4.5),
        ("Q5_1", 6),
        ("Q8_0", 8.5),
        ("Q2_K", 2.625),
        ("Q4_K", 4.5),
        ("Q6_K", 6.5625),
        ("IQ4_XS", 4.25),
        ("IQ1_S", 1.5625),
        ("MXFP4", 4.25),
        ("NVFP4", 4.5),
    ],
)
def test_that_block_types_have_their_published_width(ggml_type: str, bits: float) -> None:
    assert TYPES[ggml_type].bits == bits
    assert row_bytes(ggml_type, 4096) == 4096 * bits / 8


def test_that_a_row_of_no_whole_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="2880"):
        row_bytes("Q4_K", 2880)


@pytest.mark.parametrize(
    ("mix", "gib"),
    [
        # llama-quantize --dry-run, Llama-3.1-8B.
        ("Q2_K", 2.953),
        ("Q3_K_S", 3.406),
        ("Q3_K_M", 3.736),
        ("Q3_K_L", 4.018),
        ("Q4_0", 4.334),
        ("Q4_K_S", 4.363),
        ("Q4_K_M", 4.575),
        ("Q5_K_S", 5.207),
        ("Q5_K_M", 5.332),
        ("Q6_K", 6.136),
        ("Q8_0", 7.947),
        ("IQ4_XS", 4.169),
        ("IQ4_NL", 4.377),
        ("IQ3_M", 3.518),
        ("IQ3_S", 3.422),
        ("IQ3_XS", 3.270),
        ("IQ3_XXS", 3.154),
        ("IQ2_M", 2.739),
        ("IQ2_XS", 2.420),
        ("IQ2_XXS", 2.227),
        ("IQ1_M", 2.006),
        ("IQ1_S", 1.874),
    ],
)
def test_that_a_mix_takes_the_size_that_llama_quantize_states(mix: str, gib: float) -> None:
    assert _size(mix) / GIB == pytest.approx(gib, abs=0.0006)


def test_that_q4_k_m_of_llama_8b_is_the_published_file_to_the_byte() -> None:
    # The tensor bytes of the real file; it is 4.92 GB with its vocabulary.
    assert _size("Q4_K_M") == 4_912_898_304


def test_that_q4_k_m_gives_half_the_layers_a_wider_value_and_down_projection() -> None:
    types = mix_types("Q4_K_M", _llama_8b(), _LLAMA)
    for part in ("attn_v", "ffn_down"):
        found = Counter(kind for name, kind in types.items() if part in name)
        assert found == {"Q6_K": 16, "Q4_K": 16}
    assert types["output.weight"] == "Q6_K"
    assert types["token_embd.weight"] == "Q4_K"


def test_that_rows_a_type_cannot_hold_fall_back_to_one_that_can() -> None:
    tensors: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (2880, 1000)),
        ("output.weight", (2880, 1000)),
        ("blk.0.ffn_up.weight", (2880, 2880)),
    ]
    types = mix_types("Q4_K_M", tensors, MixFacts("gpt-oss", 24, 64, 8))
    assert types["blk.0.ffn_up.weight"] == "Q5_0"
    assert types["output.weight"] == "Q8_0"


def test_that_mxfp4_moe_packs_experts_alone() -> None:
    tensors: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (2880, 1000)),
        ("output.weight", (2880, 1000)),
        ("blk.0.attn_q.weight", (2880, 4096)),
        ("blk.0.ffn_gate_inp.weight", (2880, 32)),
        ("blk.0.ffn_up_exps.weight", (2880, 2880, 32)),
    ]
    types = mix_types("MXFP4_MOE", tensors, MixFacts("gpt-oss", 24, 64, 8, 32))
    assert types == {
        "token_embd.weight": "Q8_0",
        "output.weight": "Q8_0",
        "blk.0.attn_q.weight": "Q8_0",
        "blk.0.ffn_gate_inp.weight": "F32",
        "blk.0.ffn_up_exps.weight": "MXFP4",
    }


def test_that_every_mix_names_a_type_that_exists() -> None:
    assert set(MIXES.values()) <= set(TYPES)
    for mix in MIXES:
        assert _size(mix) > GIB
