from __future__ import annotations

from typing import Any

import pytest

from engine.config.nesting import root_facts, text_facts
from engine.config.quantisation import Stored, stored_format
from engine.errors import ConfigError
from engine.formats.weights import FORMATS


def stored(quantisation: dict[str, Any] | None, **rest: Any) -> Stored:
    config: dict[str, Any] = {"torch_dtype": "bfloat16", **rest}
    if quantisation is not None:
        config["quantization_config"] = quantisation
    root = root_facts(config)
    return stored_format(root, text_facts(root))


def group(**weights: Any) -> dict[str, Any]:
    return {"group_0": {"weights": weights, "targets": ["Linear"]}}


def packed(layout: str = "pack-quantized", **weights: Any) -> dict[str, Any]:
    weights = {"type": "int", **weights}
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "config_groups": group(**weights),
    }


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8", "weight_block_size": None}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8-channel"),
        ({"quant_method": "awq", "bits": 4}, "awq-int4"),
        ({"quant_method": "gptq", "bits": 4}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 8}, "gptq-int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4-plain"),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_use_double_quant": True,
            },
            "nf4",
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        # As first published: without a method, or with its maker's name before it.
        ({"load_in_8bit": True, "llm_int8_threshold": 6.0}, "int8"),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4"),
        (
            {"quant_method": "intel/auto-round", "bits": 4, "backend": "autoround:exllamav2"},
            "gptq-int4-no-order",
        ),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8-static"),
        ({"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}, "fp8-channel"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"}, "nvfp4-a16"),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8-static"),
        ({"quant_method": "eetq"}, "int8-fp16"),
        ({"quant_method": "bitnet", "linear_class": "autobitlinear"}, "bitnet"),
        (
            {"quant_method": "auto-round", "bits": 4, "data_type": "mx_fp", "group_size": 32},
            "mxfp4",
        ),
        ({"quantization": {"quant_algo": "NVFP4"}, "quant_method": "modelopt"}, "nvfp4"),
        (
            {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_gptq"},
            "gptq-int4-no-order",
        ),
        (
            {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_awq"},
            "awq-int4",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "float-quantized",
                "config_groups": group(num_bits=8, type="float", strategy="channel"),
            },
            "fp8-channel-ct",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "float-quantized",
                "config_groups": group(num_bits=8, type="float", strategy="tensor"),
            },
            "fp8-ct",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": group(num_bits=4, type="int", group_size=128),
            },
            "w4a16",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": group(num_bits=4, type="int", group_size=32),
            },
            "w4a16-g32",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "int-quantized",
                "config_groups": group(num_bits=8, type="int", strategy="channel"),
            },
            "int8-ct",
        ),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "nvfp4"),
    ],
)
def test_that_a_method_is_known_by_its_name_in_the_formats(
    config: dict[str, Any], wanted: str
) -> None:
    found = stored(config)
    assert found.weight_format == wanted
    assert found.reason == ""
    assert wanted in FORMATS


@pytest.mark.parametrize(
    "config",
    [
        {"quant_method": "aqlm"},
        {"quant_method": "hqq"},
        {"quant_method": "awq", "bits": 3},
        {"quant_method": "gptq"},
        {"bits": 4},
        {"quant_method": 7},
        {"quant_method": "compressed-tensors"},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        {"quant_method": "fp8_of_tomorrow"},
    ],
)
def test_that_an_unknown_layout_is_said_to_be_unknown(config: dict[str, Any]) -> None:
    found = stored(config)
    assert found.weight_format == "bf16"
    assert "not known" in found.reason


@pytest.mark.parametrize("garbage", ["awq", [], [1], {}, 3, True])
def test_that_garbage_in_the_place_of_a_quantisation_is_refused(garbage: object) -> None:
    with pytest.raises(ConfigError, match=r"^quantization_config is .*quant_method") as caught:
        stored(None, quantization_config=garbage)
    assert caught.value.field == "quantization_config"


def test_that_null_is_no_quantisation() -> None:
    assert stored(None, quantization_config=None) == stored(None)


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("float16", "fp16"), ("torch.bfloat16", "bf16"), ("float32", "fp32"), ("auto", "bf16")],
)
def test_that_the_dtype_is_the_format_of_plain_weights(dtype: str, wanted: str) -> None:
    assert stored(None, torch_dtype=dtype).weight_format == wanted
    assert stored(None, torch_dtype=dtype).reason == ""


@pytest.mark.parametrize("dtype", ["float3", "int8", "weird", ""])
def test_that_no_dtype_of_weights_is_refused_with_those_there_are(dtype: str) -> None:
    with pytest.raises(ConfigError, match="bfloat16, float16 or float32 is needed") as caught:
        stored(None, torch_dtype=dtype)
    assert caught.value.field == "torch_dtype"


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "torch.float4_e2m1fn_x2"])
def test_that_a_narrow_dtype_without_a_layout_is_a_doubt(dtype: str) -> None:
    found = stored(None, torch_dtype=dtype)
    assert found.weight_format == "bf16"
    assert dtype.removeprefix("torch.") in found.reason


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 32}, "awq-int4-g32"),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, "awq-int4-g64"),
        ({"quant_method": "awq", "bits": 4, "group_size": -1}, "awq-int4-channel"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True}, "gptq-int4-g32"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "gptq-int4-channel"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, "gptq-int8-g32"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "gptq-int3"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "fp8-block-64x64"),
        ({"quant_method": "fp8", "weight_block_size": [1, 128]}, "fp8-block-1x128"),
        (packed(num_bits=4, group_size=64, strategy="group"), "w4a16-g64"),
        (packed(num_bits=4, strategy="channel"), "w4a16-channel"),
        (packed(num_bits=4, group_size=128, strategy="group", symmetric=False), "w4a16-zp"),
        (packed(num_bits=4, group_size=128, strategy="group", actorder="group"), "w4a16-order"),
        (packed(num_bits=4, group_size=128, strategy="group", actorder="weight"), "w4a16"),
        (packed(num_bits=8, group_size=32, strategy="group"), "w8a16-g32"),
        (packed("int-quantized", num_bits=8, group_size=32, strategy="group"), "int8-g32"),
        (packed("int-quantized", num_bits=8, strategy="channel", symmetric=False), "int8-ct-asym"),
        (
            packed(
                "float-quantized",
                num_bits=8,
                type="float",
                strategy="block",
                block_structure=[64, 128],
            ),
            "fp8-block-64x128-ct",
        ),
    ],
)
def test_that_the_stated_group_is_part_of_the_format(config: dict[str, Any], wanted: str) -> None:
    found = stored(config)
    assert found.weight_format == wanted
    assert found.reason == ""
    assert wanted in FORMATS


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 0}, "group_size"),
        ({"quant_method": "awq", "bits": 4, "group_size": -2}, "group_size"),
        ({"quant_method": "awq", "bits": 4, "group_size": "128"}, "group_size"),
        ({"quant_method": "awq", "bits": "x"}, "bits"),
        ({"quant_method": "gptq", "bits": 0}, "bits"),
        ({"quant_method": "gptq", "bits": 4.5}, "bits"),
        ({"quant_method": "gptq", "bits": 4, "desc_act": "maybe"}, "desc_act"),
        ({"quant_method": "fp8", "weight_block_size": [0, 0]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": "x"}, "weight_block_size"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": "yes"}, "load_in_4bit"),
        (
            packed(num_bits=4, group_size=0, strategy="group"),
            "config_groups.group_0.weights.group_size",
        ),
        ({"quant_method": "compressed-tensors", "config_groups": 4}, "config_groups"),
    ],
)
def test_that_nonsense_in_a_quantisation_names_the_field(
    config: dict[str, Any], field: str
) -> None:
    with pytest.raises(ConfigError, match="needed") as caught:
        stored(config)
    assert caught.value.field == f"quantization_config.{field}"


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "gemv"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "marlin"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*up.*": {"bits": 7}}}, "7 bits"),
        ({"quant_method": "gptq", "bits": 4, "modules_in_block_to_quantize": [["a"]]}, "modules"),
        (packed(num_bits=3, group_size=32, strategy="group"), "3 bits"),
        ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "torchao"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "int4"}}}, "int4"),
        (packed("marlin-24", num_bits=4, group_size=128), "sparsity"),
        (
            {
                **packed(num_bits=4, group_size=128),
                "sparsity_config": {"format": "sparse-24-bitmask"},
            },
            "sparsity",
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 32}, "32"),
        (
            {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
            | {"quantized_layers": {"a": {"quant_algo": "W4A8_AWQ"}}},
            "w4a8_awq",
        ),
    ],
)
def test_that_a_layout_beyond_these_rules_is_a_doubt_with_its_reason(
    config: dict[str, Any], part: str
) -> None:
    found = stored(config)
    assert found.weight_format == "bf16"
    assert part in found.reason


def test_that_modules_a_dynamic_rule_leaves_out_stay_unquantised() -> None:
    found = stored({"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*down.*": {}}})
    assert found.weight_format == "gptq-int4"
    assert found.unquantised == ("re:.*down.*",)


@pytest.mark.parametrize(
    ("quantisation", "wanted"),
    [
        ({"bits": 4, "group_size": 64}, "mlx-4bit"),
        ({"bits": 4, "group_size": 32}, "mlx-4bit-g32"),
        ({"bits": 3, "group_size": 64, "mode": "affine"}, "mlx-3bit"),
        ({"bits": 4, "group_size": 32, "mode": "mxfp4"}, "mlx-mxfp4"),
        ({"mode": "nvfp4"}, "mlx-nvfp4"),
    ],
)
def test_that_mlx_bits_and_groups_are_read(quantisation: dict[str, Any], wanted: str) -> None:
    assert stored(None, quantization=quantisation).weight_format == wanted
    # mlx-lm writes the same object under both names.
    assert stored(quantisation, quantization=quantisation).weight_format == wanted


@pytest.mark.parametrize(
    "quantisation",
    [
        {"bits": 4, "group_size": 48},
        {"bits": 7, "group_size": 64},
        {"bits": 4, "group_size": 64, "mode": "mxfp4"},
        {"bits": 4, "group_size": 64, "mode": "tomorrow"},
        {"bits": 4, "group_size": 16, "mode": "nvfp4", "global_scale": True},
        {"bits": 4, "group_size": 64, "model.layers.0.mlp.gate": {"bits": 7, "group_size": 64}},
    ],
)
def test_that_an_mlx_layout_beyond_these_rules_is_a_doubt(quantisation: dict[str, Any]) -> None:
    assert "MLX" in stored(None, quantization=quantisation).reason


def test_that_the_cache_dtype_of_a_checkpoint_is_read() -> None:
    scheme = {"num_bits": 8, "type": "float"}
    config = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": scheme}
    assert stored(config).kv_cache_dtype == "fp8"
    config = {"quant_method": "fp8", "kv_cache_scheme": "FP8"}
    assert stored(config).kv_cache_dtype == "fp8"
    assert stored({"quant_method": "fp8", "kv_cache_scheme": None}).kv_cache_dtype is None


def test_that_all_spellings_of_what_stays_unquantised_are_read() -> None:
    for key in ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules"):
        assert stored({"quant_method": "fp8", key: ["lm_head", 3]}).unquantised == ("lm_head",)


@pytest.mark.parametrize("key", ["quantization_config", "compression_config", "quantization"])
def test_that_an_empty_description_is_called_empty(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stored(None, **{key: {}})
    assert caught.value.message.startswith(f"{key} is empty; an object with")
    assert caught.value.field == key


@pytest.mark.parametrize(
    ("model_type", "wanted"),
    [
        # DeepSeek-V4 keeps one byte a tile; V3.1 and V3.2 keep powers of two in fp32.
        ("deepseek_v4", "fp8-block-e8m0"),
        ("deepseek_v32", "fp8-block"),
    ],
)
def test_that_scales_of_one_byte_are_told_from_those_in_fp32(model_type: str, wanted: str) -> None:
    config = {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}
    assert stored(config, model_type=model_type).weight_format == wanted


@pytest.mark.parametrize(
    ("config", "head"),
    [
        ({"quant_method": "gptq", "bits": 4, "lm_head": True}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 4}, ""),
        ({**packed(num_bits=4, group_size=128), "ignore": []}, "w4a16"),
        ({**packed(num_bits=4, group_size=128), "ignore": ["re:.*lm_head"]}, ""),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, ""),
        (
            {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["a"]},
            "int8",
        ),
        ({"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["visual"]}, ""),
        (
            {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
            | {"quantized_layers": {"lm_head": {"quant_algo": "W4A16_NVFP4"}}},
            "nvfp4-a16",
        ),
    ],
)
def test_that_a_head_is_quantised_where_a_list_does_not_leave_it_out(
    config: dict[str, Any], head: str
) -> None:
    assert stored(config).head_as == head


def test_that_transformers_5_leaves_stacked_experts_alone() -> None:
    config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    assert stored(config, transformers_version="5.24.0").experts_as == "bf16"
    assert stored(config, transformers_version="4.57.1").experts_as == ""


@pytest.mark.parametrize(
    ("quantisation", "rest", "direction", "part"),
    [
        (packed(num_bits=4, group_size=128), {}, "either", "which modules"),
        ({"quant_method": "fbgemm_fp8"}, {}, "lower", "attention"),
        (
            {"quant_method": "bitsandbytes", "load_in_8bit": True},
            {"num_experts": 8},
            "lower",
            "experts",
        ),
    ],
)
def test_that_what_a_quantisation_leaves_open_is_a_doubt_with_its_side(
    quantisation: dict[str, Any], rest: dict[str, Any], direction: str, part: str
) -> None:
    ((reason, way),) = stored(quantisation, **rest).doubts
    assert way == direction
    assert part in reason


def test_that_a_tower_of_which_nothing_is_said_is_named_by_itself() -> None:
    # A runtime that loads the text model alone has no use for this doubt: it is kept apart.
    found = stored(
        {"quant_method": "bitsandbytes", "load_in_8bit": True}, vision_config={"depth": 1}
    )
    assert "vision tower" in found.tower_unsaid
    assert not found.doubts


def test_that_mxfp4_packs_experts_alone_with_or_without_a_list() -> None:
    assert stored({"quant_method": "mxfp4"}).unquantised == ("self_attn",)
    listed = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    assert stored(listed).unquantised == ("model.layers.*.self_attn",)


def test_that_scales_of_the_cache_are_read_with_their_width() -> None:
    scheme = {"num_bits": 8, "type": "float", "dynamic": False}
    modelopt = {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": scheme}
    assert stored(modelopt).kv_scale_bytes == 8
    assert stored({"quant_method": "modelopt", "quant_algo": "FP8"}).kv_scale_bytes == 0
    compressed = {**packed(num_bits=4, group_size=128), "ignore": ["lm_head"]}
    assert stored({**compressed, "kv_cache_scheme": scheme}).kv_scale_bytes == 4
    assert stored({**compressed, "kv_cache_scheme": None}).kv_scale_bytes == 0
    assert stored({**compressed, "transform_config": {"config_groups": {}}}).doubts == (
        ("its transforms may keep matrices of their own, which are not counted", "lower"),
    )


def test_that_a_tower_on_the_list_is_no_doubt() -> None:
    config = {"quant_method": "fp8", "modules_to_not_convert": ["visual", "lm_head"]}
    assert stored(config, vision_config={"depth": 1}).doubts == ()


def test_that_modules_with_their_own_width_are_read() -> None:
    mlx = {"bits": 4, "group_size": 64, "model.layers.0.mlp.gate": {"bits": 8, "group_size": 64}}
    mlx |= {"model.layers.1.mlp.switch_mlp.down_proj": False, "lm_head": {"bits": 6}}
    found = stored(mlx, quantization=mlx)
    assert dict(found.by_module) == {
        "model.layers.0.mlp.gate": "mlx-8bit",
        "model.layers.1.mlp.experts.down_proj": "",
        "lm_head": "mlx-6bit",
    }
    assert not found.rest_is_plain
    assert found.head_as == "mlx-6bit"
    extra = {"model.layers.0.a": {"bits": 8}, "model.layers.0.b": {"bits": 16}}
    found = stored({"quant_method": "auto-round", "bits": 4, "extra_config": extra})
    assert dict(found.by_module) == {
        "model.layers.0.a": "gptq-int8-no-order",
        "model.layers.0.b": "",
    }


def test_that_expressions_give_modules_their_own_width_in_gptq() -> None:
    rules = {r"+:.*\.1\..*down.*": {"bits": 8, "group_size": 32}, "-:.*gate.*": {}}
    found = stored({"quant_method": "gptq", "bits": 4, "dynamic": rules})
    assert found.weight_format == "gptq-int4"
    assert found.targets == ((r"re:.*\.1\..*down.*", "gptq-int8-g32"), ("Linear", "gptq-int4"))
    assert found.unquantised == ("re:.*gate.*",)


def test_that_an_expression_of_auto_round_that_leaves_modules_alone_is_kept() -> None:
    extra = {r".*mlp\.gate.*": {"bits": 16, "data_type": "float"}}
    found = stored({"quant_method": "auto-round", "bits": 4, "extra_config": extra})
    assert found.unquantised == (r"re:.*mlp\.gate.*",)
    assert found.reason == ""
    extra = {r".*mlp\.gate.*": {"bits": 8}}
    assert (
        "modules like"
        in stored({"quant_method": "auto-round", "bits": 4, "extra_config": extra}).reason
    )


def test_that_hqq_is_read_with_its_groups_and_what_it_skips() -> None:
    weights = {"nbits": 4, "group_size": 64, "axis": 1}
    whole = {"weight_quant_params": weights, "scale_quant_params": None}
    found = stored({"quant_method": "hqq", "quant_config": whole, "skip_modules": ["lm_head"]})
    assert (found.weight_format, found.unquantised) == ("hqq-int4-g64", ("lm_head",))
    tags = {"self_attn.q_proj": {"weight_quant_params": weights}}
    assert "HQQ" in stored({"quant_method": "hqq", "quant_config": tags}).reason
