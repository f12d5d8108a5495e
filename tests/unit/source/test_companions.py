"""Files beside a config.json: quantisers' own, and Mistral's params.json."""

import json

import pytest

from engine.architecture.read import read as understood
from engine.cancel import CancelToken
from engine.source import files
from engine.source.companions import from_params
from engine.source.raw import RawModel

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 256, "torch_dtype": "float16",
}  # fmt: skip
# Mistral-7B-v0.1's published params.json.
MISTRAL_7B = {
    "dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32,
    "n_kv_heads": 8, "norm_eps": 1e-05, "vocab_size": 32000,
}  # fmt: skip


def folder(path, **beside):
    for name, content in beside.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


def read(path):
    return understood(files.read(path, CancelToken())).spec


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("quantize_config", {"bits": 4, "group_size": 128, "desc_act": False}, "gptq-int4"),
        ("quant_config", {"zero_point": True, "q_group_size": 128, "w_bit": 4}, "awq-int4"),
        (
            "hf_quant_config",
            {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}},
            "fp8-static",
        ),
    ],
)
def test_that_a_quantisers_own_file_counts(tmp_path, name, content, expected):
    where = folder(tmp_path, config=LLAMA, **{name: content})
    assert read(where).weight_format == expected
    assert read(where / "config.json").weight_format == expected


def test_that_what_the_config_says_itself_wins(tmp_path):
    stated = LLAMA | {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
    where = folder(tmp_path, config=stated, quantize_config={"bits": 8, "group_size": 32})
    assert read(where).weight_format == "awq-int4"


def test_that_mistrals_own_params_are_a_config(tmp_path):
    spec = read(folder(tmp_path, params=MISTRAL_7B))
    assert spec.parameters == 7_241_732_096
    assert not spec.doubts
    assert {a.window for a in spec.attentions} == {0}


def test_that_a_mixture_in_params_is_mixtral():
    params = MISTRAL_7B | {"moe": {"num_experts": 8, "num_experts_per_tok": 2}}
    spec = understood(RawModel("x", "test", config=from_params(params))).spec
    assert spec.parameters == 46_702_792_704
    assert not spec.doubts


def test_that_what_has_no_counterpart_in_params_is_said():
    params = MISTRAL_7B | {"vision_encoder": {"hidden_size": 1024, "num_hidden_layers": 24}}
    spec = understood(RawModel("x", "test", config=from_params(params))).spec
    assert any("vision_encoder" in doubt.reason for doubt in spec.doubts)
