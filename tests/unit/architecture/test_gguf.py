from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read
from engine.architecture.spec import AttentionKind, Direction, ModuleClass, Subject
from engine.errors import ConfigError, HeaderError, UnknownArchitectureError
from engine.source.raw import HeaderTensor, RawModel


def table(layers: int, *, tied: bool = False, experts: int = 0) -> list[HeaderTensor]:
    """A small decoder in ggml order: hidden 64, 4 heads, 2 KV heads of 16, MLP 128."""

    def one(name: str, *shape: int) -> HeaderTensor:
        size = 4
        for axis in shape:
            size *= axis
        return HeaderTensor(name, "F32", shape, size)

    found = [one("token_embd.weight", 64, 100), one("output_norm.weight", 64)]
    if not tied:
        found.append(one("output.weight", 64, 100))
    for i in range(layers):
        block = f"blk.{i}."
        found += [
            one(block + "attn_norm.weight", 64),
            one(block + "attn_q.weight", 64, 64),
            one(block + "attn_k.weight", 64, 32),
            one(block + "attn_v.weight", 64, 32),
            one(block + "attn_output.weight", 64, 64),
            one(block + "ffn_norm.weight", 64),
        ]
        if experts:
            found += [
                one(block + "ffn_gate_inp.weight", 64, experts),
                one(block + "ffn_gate_exps.weight", 64, 128, experts),
                one(block + "ffn_up_exps.weight", 64, 128, experts),
                one(block + "ffn_down_exps.weight", 128, 64, experts),
            ]
        else:
            found += [
                one(block + "ffn_gate.weight", 64, 128),
                one(block + "ffn_up.weight", 64, 128),
                one(block + "ffn_down.weight", 128, 64),
            ]
    return found


def model_of(
    architecture: str = "llama", tensors: list[HeaderTensor] | None = None, **keys: Any
) -> Any:
    values = {
        "block_count": 4,
        "embedding_length": 64,
        "feed_forward_length": 128,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "context_length": 512,
    } | keys
    metadata: dict[str, Any] = {"general.architecture": architecture, "general.file_type": 0}
    metadata |= {f"{architecture}.{k}": v for k, v in values.items() if v is not None}
    tensors = table(4) if tensors is None else tensors
    return read(RawModel("x", "test", tensors=tuple(tensors), gguf_metadata=metadata, file_bytes=1))


LAYER = 2 * 64 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128


def test_that_a_tensor_table_gives_the_exact_model() -> None:
    model = model_of()
    assert model.parameters == 2 * 100 * 64 + 64 + 4 * LAYER
    assert model.spec.parameters_by_class()[ModuleClass.ATTENTION] == 4 * (8192 + 4096)
    assert model.spec.vocab_size == 100
    assert model.spec.max_position_embeddings == 512
    assert len({id(layer) for layer in model.spec.layers}) == 1
    assert not model.spec.doubts
    assert model.is_gguf
    assert model.stored.size_bytes == 4 * model.parameters
    assert model.stored.format_label == model.spec.weight_format == "F32"


def test_that_a_missing_output_is_a_tied_head() -> None:
    model = model_of(tensors=table(4, tied=True))
    assert model.spec.tie_word_embeddings
    assert model.parameters == 100 * 64 + 64 + 4 * LAYER


def test_that_experts_are_copies() -> None:
    model = model_of(tensors=table(4, experts=8), expert_count=8, expert_used_count=2)
    experts = [t for t in model.spec.layers[0].tensors if t.module is ModuleClass.EXPERTS]
    assert {(t.shape, t.copies) for t in experts} == {((128, 64), 8), ((64, 128), 8)}
    assert model.spec.layers[0].moe.num_experts_per_tok == 2
    with pytest.raises(ConfigError, match="only 8 experts"):
        model_of(tensors=table(4, experts=8), expert_count=8, expert_used_count=9)


def test_that_heads_and_widths_come_from_the_metadata() -> None:
    attention = model_of(**{"attention.key_length": 32, "attention.value_length": 24}).spec
    found = attention.attentions[0]
    assert (found.num_key_value_heads, found.head_dim, found.v_head_dim) == (2, 32, 24)


def test_that_windows_alternate_where_the_architecture_says_so() -> None:
    spec = model_of("gemma2", **{"attention.sliding_window": 32}).spec
    assert [a.window for a in spec.attentions] == [32, 0, 32, 0]
    flags = [True, False, False, True]
    keys = {"attention.sliding_window": 32, "attention.sliding_window_pattern": flags}
    spec = model_of("gemma3", **keys).spec
    assert [a.window for a in spec.attentions] == [32, 0, 0, 32]


def test_that_per_layer_heads_are_read() -> None:
    spec = model_of(**{"attention.head_count_kv": [2, 0, 2, 4]}).spec
    assert [a.num_key_value_heads for a in spec.attentions] == [2, 2, 4]


def test_that_latent_attention_is_read() -> None:
    keys = {
        "attention.kv_lora_rank": 16,
        "attention.head_count_kv": 1,
        "attention.key_length": 24,
        "attention.value_length": 16,
        "attention.key_length_mla": 20,
        "attention.value_length_mla": 12,
        "rope.dimension_count": 8,
    }
    attention = model_of("deepseek2", **keys).spec.attentions[0]
    assert attention.kind is AttentionKind.LATENT
    assert (attention.kv_lora_rank, attention.qk_rope_head_dim) == (16, 8)
    assert (attention.qk_nope_head_dim, attention.v_head_dim) == (12, 12)


def test_that_shared_layers_keep_nothing() -> None:
    spec = model_of("gemma4", **{"attention.shared_kv_layers": 3}).spec
    assert len(spec.attentions) == 1


def test_that_prediction_blocks_are_kept_apart() -> None:
    model = model_of(nextn_predict_layers=1)
    assert len(model.spec.layers) == 3
    assert model.parameters == 2 * 100 * 64 + 64 + 3 * LAYER
    assert sum(t.parameters for t in model.spec.mtp) == LAYER


def test_that_an_unknown_architecture_is_a_bound_on_the_state_only() -> None:
    spec = model_of("of_tomorrow").spec
    assert [d.subject for d in spec.doubts] == [Subject.SEQUENCE_STATE]
    assert spec.parameters == 2 * 100 * 64 + 64 + 4 * LAYER


@pytest.mark.parametrize(
    "keys",
    [
        {"block_count": 0},
        {"block_count": 10**12},
        {"block_count": "4"},
        {"attention.head_count": 0},
        {"attention.head_count_kv": 3},
        {"attention.head_count_kv": [2]},
        {"embedding_length": None},
        {"context_length": -1},
    ],
)
def test_that_absurd_metadata_is_one_clear_error(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        model_of(**keys)
    assert caught.value.field.startswith("llama.")


def test_that_a_file_without_an_architecture_is_refused() -> None:
    with pytest.raises(UnknownArchitectureError):
        read(RawModel("x", "test", gguf_metadata={"general.architecture": 3}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention.head_count", 0),
        ("attention.head_count_kv", 0),
        ("attention.head_count", 2**40),
        ("attention.key_length", 0),
        ("embedding_length", 2**30),
        ("expert_count", 2**31),
        ("context_length", 0),
        ("attention.head_count_kv", [2, 2, 2, 2**20]),
    ],
)
def test_that_a_value_out_of_range_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        model_of(**{key: value})
    assert key in caught.value.message


def test_that_blocks_without_tensors_are_an_incomplete_file() -> None:
    only_table = [t for t in table(4) if not t.name.startswith("blk.")]
    with pytest.raises(HeaderError, match="tensors for 0 of its 4 blocks"):
        model_of(tensors=only_table)
    first_part = [t for t in table(4) if not t.name.startswith(("blk.2.", "blk.3."))]
    with pytest.raises(HeaderError, match="tensors for 2 of its 4 blocks"):
        model_of(tensors=first_part)


def test_that_a_prediction_block_need_not_be_there() -> None:
    model = model_of(tensors=table(3), nextn_predict_layers=1)
    assert len(model.spec.layers) == 3


def one(name: str, *shape: int) -> HeaderTensor:
    return HeaderTensor(name, "F32", shape, 4 * shape[0])


def test_that_an_unknown_architecture_is_an_upper_bound_unless_it_shows_another_state() -> None:
    plain = model_of("llama_of_tomorrow").spec
    assert plain.direction(Subject.SEQUENCE_STATE) is Direction.UPPER
    mixed = [*table(4), one("blk.1.time_mix_key.weight", 64)]
    spec = model_of("llama_of_tomorrow", mixed).spec
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


def test_that_an_encoder_decoder_keeps_more_than_is_counted() -> None:
    stacks = [one("enc.blk.0.attn_q.weight", 64), one("dec.blk.0.attn_q.weight", 64)]
    spec = model_of("t5", [*table(0), *stacks], block_count=1).spec
    assert spec.direction(Subject.SEQUENCE_STATE) in (Direction.LOWER, Direction.EITHER)
    assert any("cross-attention" in doubt.reason for doubt in spec.doubts)
