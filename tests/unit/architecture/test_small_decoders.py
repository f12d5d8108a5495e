"""Hand arithmetic for the rules of small, early and encoder-like decoders, one for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import ArchitectureSpec, Direction, ModuleClass, Subject
from engine.errors import ConfigError
from engine.runtimes.transformers.cache import layer_bytes

H, V, L, MLP, POSITIONS = 64, 128, 2, 128, 512
SIZES: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": H,
    "intermediate_size": MLP,
    "num_hidden_layers": L,
    "num_attention_heads": 4,
    "max_position_embeddings": POSITIONS,
}
SQUARE = H * H + H
"""A matrix from the hidden size to itself, and its bias."""
NORM = 2 * H


def of(model_type: str, /, **changes: Any) -> ArchitectureSpec:
    return specify(SIZES | {"model_type": model_type} | changes)


def kept(spec: ArchitectureSpec, tokens: int) -> int:
    return sum(layer_bytes(layer, tokens, "bfloat16") for layer in spec.layers)


def is_sure(spec: ArchitectureSpec) -> bool:
    return all(spec.direction(s) is None for s in (Subject.WEIGHTS, Subject.SEQUENCE_STATE))


BERT_LAYER = 4 * SQUARE + (MLP * H + MLP) + (H * MLP + H) + 2 * NORM
BERT_TABLES = (V + POSITIONS + 2) * H + NORM
BERT_TOP = {
    "BertModel": SQUARE,
    "BertLMHeadModel": SQUARE + NORM + V,
    "BertForSequenceClassification": SQUARE + 2 * H + 2,
    "BertForTokenClassification": 2 * H + 2,
}


@pytest.mark.parametrize(("name", "top"), BERT_TOP.items())
def test_that_each_class_of_an_encoder_has_its_own_top(name: str, top: int) -> None:
    spec = of("bert", architectures=[name])
    assert spec.parameters == BERT_TABLES + L * BERT_LAYER + top
    assert is_sure(spec)


def test_that_an_untied_masked_head_has_a_matrix_and_a_second_bias() -> None:
    tied, untied = of("roberta"), of("roberta", tie_word_embeddings=False)
    assert untied.parameters - tied.parameters == V * H + V


def test_that_a_top_nobody_knows_is_a_bound() -> None:
    spec = of("bert", architectures=["BertForNextSentencePrediction"])
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER


def test_that_an_encoder_keeps_keys_and_values_only_where_it_decodes() -> None:
    assert kept(of("bert", architectures=["BertModel"]), 10) == 0
    decoder = of("bert", architectures=["BertModel"], is_decoder=True)
    assert kept(decoder, 10) == L * 10 * 2 * H * 2


def test_that_cross_attention_is_counted_where_it_is_asked_for() -> None:
    plain = of("bert", is_decoder=True)
    crossed = of("bert", is_decoder=True, add_cross_attention=True)
    assert crossed.parameters - plain.parameters == L * (4 * SQUARE + NORM)
    # With nothing to read it keeps nothing.
    assert kept(crossed, 10) == kept(plain, 10)
    with pytest.raises(ConfigError):
        of("bert", add_cross_attention=True)


def test_that_embeddings_of_their_own_width_are_projected() -> None:
    own = 16
    wide, narrow = of("electra", embedding_size=H), of("electra", embedding_size=own)
    rows = V + POSITIONS + 2
    tables = (rows + 2) * (H - own)
    head = SQUARE - (own * H + own) + 2 * (H - own)
    assert wide.parameters - narrow.parameters == tables + head - (H * own + H)


def test_that_heads_have_to_divide_a_hidden_size_that_they_share_out() -> None:
    for model_type in ("bert", "gpt2", "ctrl", "mpt"):
        with pytest.raises(ConfigError, match="multiple of num_attention_heads"):
            of(model_type, num_attention_heads=5)


def test_that_keys_a_class_does_not_read_change_nothing() -> None:
    assert of("mpt", expansion_ratio=8).parameters == of("mpt").parameters
    published = of("mpt", expansion_ratio=8, architectures=["MPTForCausalLM"])
    assert published.parameters - of("mpt").parameters == L * 2 * H * 4 * H


def test_that_helium_is_as_wide_as_the_model_after_its_heads() -> None:
    narrow = of("helium", num_key_value_heads=2, head_dim=16)
    wide = of("helium", num_key_value_heads=2, head_dim=32)
    assert wide.parameters - narrow.parameters == L * (4 + 2 + 2) * 16 * H


def test_that_cycles_share_weights_and_each_keep_a_cache() -> None:
    slow, fast = 2, 3
    spec = of("hrm_text", head_dim=16, H_cycles=slow, L_cycles=fast)
    layer = 5 * H * H + 3 * H * MLP
    assert spec.parameters == 2 * V * H + 2 * L * layer + H
    assert kept(spec, 10) == L * slow * (fast + 1) * 10 * 2 * H * 2


def test_that_a_modern_decoder_sees_half_of_what_it_looks_at() -> None:
    types = ["full_attention", "sliding_attention"]
    spec = of("modernbert-decoder", local_attention=16, layer_types=types)
    assert kept(spec, 40) == (40 + 7) * 2 * H * 2
    # A saved config states the half as well, and that is what its cache goes by.
    saved = of("modernbert-decoder", local_attention=16, layer_types=types, sliding_window=16)
    assert kept(saved, 40) == (40 + 15) * 2 * H * 2


def test_that_xlnet_keeps_hidden_states_up_to_its_memory() -> None:
    sizes = {"d_model": H, "n_layer": L, "n_head": 4}
    whole = specify({"model_type": "xlnet", "mem_len": None} | sizes)
    last = specify({"model_type": "xlnet", "mem_len": 16} | sizes)
    assert kept(whole, 40) == L * 40 * H * 2
    assert [kept(last, tokens) for tokens in (7, 40)] == [L * 7 * H * 2, L * 16 * H * 2]


def test_that_learned_tokens_stand_before_every_sequence() -> None:
    prompt, width = 32, 8
    spec = of("cpmant", dim_head=width, dim_ff=MLP, prompt_length=prompt, prompt_types=2)
    assert kept(spec, 10) == L * (prompt + 10) * 4 * 2 * width * 2
    # The table holds the prompts, so that the head cannot be the same tensor.
    assert spec.parameters_by_class()[ModuleClass.LM_HEAD] == V * H


def test_that_the_first_gpt_keeps_nothing() -> None:
    assert kept(of("openai-gpt"), 100) == 0


def test_that_hashes_of_a_long_prompt_are_named() -> None:
    axes = {"axial_pos_shape": [8, 64], "axial_pos_embds_dim": [32, 32]}
    local = of("reformer", attn_layers=["local", "local"], **axes)
    hashed = of("reformer", attn_layers=["local", "lsh"], **axes)
    assert kept(hashed, 40) == kept(local, 40) == 2 * 40 * H * 2
    assert is_sure(local)
    assert hashed.direction(Subject.SEQUENCE_STATE) is Direction.LOWER


def test_that_only_the_last_layer_has_a_bias() -> None:
    layer = 4 * H * H + 2 * 4 * H * H + 2 * NORM
    spec = of("gpt_neox_japanese")
    assert spec.parameters == V * H + L * layer + H + NORM


def test_that_a_head_can_yield_fewer_words_than_are_read() -> None:
    whole = of("apertus1p5_text")
    assert whole.parameters - of("apertus1p5_text", output_vocab_size=100).parameters == 28 * H


def test_that_halved_heads_have_to_be_even() -> None:
    with pytest.raises(ConfigError, match="even"):
        of("diffllama", num_key_value_heads=1)


def test_that_a_prompt_kept_whole_leaves_the_cache_open() -> None:
    spec = of(
        "unlimited_ocr_text", num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2,
        sliding_window=16,
    )  # fmt: skip
    assert kept(spec, 40) == L * 40 * 2 * H * 2
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


@pytest.mark.parametrize(
    ("name", "top"),
    [
        ("LlamaForSequenceClassification", 2 * H),
        ("LlamaForTokenClassification", 2 * H + 2),
        ("LlamaForQuestionAnswering", 2 * H + 2),
    ],
)
def test_that_heads_for_tokens_and_answers_have_a_bias(name: str, top: int) -> None:
    bare = of("llama", architectures=["LlamaModel"])
    assert of("llama", architectures=[name]).parameters - bare.parameters == top


def test_that_shared_caches_need_a_layer_that_keeps_them() -> None:
    with pytest.raises(ConfigError, match="num_kv_shared_layers"):
        of("gemma3n_text", num_kv_shared_layers=2, head_dim=16, num_key_value_heads=2)


def test_that_an_image_is_read_as_the_patches_that_its_encoder_makes() -> None:
    decoder = SIZES | {"model_type": "bert", "is_decoder": True, "add_cross_attention": True}
    beside: dict[str, Any] = {"model_type": "vit", "image_size": 32, "patch_size": 16}
    sees = specify({"model_type": "vision-encoder-decoder", "decoder": decoder, "encoder": beside})
    # 2 x 2 patches and the token of the whole.
    assert {layer.cross.window for layer in sees.layers if layer.cross} == {5}
    assert sees.direction(Subject.SEQUENCE_STATE) is None
    beside = SIZES | {"model_type": "bert"}
    reads = specify({"model_type": "encoder-decoder", "decoder": decoder, "encoder": beside})
    assert reads.direction(Subject.SEQUENCE_STATE) is None
    assert reads.layers[0].cross is not None
