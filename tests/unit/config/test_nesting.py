from __future__ import annotations

import pytest

from engine.config.context import context_length
from engine.config.facts import Facts, facts_for
from engine.config.nesting import root_facts, text_facts
from engine.errors import ConfigError


def text_of(config: dict[str, object]) -> Facts:
    return text_facts(root_facts(config))


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config", "llm_cfg"])
def test_that_the_language_part_is_found(key: str) -> None:
    assert text_of({"model_type": "x", key: {"hidden_size": 64}}).integer("hidden_size") == 64


def test_that_a_thinkers_text_is_found_two_levels_down() -> None:
    config: dict[str, object] = {"thinker_config": {"text_config": {"hidden_size": 64}}}
    assert text_of(config).name("hidden_size") == "thinker_config.text_config.hidden_size"


def test_that_a_flat_multimodal_config_is_read_as_its_text_part() -> None:
    text = text_of({"model_type": "qwen2_5_vl", "hidden_size": 2048})
    assert text.model_type == "qwen2_5_vl_text"
    assert text.integer("hidden_size") == 2048


def test_that_nesting_without_end_ends() -> None:
    inner: dict[str, object] = {"hidden_size": 64}
    for _ in range(500):
        inner = {"text_config": inner}
    assert text_of(inner).path == "text_config.text_config.text_config"


def test_that_a_text_config_must_be_an_object() -> None:
    with pytest.raises(ConfigError, match="text_config is 'llama'"):
        text_of({"text_config": "llama"})


@pytest.mark.parametrize("config", [[], None, "x", 3])
def test_that_a_config_must_be_an_object(config: object) -> None:
    with pytest.raises(ConfigError, match="object"):
        root_facts(config)  # pyright: ignore[reportArgumentType]


def test_that_the_class_names_the_type_where_none_is_stated() -> None:
    assert root_facts({"architectures": ["MiniCPM3ForCausalLM"]}).model_type == "minicpm3"
    assert root_facts({"architectures": [3]}).model_type == ""


def test_that_the_smallest_length_counts() -> None:
    config = {"model_type": "llama", "max_position_embeddings": 8192, "seq_length": 2048}
    assert context_length(facts_for(config)) == 2048


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("linear", 16_384), ("dynamic", 16_384), ("yarn", 4096), ("llama3", 4096), ("longrope", 4096)],
)
def test_that_only_unscaled_lengths_are_multiplied(kind: str, wanted: int) -> None:
    config = {
        "max_position_embeddings": 4096,
        "rope_scaling": {"rope_type": kind, "factor": 4.0},
    }
    assert context_length(facts_for(config)) == wanted


def test_that_a_length_may_be_unknown() -> None:
    assert context_length(Facts({})) is None
