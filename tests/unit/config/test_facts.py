from __future__ import annotations

import pytest

from engine.config.facts import Facts, MissingFieldError, facts_for
from engine.errors import ConfigError


def test_that_a_stated_value_wins_over_the_class_default() -> None:
    facts = facts_for({"model_type": "llama", "hidden_size": 2048})
    assert facts.integer("hidden_size") == 2048
    assert facts.integer("vocab_size") == 32_000
    assert facts.origins == {"hidden_size": "stated", "vocab_size": "class default"}


def test_that_a_stated_null_is_no_default() -> None:
    facts = facts_for({"model_type": "mistral", "sliding_window": None})
    assert facts.count("sliding_window") == 0
    assert facts_for({"model_type": "mistral"}).count("sliding_window") == 4096


def test_that_a_class_reads_its_own_spelling_and_the_common_one() -> None:
    assert facts_for({"model_type": "gpt2", "n_embd": 1600}).integer("hidden_size") == 1600
    assert facts_for({"model_type": "gpt2", "hidden_size": 1600}).integer("hidden_size") == 1600
    assert facts_for({"model_type": "gpt2"}).integer("num_hidden_layers") == 12


def test_that_remote_code_spellings_are_known() -> None:
    assert Facts({"multi_query_group_num": 2}).integer("num_key_value_heads") == 2
    assert Facts({"num_local_experts": 8}).integer("num_experts") == 8
    assert Facts({"n_inner": None, "ffn_hidden_size": 9}).integer("intermediate_size") == 9


def test_that_a_known_class_reads_only_its_own_spellings() -> None:
    # transformers 5.24.0: GPT2Config has n_inner, LlamaConfig neither n_layer nor kv_channels.
    stated = {"model_type": "gpt2", "n_inner": 5, "intermediate_size": 7}
    assert facts_for(stated).optional("intermediate_size") == 5
    stated = {"model_type": "gpt2", "intermediate_size": 7}
    assert facts_for(stated).optional("intermediate_size") is None
    assert facts_for({"model_type": "llama", "n_layer": 7}).integer("num_hidden_layers") == 32
    assert facts_for({"model_type": "llama", "kv_channels": 7}).optional("head_dim") is None
    assert facts_for({"model_type": "qwen2", "kv_channels": 7}).optional("head_dim") is None


@pytest.mark.parametrize(
    ("model_type", "key", "stated", "wanted"),
    [
        ("bloom", "hidden_size", {"n_embed": 4096}, 4096),
        ("falcon", "hidden_size", {"n_embed": 4096, "hidden_size": 64}, 4096),
        ("lfm2", "intermediate_size", {"block_ff_dim": 9, "intermediate_size": 7}, 9),
        ("deepseek_v32", "n_routed_experts", {"n_routed_experts": 4, "num_experts": 8}, 8),
        # A field, and a name that the class maps to it: that one is set last.
        ("dots1", "n_routed_experts", {"num_local_experts": 4, "n_routed_experts": 8}, 4),
        ("dots1", "n_routed_experts", {"n_routed_experts": 4, "num_local_experts": 8}, 8),
        # Neither is a field: the order of the config decides.
        ("zamba2", "attention_head_dim", {"head_dim": 32, "attention_head_dim": 64}, 64),
        ("zamba2", "attention_head_dim", {"attention_head_dim": 64, "head_dim": 32}, 32),
        # Mapped, but set before the field itself gets its default.
        ("step3p5", "n_routed_experts", {"num_local_experts": 8}, 288),
        ("speech_to_text", "decoder_layers", {"num_hidden_layers": 3}, 6),
    ],
)
def test_that_of_two_names_the_one_decides_that_the_class_sets_last(
    model_type: str, key: str, stated: dict[str, object], wanted: int
) -> None:
    assert facts_for({"model_type": model_type, **stated}).integer(key) == wanted


def test_that_a_foreign_spelling_counts_as_asked_beside_the_own_one_alone() -> None:
    for stated, wanted in (
        ({"num_hidden_layers": 4, "n_layer": 9}, True),
        ({"n_layer": 9}, False),
        ({"n_layer": 32}, True),
    ):
        facts = facts_for({"model_type": "llama", **stated})
        assert not facts.is_asked("n_layer")
        facts.integer("num_hidden_layers")
        assert facts.is_asked("n_layer") is wanted


def test_that_the_field_itself_can_be_told_from_its_other_names() -> None:
    # T5Config takes the decoder's layers from the field, before num_hidden_layers replaces it.
    facts = facts_for({"model_type": "t5", "num_hidden_layers": 3})
    assert (facts.integer("num_layers"), facts.declared("num_layers")) == (3, 6)


@pytest.mark.parametrize(
    "value", ["32", True, [32], {"n": 32}, 1.5, float("nan"), float("inf"), -1, 0, 10**12]
)
def test_that_a_count_of_layers_must_be_a_plausible_whole_number(value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        Facts({"num_hidden_layers": value}).integer("num_hidden_layers")
    assert caught.value.field == "num_hidden_layers"
    assert "num_hidden_layers" in caught.value.message


def test_that_a_whole_float_is_a_whole_number() -> None:
    assert Facts({"hidden_size": 4096.0}).integer("hidden_size") == 4096


def test_that_a_missing_field_is_named_with_its_place() -> None:
    facts = Facts({}, path="text_config")
    with pytest.raises(MissingFieldError, match=r"text_config\.hidden_size is missing"):
        facts.integer("hidden_size")


def test_that_a_long_text_is_not_repeated_in_the_error() -> None:
    with pytest.raises(ConfigError) as caught:
        Facts({"hidden_size": "x" * 10_000}).integer("hidden_size")
    assert len(caught.value.message) < 120


@pytest.mark.parametrize(("value", "wanted"), [(True, True), (0, False), (1, True), (None, False)])
def test_that_a_flag_may_be_a_bit_or_absent(value: object, wanted: object) -> None:
    assert Facts({"use_bias": value}).flag("use_bias") is wanted


def test_that_a_flag_that_is_a_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="true or false"):
        Facts({"use_bias": "yes"}).flag("use_bias")


def test_that_lists_are_checked_entry_by_entry() -> None:
    assert Facts({"mlp_only_layers": [0, 3]}).integers("mlp_only_layers") == (0, 3)
    for bad in ([0, "3"], [None], "03", [[1]], list(range(5_000))):
        with pytest.raises(ConfigError):
            Facts({"mlp_only_layers": bad}).integers("mlp_only_layers")
    with pytest.raises(ConfigError, match="list of words"):
        Facts({"layer_types": ["full_attention", 1]}).words("layer_types")


def test_that_what_was_asked_is_remembered() -> None:
    facts = Facts({"hidden_size": 8, "num_experts": 4})
    facts.integer("hidden_size")
    assert "hidden_size" in facts.asked
    assert "num_experts" not in facts.asked


def test_that_a_sub_config_takes_its_type_from_the_class() -> None:
    root = facts_for({"model_type": "gemma3", "text_config": {"hidden_size": 5376}})
    text = root.sub("text_config")
    assert text is not None
    assert text.model_type == "gemma3_text"
    assert text.integer("num_attention_heads") == 8  # the class default, left out by Google
    assert text.name("x") == "text_config.x"


def test_that_a_model_type_must_be_a_word() -> None:
    with pytest.raises(ConfigError, match="model_type is 7"):
        facts_for({"model_type": 7})
