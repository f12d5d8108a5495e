"""The KV equation: every form of cache is stated truly, and the calculation comes out exactly."""

from __future__ import annotations

import ast
import operator
import re
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    LayerSpec,
    StateSpec,
)
from engine.budget.sequence_state import (
    architecture_bytes,
    constant_bytes,
    equation,
    resolve_kv_dtype,
    sequence_equation,
)
from engine.errors import DeploymentError

if TYPE_CHECKING:
    from collections.abc import Callable

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
}
_WORDS = re.compile(r"\((?:last|and|latent|the encoder's)[^)]*\)| for [\d,]+ tokens|[^\d+×()]")


def worked_out(calculation: str) -> int:
    """The value of ``2 × 32 layers × 8 heads × 128 × 2 B``: words are left out."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        assert isinstance(node, ast.Constant)
        assert isinstance(node.value, int)
        return node.value

    text = _WORDS.sub("", calculation).replace("×", "*")
    return value(ast.parse(text, mode="eval").body)


def spec_of(*layers: LayerSpec, dtype: str = "bfloat16") -> ArchitectureSpec:
    return ArchitectureSpec(
        model_type="test",
        layers=layers,
        outer=(),
        mtp=(),
        hidden_size=1024,
        vocab_size=1000,
        max_position_embeddings=262_144,
        dtype=dtype,
        tie_word_embeddings=False,
        weight_format="bf16",
    )


def latent(**more: int) -> AttentionSpec:
    sizes: dict[str, Any] = {
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
    } | more
    return AttentionSpec(AttentionKind.LATENT, 128, 128, 192, 128, **sizes)


DELTA = LayerSpec((), state=StateSpec("gated_delta_net", 8192, 4, 32 * 128 * 128, 32, "float32"))
FORMS: dict[str, tuple[ArchitectureSpec, str, str]] = {
    # Form -> layers, KV dtype, and a part of the equation that it has to be stated by.
    "grouped heads": (
        spec_of(*[LayerSpec((), AttentionSpec(AttentionKind.FULL, 32, 8, 128, 128))] * 3),
        "bfloat16", "2 × 3 layers × 8 heads × 128 × 2 B",
    ),
    "keys wider than values": (
        spec_of(LayerSpec((), AttentionSpec(AttentionKind.FULL, 64, 4, 192, 128))),
        "fp8", "1 layer × 4 heads × (192 + 128) × 1 B",
    ),
    "scales beside": (
        spec_of(LayerSpec((), AttentionSpec(AttentionKind.FULL, 32, 8, 128, 128))),
        "int8_per_token_head", "1 layer × 8 heads × 264 B",
    ),
    "a row of all heads": (
        spec_of(LayerSpec((), AttentionSpec(AttentionKind.FULL, 32, 2, 80, 80))),
        "q8_0", "1 layer × 2 heads × 170 B",
    ),
    "latents": (spec_of(LayerSpec((), latent())), "bfloat16", "1 layer × (512 + 64) × 2 B"),
    "packed latents": (
        spec_of(LayerSpec((), latent())), "fp8_ds_mla",
        "1 layer × 656 B (latent 512 + 64, packed)",
    ),
    "latents and an index": (
        spec_of(LayerSpec((), latent(index_head_dim=128))), "bfloat16",
        "1 layer × ((512 + 64) × 2 B + 132 B of the index's keys)",
    ),
    "an index alone": (
        spec_of(LayerSpec((), latent(kv_lora_rank=0, qk_rope_head_dim=0, index_head_dim=128))),
        "fp8_ds_mla", "1 layer × 132 B of the index's keys",
    ),
    "grouped heads and an index": (
        spec_of(LayerSpec((), AttentionSpec(
            AttentionKind.FULL, 64, 4, 128, 128, index_head_dim=128))),
        "fp8", "1 layer × (2 × 4 heads × 128 × 1 B + 256 B of the index's keys)",
    ),
    "two caches a layer": (
        spec_of(*[LayerSpec((), latent(caches=2))] * 28), "bfloat16",
        "28 layers × 2 caches × (512 + 64) × 2 B",
    ),
    "learned tokens in front": (
        spec_of(LayerSpec((), AttentionSpec(
            AttentionKind.FULL, 32, 32, 128, 128, prefix_tokens=32))),
        "float16", "(and 32 tokens before every sequence)",
    ),
    "an encoder's tokens": (
        spec_of(LayerSpec(
            (), AttentionSpec(AttentionKind.FULL, 20, 20, 64, 64),
            cross=AttentionSpec(AttentionKind.CROSS, 20, 20, 64, 64, 1500))),
        "float16", "2 × 1 cross-attention layer × 20 heads × 64 × 2 B (the encoder's 1,500 tokens)",
    ),
    "chunks": (
        spec_of(LayerSpec((), AttentionSpec(AttentionKind.CHUNKED, 40, 8, 128, 128, 8192))),
        "bfloat16", "(last 8,192 tokens)",
    ),
    "a window of latents": (
        spec_of(LayerSpec((), latent(window=512)), LayerSpec((), latent())),
        "bfloat16", "1 layer × (512 + 64) × 2 B (last 512 tokens)",
    ),
    "no cache of its own": (
        spec_of(
            LayerSpec((), AttentionSpec(AttentionKind.FULL, 8, 2, 256, 256)),
            LayerSpec((), AttentionSpec(
                AttentionKind.FULL, 8, 2, 256, 256, keeps_cache=False)),
        ),
        "bfloat16", "2 × 1 layer × 2 heads × 256 × 2 B = 2,048 B a token",
    ),
    "states beside attention": (
        spec_of(DELTA, LayerSpec((), AttentionSpec(AttentionKind.FULL, 16, 2, 256, 256))),
        "bfloat16", "2 × 1 layer × 2 heads × 256 × 2 B",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_that_a_form_is_stated_as_what_it_is(form: str) -> None:
    spec, kv_dtype, part = FORMS[form]
    assert part in equation(spec, kv_dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("context", [1, 100, 5000, 131_072])
def test_that_the_equation_of_a_form_comes_out(form: str, context: int) -> None:
    spec, kv_dtype, _ = FORMS[form]
    holds_up(spec, kv_dtype, context)


@pytest.mark.parametrize(
    "model_type",
    [
        "deepseek_v3", "deepseek_v32", "deepseek_v4", "glm_moe_dsa", "minimax_m3_vl_text",
        "longcat_flash", "cpmant", "mimo_v2_flash", "kimi_linear", "gemma3n_text", "gemma4_text",
        "llama4_text", "whisper", "t5", "mllama_text_model", "qwen3_next", "nemotron_h", "lfm2",
        "mamba2", "jamba", "xlnet", "bert", "mistral_large4_text", "dots3_note_text", "dory",
    ],
)  # fmt: skip
def test_that_the_equation_of_a_model_comes_out(model_type: str) -> None:
    spec = specify({"model_type": model_type})
    for kv_dtype in ("bfloat16", "fp8", "int8_per_token_head", "q8_0", "q4_0"):
        for context in (1, 77, 4096, 100_000):
            holds_up(spec, kv_dtype, context)


def holds_up(spec: ArchitectureSpec, kv_dtype: str, context: int) -> None:
    whole = architecture_bytes(spec, kv_dtype, context)
    stated = sequence_equation(spec, kv_dtype, context)
    if " = " not in stated:
        assert whole == constant_bytes(spec)
        return
    assert stated.endswith(f" = {whole:,} B a sequence")
    calculation = stated.rsplit(" = ", 1)[0]
    if "; × " in calculation:
        each, times = calculation.split("; × ")
        product, sum_of_it = each.split(" = ")
        assert worked_out(product) == worked_out(sum_of_it)
        assert worked_out(sum_of_it) * worked_out(times) == whole
    else:
        assert worked_out(calculation) == whole


def test_that_the_published_vectors_of_a_token_come_out() -> None:
    # DeepSeek-V3: 61 latents of 512 + 64; Qwen3-Next: 12 full layers and 36 states in 32 bits.
    deepseek = spec_of(*[LayerSpec((), latent())] * 61)
    assert architecture_bytes(deepseek, "bfloat16", 1) == 70_272
    assert architecture_bytes(deepseek, "fp8", 1) == 61 * 576
    assert architecture_bytes(deepseek, "fp8_ds_mla", 1) == 40_016
    assert architecture_bytes(deepseek, "nvfp4_ds_mla", 1) == 61 * 352
    attention = LayerSpec((), AttentionSpec(AttentionKind.FULL, 16, 2, 256, 256))
    following = spec_of(*[DELTA] * 36, *[attention] * 12)
    assert constant_bytes(following) == 77_266_944
    assert architecture_bytes(following, "bfloat16", 1) == 77_266_944 + 24_576


def test_that_a_state_without_a_dtype_has_the_one_the_model_runs_in() -> None:
    state = LayerSpec((), state=StateSpec("mamba", 5120, 4, 5120 * 16, 1))
    spec = spec_of(state, dtype="float32")
    assert constant_bytes(spec) == (5120 * 3 + 5120 * 16) * 4
    assert constant_bytes(spec, dtype="bfloat16") == (5120 * 3 + 5120 * 16) * 2
    stated = sequence_equation(spec, "bfloat16", 8, "bfloat16")
    assert stated == f"{(5120 * 3 + 5120 * 16) * 2:,} B of constant state a sequence"


@pytest.mark.parametrize(
    ("model_type", "kv_dtype"),
    [
        ("llama", "fp8_ds_mla"), ("llama", "nvfp4_ds_mla"), ("deepseek_v3", "nvfp4"),
        ("deepseek_v4", "nvfp4_ds_mla"),
    ],
)  # fmt: skip
def test_that_a_layout_of_another_form_is_refused(model_type: str, kv_dtype: str) -> None:
    with pytest.raises(DeploymentError, match=kv_dtype) as caught:
        resolve_kv_dtype(specify({"model_type": model_type}), kv_dtype, "bfloat16")
    assert caught.value.field == "kv_cache_dtype"


@pytest.mark.parametrize(
    ("model_type", "kv_dtype"),
    [
        ("deepseek_v3", "fp8_ds_mla"), ("deepseek_v32", "nvfp4_ds_mla"), ("llama", "nvfp4"),
        ("deepseek_v4", "fp8_ds_mla"), ("llama", "auto"),
    ],
)  # fmt: skip
def test_that_a_layout_of_the_form_is_taken(model_type: str, kv_dtype: str) -> None:
    found = resolve_kv_dtype(specify({"model_type": model_type}), kv_dtype, "bfloat16")
    assert found == ("bfloat16" if kv_dtype == "auto" else kv_dtype)
