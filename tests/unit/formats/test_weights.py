"""Stored bytes of weight formats, against the reference table for Llama-3.1-8B."""

from __future__ import annotations

import pytest

from engine.architecture.spec import ModuleClass, Tensor
from engine.formats.weights import FORMATS, excluded, plain_format, resident_dtype, tensor_bytes

_LINEARS = (
    ("self_attn.q_proj", 4096, 4096),
    ("self_attn.k_proj", 1024, 4096),
    ("self_attn.v_proj", 1024, 4096),
    ("self_attn.o_proj", 4096, 4096),
    ("mlp.gate_proj", 14336, 4096),
    ("mlp.up_proj", 14336, 4096),
    ("mlp.down_proj", 4096, 14336),
)


def _llama_8b(weight_format: str) -> int:
    def class_of(name: str) -> ModuleClass:
        return ModuleClass.ATTENTION if "attn" in name else ModuleClass.MLP

    linears = [
        Tensor(f"{name}.weight", class_of(name), (rows, columns), linear=True)
        for name, rows, columns in _LINEARS
    ]
    outer = (
        Tensor("model.embed_tokens.weight", ModuleClass.EMBEDDING, (128256, 4096)),
        Tensor("lm_head.weight", ModuleClass.LM_HEAD, (128256, 4096), linear=True),
    )
    norms = Tensor("norms", ModuleClass.NORM, (4096,), copies=65)
    layers = 32 * sum(tensor_bytes(t, weight_format, "bfloat16") for t in linears)
    return layers + sum(tensor_bytes(t, weight_format, "bfloat16") for t in (*outer, norms))


@pytest.mark.parametrize(
    ("weight_format", "expected_bytes"),
    [
        # Reference specification of LLM inference memory, section 1.4 (vectors.json).
        ("bf16", 16_060_522_496),
        ("awq-int4", 5_727_854_592),
        ("gptq-int4", 5_732_835_328),
        ("nf4", 5_702_540_160),
        ("nf4-plain", 6_027_761_664),
        ("int8", 9_086_705_664),
        ("fp8-channel", 9_086_705_664),
        ("fp8-block", 9_082_904_576),
        ("nvfp4", 6_027_749_120),
        ("mxfp4", 5_809_643_520),
        # By hand: 6,979,321,856 + 4 per linear + 2 x 1,050,939,392.
        ("fp8", 6_979_321_856 + 224 * 4 + 2 * 1_050_939_392),
        ("fp32", 4 * 8_030_261_248),
    ],
)
def test_that_llama_8b_takes_the_bytes_of_the_reference_table(
    weight_format: str, expected_bytes: int
) -> None:
    assert _llama_8b(weight_format) == expected_bytes


def test_that_mlx_also_packs_the_embedding_and_the_head() -> None:
    # Every matrix at 4.5 bits (64 weights: 32 bytes, scale and bias in bf16), norms in bf16.
    assert _llama_8b("mlx-4bit") == (8_030_261_248 - 266_240) * 9 // 16 + 2 * 266_240


def test_that_gpt_oss_20b_takes_its_published_bytes() -> None:
    # openai/gpt-oss-20b stores 13,761,264,768 bytes: experts MXFP4, the rest bf16.
    experts = (
        Tensor("mlp.experts.gate_up_proj", ModuleClass.EXPERTS, (5760, 2880), 32, linear=True),
        Tensor("mlp.experts.down_proj", ModuleClass.EXPERTS, (2880, 2880), 32, linear=True),
    )
    packed = 24 * sum(tensor_bytes(t, "mxfp4", "bfloat16") for t in experts)
    others = 20_914_757_184 - 24 * sum(t.parameters for t in experts)
    assert packed == 10_152_345_600
    assert packed + 2 * others == 13_761_264_768


def test_that_blocks_round_up() -> None:
    odd = Tensor("w.weight", ModuleClass.MLP, (129, 130), linear=True)
    assert tensor_bytes(odd, "fp8-block", "bfloat16") == 129 * 130 + 4 * 2 * 2
    assert tensor_bytes(odd, "mxfp4", "bfloat16") == 129 * (65 + 5)
    assert tensor_bytes(odd, "nvfp4", "bfloat16") == 129 * (65 + 9) + 8


def test_that_a_router_and_a_vision_tower_stay_as_they_are() -> None:
    router = Tensor("mlp.gate.weight", ModuleClass.ROUTER, (128, 2048), linear=True)
    tower = Tensor("vision.blocks.0.qkv.weight", ModuleClass.VISION, (3456, 1152), linear=True)
    for tensor in (router, tower):
        assert tensor_bytes(tensor, "fp8-block", "bfloat16") == 2 * tensor.parameters


def test_that_listed_modules_stay_as_they_are() -> None:
    gate = Tensor("mlp.shared_expert_gate.weight", ModuleClass.SHARED_EXPERTS, (1, 64), linear=True)
    assert tensor_bytes(gate, "fp8", "bfloat16", ("shared_expert_gate",)) == 2 * 64
    assert tensor_bytes(gate, "fp8", "bfloat16") == 64 + 4


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("lm_head", "lm_head.weight", True),
        ("self_attn", "self_attn.q_proj.weight", True),
        ("attn", "self_attn.q_proj.weight", False),
        ("model.layers.*.self_attn", "self_attn.q_proj.weight", True),
        ("model.layers.*.mlp.gate", "mlp.gate_proj.weight", False),
        ("re:.*mlp.gate$", "mlp.gate.weight", True),
        ("re:.*mlp.gate$", "mlp.gate_proj.weight", False),
        (r"re:model\.layers\.\d+\.self_attn\..*", "self_attn.o_proj.weight", True),
        ("re:vision_tower.*", "vision_tower.patch.weight", True),
        ("model.layers.0.mlp", "mlp.up_proj.weight", False),
        ("re:(", "mlp.up_proj.weight", False),
    ],
)
def test_that_exclusion_patterns_mean_what_their_makers_mean(
    pattern: str, path: str, *, expected: bool
) -> None:
    assert excluded(path, (pattern,)) is expected


def test_that_an_unknown_dtype_is_refused_and_never_guessed() -> None:
    tensor = Tensor("w", ModuleClass.NORM, (4,))
    with pytest.raises(ValueError, match="float13"):
        tensor_bytes(tensor, "fp8", "float13")


def test_that_plain_formats_and_dtypes_name_each_other() -> None:
    assert plain_format("torch.bfloat16") == "bf16"
    assert plain_format("F16") == "fp16"
    assert plain_format("int8") is None
    assert resident_dtype("fp16", "bfloat16") == "float16"
    assert resident_dtype("awq-int4", "bfloat16") == "bfloat16"


def test_that_nominal_bits_agree_with_a_large_matrix() -> None:
    big = Tensor("w.weight", ModuleClass.MLP, (8192, 8192), linear=True)
    for name, chosen in FORMATS.items():
        bits = 8 * tensor_bytes(big, name, "bfloat16") / big.parameters
        assert bits == pytest.approx(chosen.bits, rel=0.002)
