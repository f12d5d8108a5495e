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


# Llama-3.1-8B by hand: the linears are 6,979,321,856 weights in 224 matrices, everything else
# 1,050,939,392 in bf16; a group of AWQ or GPTQ costs 2.5 bytes at 4 bits (fp16 scale, 4-bit zero).
_LINEAR = 6_979_321_856
_BF16 = 2 * 1_050_939_392


@pytest.mark.parametrize(
    ("weight_format", "expected_bytes"),
    [
        # 2.5 x linear / 32 = 545,259,520 in place of 136,314,880 at groups of 128.
        ("awq-int4-g32", 5_727_854_592 + 545_259_520 - 136_314_880),
        ("awq-int4-g64", 5_727_854_592 + 136_314_880),
        # The group index, 4 bytes a column: 32 layers x (6 x 4,096 + 14,336) columns.
        ("gptq-int4-g32", 5_727_854_592 + 408_944_640 + 32 * (6 * 4096 + 14336) * 4),
        # One group a row: 2.5 bytes a row; 1,376,256 rows in all.
        ("gptq-int4-channel-no-order", _LINEAR // 2 + 1_376_256 * 5 // 2 + _BF16),
        # 3 bytes a group: fp16 scale and an 8-bit zero point.
        ("gptq-int8-g32-no-order", _LINEAR + 3 * _LINEAR // 32 + _BF16),
        # bf16 scales, and two int64 a matrix that say its shape.
        ("w4a16-g64", _LINEAR // 2 + 2 * _LINEAR // 64 + 224 * 16 + _BF16),
        ("w4a16-zp", _LINEAR // 2 + 5 * _LINEAR // 256 + 224 * 16 + _BF16),
        ("w8a16-channel", _LINEAR + 2 * 1_376_256 + 224 * 16 + _BF16),
        ("int8-g32", _LINEAR + 2 * _LINEAR // 32 + _BF16),
        # A scale for 64 x 64 values: 4 bytes for 4,096.
        ("fp8-block-64x64", _LINEAR + _LINEAR // 1024 + _BF16),
        # 32 weights: 16 bytes of values, scale and bias in bf16: 5 bits a weight.
        ("mlx-4bit-g32", (8_030_261_248 - 266_240) * 5 // 8 + 2 * 266_240),
    ],
)
def test_that_a_group_of_another_size_takes_its_own_bytes(
    weight_format: str, expected_bytes: int
) -> None:
    assert _llama_8b(weight_format) == expected_bytes


def test_that_the_rows_of_llama_8b_are_counted_right_above() -> None:
    assert sum(rows for _, rows, _ in _LINEARS) * 32 == 1_376_256


@pytest.mark.parametrize(
    "name", ["awq-int4-g0", "awq-int3", "gptq-int5", "fp8-block-0x0", "w4a16-g", "mlx-4bit-g48"]
)
def test_that_no_format_has_a_nonsensical_name(name: str) -> None:
    assert name not in FORMATS


def test_that_relatives_are_found_by_name_and_not_listed() -> None:
    assert FORMATS["awq-int4-g32"].bits == pytest.approx(4.625)
    assert FORMATS["awq-int4-g32"].label == "AWQ 4 bit, g32"
    assert "awq-int4-g32" not in list(FORMATS)
    assert all("-g32" not in name or name == "w4a16-g32" for name in FORMATS)


def test_that_a_named_head_is_packed_and_a_named_router_is_not() -> None:
    head = Tensor("lm_head.weight", ModuleClass.LM_HEAD, (128, 64), linear=True)
    router = Tensor("mlp.gate.weight", ModuleClass.ROUTER, (8, 64), linear=True)
    assert tensor_bytes(head, "fp8-ct", "bfloat16") == 2 * 128 * 64
    assert tensor_bytes(head, "fp8-ct", "bfloat16", is_named=True) == 128 * 64 + 2
    assert tensor_bytes(head, "fp8-ct", "bfloat16", ("lm_head",), is_named=True) == 2 * 128 * 64
    assert tensor_bytes(router, "fp8-ct", "bfloat16", is_named=True) == 2 * 8 * 64


def test_that_an_experts_gate_and_up_have_scales_of_their_own() -> None:
    stack = Tensor("mlp.experts.gate_up_proj", ModuleClass.EXPERTS, (384, 128), 4, linear=True)
    # Two matrices of 192 rows: two blocks of 128 rows each, where 384 rows would have three.
    assert tensor_bytes(stack, "fp8-block", "bfloat16") == 4 * (384 * 128 + 2 * 2 * 4)
    assert tensor_bytes(stack, "nvfp4", "bfloat16") == 4 * (384 * 72 + 2 * 8)
    assert tensor_bytes(stack, "gptq-int4", "bfloat16") == 4 * 2 * (192 * 66 + 96 + 4 * 128)


@pytest.mark.parametrize(
    ("weight_format", "size"),
    [
        # hqq 0.2.8 of a matrix of 480 x 320: W_q is 1200 x 64 bytes, 240 x 64 words in 3 bits;
        # 2,400 scales and zeros in bf16.
        ("hqq-int4-g64", 1200 * 64 + 2 * 2 * 2400),
        ("hqq-int8-g64", 2400 * 64 + 2 * 2 * 2400),
        ("hqq-int2-g64", 600 * 64 + 2 * 2 * 2400),
        ("hqq-int3-g64", 240 * 64 * 4 + 2 * 2 * 2400),
        ("hqq-int4-channel", 240 * 320 + 2 * 2 * 480),
    ],
)
def test_that_hqq_takes_the_bytes_of_its_own_modules(weight_format: str, size: int) -> None:
    matrix = Tensor("w.weight", ModuleClass.MLP, (480, 320), linear=True)
    assert tensor_bytes(matrix, weight_format, "bfloat16") == size
