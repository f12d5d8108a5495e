"""What is in doubt, as the contract answers it: a bound has a direction, and promises no more."""

from __future__ import annotations

import json

import jsonschema
import pytest

import resources

SCHEMA = json.loads(resources.path("schema", "budget.schema.json").read_text("utf-8"))
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}  # fmt: skip
WEIGHTS = 16_060_522_496
"""Llama-3.1-8B: 8,030,261,248 parameters of two bytes."""


@pytest.fixture
def ask(plimsoll, tmp_path):
    """The answer to one request with an inline config, checked against the schema."""

    def asked(config, **more):
        line = {"id": "a", "config": config, "gpu": "RTX 4090", "max_model_len": 4096} | more
        file = tmp_path / "requests.jsonl"
        file.write_text(json.dumps(line), "utf-8")
        answer = json.loads(plimsoll("size", "--batch", str(file)).output)
        jsonschema.validate(answer, SCHEMA)
        return answer

    return asked


@pytest.mark.parametrize(
    "stated",
    [
        {"moe_num_experts": 64},
        {"vision_config": {"hidden_size": 8192, "num_hidden_layers": 96}},
    ],
)
def test_that_what_is_not_counted_is_at_least_what_is_and_never_fits(ask, stated):
    answer = ask(LLAMA | stated)
    assert answer["verdict"] == "unknown"
    weights = answer["ranks"][0]["regions"]["weights"]
    assert (weights["basis"], weights["low"] >= WEIGHTS) == ("bound", True)
    assert weights["low"] == weights["likely"] == weights["high"]
    assert weights["direction"] == "at_least"
    assert next(iter(stated)) in answer["warnings"][0]
    limits = {"max_context": None, "max_concurrency": None, "best_weight_format": None}
    assert answer["limits"] == limits
    # Sixteen of them, and what is counted alone decides.
    assert ask(LLAMA | stated, gpu="RTX 3060 12GB")["verdict"] == "does_not_fit"


def test_that_an_unknown_architecture_promises_nothing_either_way(ask):
    for card in ("RTX 4090", "RTX 3060 12GB"):
        answer = ask(LLAMA | {"model_type": "llama_of_tomorrow"}, gpu=card)
        assert answer["verdict"] == "unknown"
        weights = answer["ranks"][0]["regions"]["weights"]
        assert weights["low"] < 2**30
        assert weights["high"] >= WEIGHTS
        assert weights["direction"] == "either"


def test_that_a_figure_that_is_no_bound_has_no_direction(ask):
    regions = ask(LLAMA)["ranks"][0]["regions"]
    assert {region["direction"] for region in regions.values()} == {None}


@pytest.mark.parametrize(
    "stated",
    [
        {"n_experts": 64},
        {"num_moe_experts": 64},
        {"ffn_config": {"ffn_hidden_size": 14336, "moe_num_experts": 64}},
    ],
)
def test_that_experts_of_an_unknown_type_are_named_and_not_held_to_be_counted(ask, stated):
    answer = ask(LLAMA | stated | {"model_type": "llama_of_tomorrow"})
    assert answer["ranks"][0]["regions"]["weights"]["direction"] == "either"
    named = next(iter(stated))
    assert any(f"{named} of" in said and "not counted" in said for said in answer["warnings"])


@pytest.mark.parametrize("stated", [{}, {"is_encoder_decoder": True}])
def test_that_the_run_of_t5s_encoder_is_warned_of_even_where_its_config_leaves_it_to_the_class(
    ask, stated
):
    t5 = {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6,
          "num_heads": 8, "vocab_size": 32128}  # fmt: skip
    answer = ask(t5 | stated)
    assert answer["verdict"] == "unknown"
    assert any("what the encoder of t5 needs" in said for said in answer["warnings"])
    activations = answer["ranks"][0]["regions"]["activations"]
    assert (activations["basis"], activations["direction"]) == ("bound", "at_least")


def test_that_tensors_that_are_too_few_are_refused(ask):
    tensors = [{"name": "model.embed_tokens.weight", "dtype": "BF16", "shape": [10, 10]}]
    answer = ask(LLAMA, tensors=tensors)
    assert answer["error"]["code"] == "bad_header"
    assert "100 of 8,030,261,248 parameters" in answer["error"]["message"]


def test_that_an_interrupted_download_is_no_fit(plimsoll, tmp_path):
    header = {
        "model.embed_tokens.weight": {
            "dtype": "BF16", "shape": [2, 64], "data_offsets": [0, 256],
        }
    }  # fmt: skip
    text = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(
        len(text).to_bytes(8, "little") + text + bytes(256)
    )
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    result = plimsoll("size", str(tmp_path), "--gpu", "RTX 3060 12GB")
    assert result.status == 2
    assert "the download is not complete" in result.complaint


def test_that_the_cache_of_an_unknown_architecture_says_which_way_it_may_be_off(plimsoll, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA | {"model_type": "llama_of_tomorrow"}), "utf-8")
    result = plimsoll("kv", str(file), "--context", "4096")
    assert result.status == 3
    assert "At most this much:" in result.output
