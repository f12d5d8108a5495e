from __future__ import annotations

from typing import Any

from engine.architecture.read import specify

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "torch_dtype": "bfloat16",
}


def stored_as(layer: Any) -> dict[str, str]:
    return {t.name: t.stored_as for t in layer.tensors if t.stored_as}


def spec_of(**quantisation: Any) -> Any:
    return specify(CONFIG | {"quantization_config": quantisation})


def test_that_a_pattern_for_every_layer_stays_a_pattern() -> None:
    spec = spec_of(quant_method="fp8", ignore=["lm_head", "re:.*mlp.gate$", "*.self_attn.*"])
    assert spec.unquantised == ("lm_head", "re:.*mlp.gate$", "*.self_attn.*")
    assert len({id(layer) for layer in spec.layers}) == 1


def test_that_layers_left_alone_are_marked_and_the_others_share() -> None:
    names = [f"model.layers.{i}.{m}" for i in (0, 11) for m in ("mlp.up_proj", "self_attn.q_proj")]
    spec = spec_of(quant_method="fbgemm_fp8", modules_to_not_convert=names)
    wanted = {"mlp.up_proj.weight": "bf16", "self_attn.q_proj.weight": "bf16"}
    assert stored_as(spec.layers[0]) == stored_as(spec.layers[11]) == wanted
    assert spec.layers[0] is spec.layers[11]
    assert stored_as(spec.layers[5]) == {}
    assert len({id(layer) for layer in spec.layers}) == 2


def test_that_a_whole_layer_may_be_left_alone() -> None:
    spec = spec_of(quant_method="modelopt", quant_algo="NVFP4", ignore=["model.layers.3.*"])
    assert len(stored_as(spec.layers[3])) == 7
    assert not stored_as(spec.layers[4])


def test_that_a_star_after_the_number_means_every_number_that_begins_so() -> None:
    spec = spec_of(quant_method="modelopt", quant_algo="NVFP4", ignore=["model.layers.1*"])
    marked = [i for i, layer in enumerate(spec.layers) if stored_as(layer)]
    assert marked == [1, 10, 11]


def test_that_a_star_after_a_part_matches_its_modules() -> None:
    ignore = [f"model.language_model.layers.{i}.self_attn*" for i in range(12)]
    spec = spec_of(quant_method="modelopt", quant_algo="NVFP4", ignore=ignore)
    assert set(stored_as(spec.layers[7])) == {
        f"self_attn.{name}_proj.weight" for name in ("q", "k", "v", "o")
    }
    assert len({id(layer) for layer in spec.layers}) == 1


def test_that_mixed_formats_are_kept_module_by_module() -> None:
    layers = {f"model.layers.{i}.mlp.up_proj": {"quant_algo": "NVFP4"} for i in range(12)}
    layers |= {f"model.layers.{i}.mlp.down_proj": {"quant_algo": "FP8"} for i in range(12)}
    spec = spec_of(quant_method="modelopt", quant_algo="MIXED_PRECISION", quantized_layers=layers)
    assert spec.weight_format == "nvfp4"
    marked = stored_as(spec.layers[0])
    assert marked["mlp.down_proj.weight"] == "fp8"
    assert marked["mlp.gate_proj.weight"] == "bf16"
    assert "mlp.up_proj.weight" not in marked


def test_that_a_broken_pattern_is_harmless() -> None:
    spec = spec_of(quant_method="fp8", ignore=["re:(", "model.layers.99999.x", "", "layers."])
    assert not any(stored_as(layer) for layer in spec.layers)
