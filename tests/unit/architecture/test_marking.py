from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.model import Model
from engine.architecture.read import specify
from engine.architecture.spec import Subject
from engine.budget.weights import WeightLayout
from engine.budget.weights import weights as budget_weights
from engine.evidence import Basis

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
    assert marked["mlp.down_proj.weight"] == "fp8-static"
    assert marked["mlp.gate_proj.weight"] == "bf16"
    assert "mlp.up_proj.weight" not in marked


def test_that_a_broken_pattern_is_harmless() -> None:
    spec = spec_of(quant_method="fp8", ignore=["model.layers.99999.x", "", "layers."])
    assert not any(stored_as(layer) for layer in spec.layers)
    assert not spec.doubts


@pytest.mark.parametrize(
    "pattern",
    [
        "re:(",
        # Each would keep a backtracking matcher busy for hours on a module's path.
        "re:([a-z._0-9]+)+!",
        "re:(.|.)*!",
        "re:.*.*.*.*.*.*.*.*.*.*!",
        "*a*a*a*a*a*a*a*a",
    ],
)
def test_that_an_expression_that_is_not_understood_is_a_doubt(pattern: str) -> None:
    spec = spec_of(quant_method="fp8", ignore=["lm_head", pattern])
    assert spec.weight_format == "bf16"
    assert [d.subject for d in spec.doubts] == [Subject.WEIGHTS]
    assert "not understood" in spec.doubts[0].reason


def test_that_layers_beside_the_decoder_are_not_taken_for_its_own() -> None:
    ignore = ["mtp.layers.0*", "vision_tower.encoder.layers.3.*"]
    spec = spec_of(quant_method="modelopt", quant_algo="NVFP4", ignore=ignore)
    assert not any(stored_as(layer) for layer in spec.layers)
    assert spec.unquantised == tuple(ignore)


def weights(strategy: str, kind: str, bits: int, **rest: Any) -> dict[str, Any]:
    return {"num_bits": bits, "type": kind, "strategy": strategy, **rest}


INT4 = weights("group", "int", 4, group_size=128)
FP8 = weights("channel", "float", 8)


def mixed_spec(config: dict[str, Any], *groups: tuple[list[str], dict[str, Any]]) -> Any:
    listed = {
        f"group_{i}": {"targets": targets, "weights": own}
        for i, (targets, own) in enumerate(groups)
    }
    statement = {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}
    return specify(config | {"quantization_config": statement | {"config_groups": listed}})


def test_that_targets_give_modules_their_own_format() -> None:
    spec = mixed_spec(CONFIG, (["re:.*q_proj"], INT4), (["Linear"], FP8))
    assert spec.weight_format == "fp8-channel-ct"
    assert stored_as(spec.layers[5]) == {"self_attn.q_proj.weight": "w4a16"}
    assert len({id(layer) for layer in spec.layers}) == 1


def test_that_a_module_outside_every_target_stays_unquantised() -> None:
    spec = mixed_spec(CONFIG, (["re:.*mlp.*"], INT4))
    assert spec.weight_format == "w4a16"
    assert set(stored_as(spec.layers[0])) == {
        f"self_attn.{name}_proj.weight" for name in ("q", "k", "v", "o")
    }


def test_that_a_path_goes_before_an_expression() -> None:
    path = "model.layers.7.mlp.down_proj"
    spec = mixed_spec(CONFIG, (["re:.*down_proj"], INT4), ([path, "Linear"], FP8))
    assert stored_as(spec.layers[6]) == {"mlp.down_proj.weight": "w4a16"}
    assert stored_as(spec.layers[7]) == {}


def test_that_an_expression_may_name_layers() -> None:
    spec = mixed_spec(CONFIG, ([r"re:.*layers\.(1|11)\.mlp.*"], INT4), (["Linear"], FP8))
    assert [i for i, layer in enumerate(spec.layers) if stored_as(layer)] == [1, 11]


def test_that_llama_8b_in_two_formats_takes_the_bytes_of_both() -> None:
    llama = CONFIG | {
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
    }
    spec = mixed_spec(llama, (["re:.*q_proj"], INT4), (["Linear"], FP8))
    found = budget_weights(Model("m", None, "config", spec), WeightLayout())
    # q_proj: half a byte a weight, a bf16 scale for 128, two int64; the rest a byte a weight
    # and 2 bytes a row (43,008 rows a layer, 4,096 of them q_proj's); others bf16.
    query = 4096 * 4096 // 2 + 2 * 4096 * 4096 // 128 + 16
    rest = 6_979_321_856 // 32 - 4096 * 4096 + 2 * (43_008 - 4096)
    assert sum(stage.size_bytes for stage in found.stages) == (
        32 * (query + rest) + 2 * 1_050_939_392
    )
    assert found.basis is Basis.EXACT


def test_that_a_listed_head_is_packed_and_a_table_keeps_its_own_width() -> None:
    listed = {"bits": 4, "group_size": 32, "model.embed_tokens": {"bits": 8, "group_size": 32}}
    listed |= {"model.layers.3.mlp.up_proj": False}
    spec = specify(CONFIG | {"quantization": listed, "tie_word_embeddings": False})
    outside = {t.name: t.stored_as for t in spec.outer}
    assert outside["model.embed_tokens.weight"] == "mlx-8bit-g32"
    assert outside["lm_head.weight"] == "mlx-4bit-g32"
    assert stored_as(spec.layers[3]) == {"mlp.up_proj.weight": "bf16"}
    assert not stored_as(spec.layers[4])
