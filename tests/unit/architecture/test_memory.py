"""An architecture is worked out once for equal configs, and never taken for another's."""

from __future__ import annotations

import pytest

from engine import words
from engine.architecture import memory
from engine.architecture.read import read
from engine.errors import ConfigError
from engine.source.raw import RawModel

CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000,
    "max_position_embeddings": 2048, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def spec_of(config, name="org/a", **more):
    return read(RawModel(name, "test", None, config, **more)).spec


def test_that_equal_configs_share_one_architecture_whatever_they_are_called():
    first, second = spec_of(CONFIG), spec_of(dict(CONFIG), "org/b")
    assert second is first


@pytest.mark.parametrize(
    "change",
    [
        {"num_key_value_heads": 8},
        {"tie_word_embeddings": 0},
        {"max_position_embeddings": 2048.0},
        {"anything": None},
    ],
)
def test_that_a_config_that_differs_anywhere_is_another_architecture(change):
    assert spec_of(CONFIG | change) is not spec_of(CONFIG)


def test_that_exact_sums_make_another_architecture():
    sums = {"embedding": 256_000, "lm_head": 256_000}
    assert spec_of(CONFIG, parameters_by_class=sums) is not spec_of(CONFIG)


def test_that_doubts_are_worded_in_the_language_in_force():
    english = spec_of(CONFIG)
    try:
        words.choose("de")
        assert spec_of(CONFIG) is not english
    finally:
        words.choose("en")
    assert spec_of(CONFIG) is english


def test_that_a_number_beyond_writing_is_refused_as_ever():
    with pytest.raises(ConfigError):
        spec_of(CONFIG | {"hidden_size": 10**5000})


def test_that_no_more_than_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(memory, "_MOST", 3)
    monkeypatch.setattr(memory, "_known", type(memory._known)())
    made = [spec_of(CONFIG | {"n": n}) for n in range(4)]
    assert spec_of(CONFIG | {"n": 3}) is made[3]
    assert spec_of(CONFIG | {"n": 0}) is not made[0]
    assert len(memory._known) == 3
