"""GGUF metadata as llama.cpp reads it, and what becomes of metadata that cannot be true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.architecture.model import GgufTensor, Model
from engine.architecture.spec import ArchitectureSpec, Direction, Doubt, Subject
from engine.errors import ConfigError
from engine.formats.gguf import tensor_bytes
from engine.runtimes.llama_cpp.from_gguf import shape_of
from engine.runtimes.llama_cpp.runtime import file_bytes
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.runtimes.registry import get

_SPEC = ArchitectureSpec(
    model_type="", layers=(), outer=(), mtp=(), hidden_size=0, vocab_size=0,
    max_position_embeddings=None, dtype="float16", tie_word_embeddings=False, weight_format="",
)  # fmt: skip


def _gguf(architecture: str, *, layers: int = 4, **metadata: object) -> Model:
    values: dict[str, object] = {
        "block_count": layers,
        "embedding_length": 1024,
        "feed_forward_length": 4096,
        "attention.head_count": 8,
        "attention.head_count_kv": 2,
        "context_length": 8192,
    }
    values |= {key.replace("__", "."): value for key, value in metadata.items()}
    shapes: list[tuple[str, tuple[int, ...]]] = [("token_embd.weight", (1024, 32000))]
    for i in range(layers):
        shapes += [
            (f"blk.{i}.attn_k.weight", (1024, 256)),
            (f"blk.{i}.attn_output.weight", (1024, 1024)),
            (f"blk.{i}.ffn_gate.weight", (1024, 4096)),
            (f"blk.{i}.ffn_down.weight", (4096, 1024)),
        ]
    tensors = tuple(GgufTensor(n, "F16", s, tensor_bytes("F16", s)) for n, s in shapes)
    keyed: dict[str, object] = {f"{architecture}.{key}": value for key, value in values.items()}
    keyed["general.architecture"] = architecture
    return Model("m", None, "test", _SPEC, None, tensors, keyed)


def test_that_widths_come_from_the_head_counts() -> None:
    shape = shape_of(_gguf("llama"))
    assert {(b.k_width, b.v_width) for b in shape.blocks} == {(256, 256)}
    assert (shape.n_vocab, shape.head_dim, shape.dense_width) == (32000, 128, 4096)
    assert shape.weights.is_tied


def test_that_every_sixth_layer_of_gemma_3_keeps_everything() -> None:
    shape = shape_of(_gguf("gemma3", layers=12, attention__sliding_window=512))
    full = [i for i, b in enumerate(shape.blocks) if b.cache is CacheKind.FULL]
    assert full == [5, 11]


def test_that_a_stated_pattern_beats_the_architectures_own() -> None:
    model = _gguf(
        "gemma3",
        attention__sliding_window=512,
        attention__sliding_window_pattern=(True, False, True, True),
    )
    kinds = [b.cache is CacheKind.SLIDING for b in shape_of(model).blocks]
    assert kinds == [True, False, True, True]


def test_that_the_window_of_phi_3_is_ignored_as_llama_cpp_does() -> None:
    shape = shape_of(_gguf("phi3", attention__sliding_window=2047))
    assert {b.cache for b in shape.blocks} == {CacheKind.FULL}
    assert not shape.doubts


def test_that_an_unknown_window_pattern_is_a_bound_with_its_reason() -> None:
    shape = shape_of(_gguf("newarch", attention__sliding_window=512))
    assert {b.cache for b in shape.blocks} == {CacheKind.FULL}
    assert "newarch" in shape.doubts[0].reason
    assert shape.doubts[0].direction is Direction.UPPER


def test_that_doubts_of_an_unmeasured_architecture_are_kept() -> None:
    doubt = Doubt(Subject.SEQUENCE_STATE, "its state is not known", Direction.LOWER)
    model = _gguf("rwkv9")
    doubted = Model(
        "m", None, "test", replace(_SPEC, doubts=(doubt,)), None, model.gguf_tensors,
        model.gguf_metadata,
    )  # fmt: skip
    assert shape_of(doubted).doubts == (doubt,)


def test_that_an_encoder_keeps_no_cache() -> None:
    assert {b.cache for b in shape_of(_gguf("bert")).blocks} == {CacheKind.NONE}


def test_that_prediction_blocks_are_stored_and_do_not_run() -> None:
    shape = shape_of(_gguf("glm4moe", layers=5, nextn_predict_layers=1))
    assert (shape.num_layers, shape.blocks_in_file) == (4, 5)


@pytest.mark.parametrize(
    "metadata",
    [
        {"block_count": 0},
        {"block_count": 10**12},
        {"block_count": "four"},
        {"attention__head_count": -8},
        {"attention__head_count_kv": (2, 2)},
        {"attention__head_count_kv": (2, 2, 2, "x")},
        {"attention__key_length": 2**63},
        {"embedding_length": 0.5},
        {"nextn_predict_layers": 9},
    ],
)
def test_that_absurd_metadata_is_refused_with_its_key(metadata: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        shape_of(_gguf("llama", **metadata))
    assert caught.value.field.startswith("llama.")


def test_that_a_tensor_with_an_odd_name_is_no_blocks() -> None:
    model = _gguf("llama")
    odd = GgufTensor("blk.x.weight", "F16", (1024,), 2048)
    changed = Model("m", None, "test", _SPEC, None, (*model.gguf_tensors, odd), model.gguf_metadata)
    shape = shape_of(changed)
    assert shape.weights.blocks == shape_of(model).weights.blocks


def test_that_another_mix_starts_from_the_tensors_of_the_file() -> None:
    model = _gguf("llama")
    norm = GgufTensor("output_norm.weight", "F32", (1024,), 4096)
    model = replace(model, gguf_tensors=(*model.gguf_tensors, norm))
    shape = shape_of(model, "Q4_K_M")
    found = shape.weights.type_bytes
    # The table is the head too, and of four layers the last two get more bits for ffn_down.
    wide = 1024 * 32000 + 2 * 4096 * 1024
    rest = 4 * 1024 * (256 + 1024 + 4096) + 2 * 4096 * 1024
    assert dict(found) == {"Q6_K": wide * 210 // 256, "Q4_K": rest * 144 // 256, "F32": 4096}
    assert (shape.file_type, shape.is_read) == ("Q4_K_M", False)
    assert shape_of(model).is_read


def test_that_a_file_is_offered_every_mix_and_plans_it() -> None:
    model = _gguf("llama")
    assert "Q3_K_M" in get("llama.cpp").weight_formats(model)
    as_it_is, smaller = file_bytes(model, "auto"), file_bytes(model, "q8_0")
    assert smaller == as_it_is // 2 // 32 * 34


def test_that_old_conversions_of_latent_attention_keep_every_head() -> None:
    # DeepSeek-V2: 128 heads, keys of 192 and values of 128; a newer file names the latent too.
    old = _gguf(
        "deepseek2",
        attention__head_count=128,
        attention__head_count_kv=128,
        attention__key_length=192,
        attention__value_length=128,
        attention__kv_lora_rank=512,
        rope__dimension_count=64,
    )
    shape = shape_of(old)
    assert {(b.k_width, b.v_width) for b in shape.blocks} == {(128 * 192, 128 * 128)}
    assert shape.mla is None
    new = _gguf(
        "deepseek2",
        attention__head_count=128,
        attention__head_count_kv=1,
        attention__key_length=576,
        attention__value_length=512,
        attention__key_length_mla=192,
        attention__value_length_mla=128,
        attention__kv_lora_rank=512,
        rope__dimension_count=64,
    )
    assert {(b.k_width, b.v_width) for b in shape_of(new).blocks} == {(576, 0)}
