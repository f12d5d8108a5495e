"""Headers summed by class: packed layouts by hand, and every family's names both ways."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import Direction, ModuleClass, Sharding, Subject
from engine.architecture.stored import summarise
from engine.errors import HeaderError, UnknownArchitectureError
from engine.source import catalogue
from engine.source.raw import HeaderTensor, RawModel

if TYPE_CHECKING:
    from engine.architecture.model import StoredWeights
    from engine.architecture.spec import ArchitectureSpec

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "torch_dtype": "bfloat16",
}
WIDTHS = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4, "U32": 4, "U8": 1, "F8_E4M3": 1, "I64": 8}


def tensor(name: str, dtype: str, *shape: int) -> HeaderTensor:
    return HeaderTensor(name, dtype, shape, WIDTHS[dtype] * prod(shape))


def stored(quantisation: dict[str, Any] | None, *tensors: HeaderTensor) -> StoredWeights:
    config = CONFIG if quantisation is None else CONFIG | {"quantization_config": quantisation}
    raw = RawModel("x", "test", config=config, tensors=tensors, tensors_source="header of x")
    found = summarise(raw, specify(config))
    assert found is not None
    return found


UP = "model.layers.0.mlp.up_proj"


@pytest.mark.parametrize(
    ("quantisation", "tensors", "label"),
    [
        (None, [tensor(f"{UP}.weight", "BF16", 256, 128)], "bf16"),
        (None, [tensor(f"{UP}.weight", "F16", 256, 128)], "fp16"),
        (
            {"quant_method": "awq", "bits": 4},
            [
                tensor(f"{UP}.qweight", "I32", 128, 32),
                tensor(f"{UP}.qzeros", "I32", 1, 32),
                tensor(f"{UP}.scales", "F16", 1, 256),
            ],
            "awq-int4",
        ),
        (
            {"quant_method": "gptq", "bits": 4},
            [
                tensor(f"{UP}.qweight", "I32", 16, 256),
                tensor(f"{UP}.qzeros", "I32", 1, 32),
                tensor(f"{UP}.scales", "F16", 1, 256),
                tensor(f"{UP}.g_idx", "I32", 128),
            ],
            "gptq-int4",
        ),
        (
            {"quant_method": "gptq", "bits": 8},
            [tensor(f"{UP}.qweight", "I32", 32, 256), tensor(f"{UP}.scales", "F16", 1, 256)],
            "gptq-int8",
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4"},
            [
                tensor(f"{UP}.weight", "U8", 256, 64),
                tensor(f"{UP}.weight_scale", "F8_E4M3", 256, 8),
                tensor(f"{UP}.weight_scale_2", "F32", 1),
                tensor(f"{UP}.input_scale", "F32", 1),
            ],
            "nvfp4",
        ),
        (
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            [
                tensor(f"{UP}.weight", "F8_E4M3", 256, 128),
                tensor(f"{UP}.weight_scale_inv", "F32", 2, 1),
            ],
            "fp8-block",
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True},
            [
                tensor(f"{UP}.weight", "U8", 16_384, 1),
                tensor(f"{UP}.weight.absmax", "F32", 512),
                tensor(f"{UP}.weight.quant_map", "F32", 16),
                tensor(f"{UP}.weight.quant_state.bitsandbytes__nf4", "U8", 80),
            ],
            "nf4-plain",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {
                    "g": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}
                },
            },
            [
                tensor(f"{UP}.weight_packed", "I32", 256, 16),
                tensor(f"{UP}.weight_scale", "BF16", 256, 1),
                tensor(f"{UP}.weight_shape", "I64", 2),
            ],
            "w4a16",
        ),
    ],
)
def test_that_packed_values_count_one_each_and_scales_none(
    quantisation: dict[str, Any] | None, tensors: list[HeaderTensor], label: str
) -> None:
    found = stored(quantisation, *tensors)
    assert found.parameters == 256 * 128
    assert found.size_bytes == sum(t.size_bytes for t in tensors)
    assert found.format_label == label
    assert {(g.layer, g.module) for g in found.groups} == {(0, ModuleClass.MLP)}


def test_that_mxfp4_blocks_count_two_values_a_byte() -> None:
    name = "model.layers.1.mlp.experts.gate_up_proj"
    found = stored(
        {"quant_method": "mxfp4"},
        tensor(f"{name}_blocks", "U8", 4, 512, 4, 16),
        tensor(f"{name}_scales", "U8", 4, 512, 4),
        tensor(f"{name}_bias", "BF16", 4, 512),
    )
    assert found.parameters == 4 * 512 * 128 + 4 * 512
    assert {g.module for g in found.groups} == {ModuleClass.EXPERTS}


def test_that_tensors_that_behave_alike_are_one_group() -> None:
    found = stored(
        None,
        tensor("model.layers.0.mlp.gate_proj.weight", "BF16", 256, 128),
        tensor("model.layers.0.mlp.up_proj.weight", "BF16", 256, 128),
        tensor("model.layers.0.mlp.down_proj.weight", "BF16", 128, 256),
        tensor("model.layers.1.mlp.up_proj.weight", "BF16", 256, 128),
        tensor("model.embed_tokens.weight", "BF16", 256, 128),
        tensor("model.norm.weight", "F32", 128),
    )
    shown = {(g.layer, g.module, g.sharding): (g.tensors, g.size_bytes) for g in found.groups}
    assert shown == {
        (0, ModuleClass.MLP, Sharding.COLUMN): (2, 131_072),
        (0, ModuleClass.MLP, Sharding.ROW): (1, 65_536),
        (1, ModuleClass.MLP, Sharding.COLUMN): (1, 65_536),
        (None, ModuleClass.EMBEDDING, Sharding.VOCAB): (1, 65_536),
        (None, ModuleClass.NORM, Sharding.REPLICATED): (1, 512),
    }


def test_that_layers_beyond_the_model_predict_ahead() -> None:
    found = stored(
        None,
        tensor("model.layers.2.mlp.up_proj.weight", "BF16", 256, 128),
        tensor("mtp.layers.0.mlp.up_proj.weight", "BF16", 256, 128),
    )
    assert {(g.layer, g.module) for g in found.groups} == {(None, ModuleClass.MTP)}


def test_that_buffers_are_no_parameters() -> None:
    found = stored(
        None,
        tensor("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", 64),
        tensor("model.layers.0.mlp.gate.e_score_correction_bias", "F32", 256),
        tensor("embeddings.position_ids", "I64", 1, 512),
    )
    assert found.parameters == 0
    assert found.size_bytes == 256 + 1024 + 4096


def test_that_no_header_is_no_weights() -> None:
    raw = RawModel("x", "test", config=CONFIG)
    assert summarise(raw, specify(CONFIG)) is None
    assert read(raw).stored is None


def header(spec: ArchitectureSpec) -> tuple[HeaderTensor, ...]:
    """The header a checkpoint of ``spec`` would have, experts written out."""
    found: dict[str, HeaderTensor] = {}

    def add(name: str, shape: tuple[int, ...], copies: int) -> None:
        stacked = copies > 1 and "*" not in name
        for index in range(copies if "*" in name else 1):
            own = name.replace("*", str(index))
            while own in found:
                stem, _, suffix = own.rpartition(".")
                own = f"{stem}_part.{suffix}"
            whole = (copies, *shape) if stacked else shape
            found[own] = HeaderTensor(own, "BF16", whole, 2 * prod(whole))

    for t in spec.outer:
        add(t.name, t.shape, t.copies)
    for index, layer in enumerate(spec.layers):
        for t in layer.tensors:
            add(f"model.layers.{index}.{t.name}", t.shape, t.copies)
    return tuple(found.values())


@pytest.mark.parametrize(
    "model_id",
    [
        "meta-llama/Llama-3.1-8B",
        "openai-community/gpt2-xl",
        "tiiuae/falcon-40b",
        "google/gemma-3-27b-it",
        "deepseek-ai/DeepSeek-V3",
        "nvidia/Nemotron-H-56B-Base-8K",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        "google/gemma-4-26B-A4B",
        "microsoft/Phi-3.5-MoE-instruct",
    ],
)
def test_that_names_say_the_same_as_the_family(model_id: str) -> None:
    entry = catalogue.find(model_id)
    assert entry is not None
    config = dict(catalogue.raw(entry).config or {})
    config.pop("quantization_config", None)
    spec = specify(config)
    model = read(RawModel("x", "test", config=config, tensors=header(spec)))
    assert model.stored is not None
    sums: dict[ModuleClass, int] = {}
    for group in model.stored.groups:
        sums[group.module] = sums.get(group.module, 0) + group.parameters
    assert sums == {k: v for k, v in spec.parameters_by_class().items() if v}
    assert model.stored.size_bytes == 2 * spec.parameters
    assert not any(d.subject is Subject.WEIGHTS for d in model.spec.doubts)


def test_that_a_header_settles_an_unknown_architecture() -> None:
    config = CONFIG | {"model_type": "llama_of_tomorrow"}
    more = tensor("model.layers.0.adapter.weight", "BF16", 999, 128)
    whole = header(specify(CONFIG))
    spec = read(RawModel("x", "test", config=config, tensors=(*whole, more))).spec
    assert spec.parameters == specify(CONFIG).parameters + 999 * 128
    # Two projections a layer, of no more rows than counted: full attention is the most there is.
    assert [(d.subject, d.direction) for d in spec.doubts] == [
        (Subject.SEQUENCE_STATE, Direction.UPPER)
    ]


@pytest.mark.parametrize(
    "name", ["mixer.conv1d.weight", "cross_attn.k_proj.weight", "self_attn.indexer.wk.weight"]
)
def test_that_another_state_in_the_header_keeps_its_state_unknown(name: str) -> None:
    config = CONFIG | {"model_type": "llama_of_tomorrow"}
    more = tensor(f"model.layers.1.{name}", "BF16", 64, 128)
    tensors = (*header(specify(CONFIG)), more)
    spec = read(RawModel("x", "test", config=config, tensors=tensors)).spec
    assert spec.direction(Subject.WEIGHTS) is None
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


def test_that_an_unknown_architecture_with_half_a_header_is_at_least_that() -> None:
    config = CONFIG | {"model_type": "llama_of_tomorrow"}
    half = tuple(t for t in header(specify(CONFIG)) if ".layers.1." not in t.name)
    spec = read(RawModel("x", "test", config=config, tensors=half)).spec
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER
    assert "1 of the 2 layers" in next(
        d.reason for d in spec.doubts if d.subject is Subject.WEIGHTS
    )


def test_that_a_larger_header_wins_and_its_surplus_is_said() -> None:
    more = tensor("model.vision_tower.patch.weight", "BF16", 4096, 4096)
    model = read(RawModel("x", "test", config=CONFIG, tensors=(*header(specify(CONFIG)), more)))
    assert model.parameters == specify(CONFIG).parameters + 4096 * 4096
    assert not model.spec.doubts
    (note,) = model.notes
    assert "16,777,216 more than the config describes (vision 16,777,216)" in note


def without(spec: ArchitectureSpec, part: str) -> tuple[HeaderTensor, ...]:
    return tuple(t for t in header(spec) if part not in t.name)


@pytest.mark.parametrize(
    ("lacking", "says"),
    [
        (".layers.", "0 of 2"),
        (".layers.1.", "1 of 2 layers"),
        (".layers.1.mlp.down_proj", "1 of 2 layers"),
        ("embed_tokens", "table of embeddings"),
    ],
)
def test_that_a_header_that_lacks_what_the_config_requires_is_refused(
    lacking: str, says: str
) -> None:
    spec = specify(CONFIG)
    tensors = without(spec, lacking)
    assert len(tensors) < len(header(spec))
    raw = RawModel("org/half", "test", config=CONFIG, tensors=tensors, tensors_source="header")
    with pytest.raises(HeaderError, match="download is not complete") as caught:
        read(raw)
    assert "org/half" in caught.value.message
    if lacking != ".layers.":
        assert says in caught.value.message


def test_that_a_header_with_tensors_of_the_wrong_size_is_refused() -> None:
    lying = (tensor("model.embed_tokens.weight", "BF16", 10, 10),)
    with pytest.raises(HeaderError, match="config requires"):
        read(RawModel("x", "test", config=CONFIG, tensors=lying))


def test_that_a_header_with_many_more_layers_belongs_to_another_config() -> None:
    other = specify(CONFIG | {"num_hidden_layers": 8})
    with pytest.raises(HeaderError, match="do not belong together"):
        read(RawModel("x", "test", config=CONFIG, tensors=header(other)))


def test_that_an_embedding_model_may_leave_its_head_out() -> None:
    # Qwen3-Embedding-8B states a head and stores none.
    spec = specify(CONFIG)
    headless = without(spec, "lm_head")
    model = read(RawModel("x", "test", config=CONFIG, tensors=headless))
    assert model.parameters == spec.parameters - 256 * 128
    assert not model.spec.doubts
    assert "32,768 fewer" in model.notes[0]


def test_that_buffers_beside_the_parameters_are_no_surplus() -> None:
    beside = (
        tensor("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", 16),
        tensor("model.embeddings.position_ids", "I64", 1, 512),
        tensor("model.layers.2.embed_tokens.weight", "BF16", 256, 128),
    )
    spec = specify(CONFIG)
    model = read(RawModel("x", "test", config=CONFIG, tensors=(*header(spec), *beside)))
    assert model.parameters == spec.parameters
    assert not model.spec.doubts
    assert not model.notes


def test_that_a_tied_head_stored_twice_is_counted_once() -> None:
    config = CONFIG | {"tie_word_embeddings": True}
    spec = specify(config)
    double = tensor("lm_head.weight", "BF16", 256, 128)
    model = read(RawModel("x", "test", config=config, tensors=(*header(spec), double)))
    assert model.parameters == spec.parameters
    assert model.stored is not None
    assert model.stored.parameters == spec.parameters + 256 * 128
    assert not model.spec.doubts


def test_that_a_lone_header_is_sized_with_a_bound_on_its_state() -> None:
    spec = specify(CONFIG)
    model = read(RawModel("x", "test", tensors=header(spec)))
    assert model.parameters == spec.parameters
    assert len({id(layer) for layer in model.spec.layers}) == 1
    # Two heads of 32 for keys and as much for values: 128 elements a token and layer.
    assert [a.head_dim + a.v_head_dim for a in model.spec.attentions] == [128, 128]
    assert [d.subject for d in model.spec.doubts] == [Subject.SEQUENCE_STATE]
    assert model.spec.vocab_size == 256


def test_that_a_lone_latent_header_is_sized() -> None:
    entry = catalogue.find("deepseek-ai/DeepSeek-V2-Lite")
    assert entry is not None
    spec = specify(dict(catalogue.raw(entry).config or {}))
    model = read(RawModel("x", "test", tensors=header(spec)))
    found = model.spec.attentions[0]
    assert (found.kv_lora_rank, found.qk_rope_head_dim) == (512, 64)
    assert model.parameters == spec.parameters


def test_that_a_header_without_layers_is_refused() -> None:
    with pytest.raises(UnknownArchitectureError, match="no layers"):
        read(RawModel("x", "test", tensors=(tensor("a.weight", "BF16", 2, 2),)))
