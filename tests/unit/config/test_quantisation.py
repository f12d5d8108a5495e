from __future__ import annotations

from typing import Any

import pytest

from engine.config.nesting import root_facts, text_facts
from engine.config.quantisation import Stored, stored_format
from engine.formats.weights import FORMATS


def stored(quantisation: dict[str, Any] | None, **rest: Any) -> Stored:
    config: dict[str, Any] = {"torch_dtype": "bfloat16", **rest}
    if quantisation is not None:
        config["quantization_config"] = quantisation
    root = root_facts(config)
    return stored_format(root, text_facts(root))


def group(**weights: Any) -> dict[str, Any]:
    return {"group_0": {"weights": weights, "targets": ["Linear"]}}


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
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quantization": {"quant_algo": "NVFP4"}, "quant_method": "modelopt"}, "nvfp4"),
        (
            {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_gptq"},
            "gptq-int4",
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
            "fp8-channel",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "float-quantized",
                "config_groups": group(num_bits=8, type="float", strategy="tensor"),
            },
            "fp8",
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
            "int8",
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


def test_that_garbage_in_the_place_of_a_quantisation_is_none() -> None:
    for garbage in ("fp8", [], {}, 3, None):
        assert stored(None, quantization_config=garbage).weight_format == "bf16"


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("float16", "fp16"), ("torch.bfloat16", "bf16"), ("float32", "fp32"), ("weird", "bf16")],
)
def test_that_the_dtype_is_the_format_of_plain_weights(dtype: str, wanted: str) -> None:
    assert stored(None, torch_dtype=dtype).weight_format == wanted


def test_that_mlx_bits_are_read() -> None:
    found = stored(None, quantization={"bits": 4, "group_size": 64})
    assert found.weight_format == "mlx-4bit"
    odd = stored(None, quantization={"bits": 3, "group_size": 64})
    assert odd.reason


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
