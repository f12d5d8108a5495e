"""Bytes of weights, against parameters and stored sizes from independent sources."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.architecture.model import Model, StoredGroup, StoredWeights
from engine.architecture.read import read
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject
from engine.budget.sharding import stage_layers
from engine.budget.weights import WeightLayout, weights
from engine.evidence import Basis
from engine.runtimes.vllm.rules import LEFT_OUT
from engine.source.raw import HeaderTensor, RawModel
from tests.helpers.published import model


def bytes_of(name: str, weight_format: str = "auto", **layout: int) -> int:
    found = weights(model(name), WeightLayout(weight_format, **layout))
    return sum(stage.size_bytes for stage in found.stages)


@pytest.mark.parametrize(
    ("weight_format", "size"),
    [
        # Worked from Llama-3.1-8B's shapes: 6,979,321,856 linear, 1,050,939,392 other parameters.
        ("bf16", 16_060_522_496),
        ("awq-int4", 5_727_854_592),
        ("gptq-int4", 5_732_835_328),
        ("nf4-plain", 6_027_761_664),
        ("fp8-channel", 9_086_705_664),
        ("fp8-block", 9_082_904_576),
        ("mxfp4", 5_809_643_520),
    ],
)
def test_that_llama_31_8b_takes_the_bytes_its_shapes_give(weight_format: str, size: int) -> None:
    # The reference vectors count a scalar or two per matrix differently (GPTQ's g_idx, NF4's code).
    assert bytes_of("Llama-3.1-8B", weight_format) == pytest.approx(size, rel=1e-5)


def test_that_gpt_oss_keeps_only_its_experts_in_four_bits() -> None:
    assert bytes_of("gpt-oss-20b") == 13_761_264_768
    assert bytes_of("gpt-oss-120b") == 65_248_815_744


def test_that_all_experts_are_resident() -> None:
    assert bytes_of("Qwen3-30B-A3B") == 30_532_122_624 * 2


def test_that_ranks_sum_to_the_whole_plus_named_replicas() -> None:
    spec = model("Llama-3.1-8B").spec
    whole = bytes_of("Llama-3.1-8B")
    norms = 2 * sum(
        t.parameters
        for t in (*spec.outer, *(t for layer in spec.layers for t in layer.tensors))
        if t.sharding is Sharding.REPLICATED
    )
    for tp in (2, 4, 8):
        assert tp * bytes_of("Llama-3.1-8B", tensor_parallel_size=tp) == whole + (tp - 1) * norms


def test_that_replicated_kv_heads_stop_shrinking_beyond_the_head_count() -> None:
    spec = model("Llama-3.1-8B").spec
    kv = 2 * sum(
        t.parameters
        for layer in spec.layers
        for t in layer.tensors
        if t.sharding is Sharding.KV_HEADS
    )
    eight = bytes_of("Llama-3.1-8B", tensor_parallel_size=8)
    sixteen = bytes_of("Llama-3.1-8B", tensor_parallel_size=16)
    norms = 2 * 266_240
    assert 2 * (sixteen - norms - kv // 8) == eight - norms - kv // 8


def test_that_pipeline_stages_sum_to_the_whole() -> None:
    for pp in (2, 4, 8):
        assert bytes_of("Llama-3.1-8B", pipeline_parallel_size=pp) == 16_060_522_496


def test_that_tied_embeddings_are_held_at_both_ends_of_a_pipeline() -> None:
    embedding = 128_256 * 2048 * 2
    whole = bytes_of("Llama-3.2-1B")
    assert whole == 2 * 1_235_814_400
    assert bytes_of("Llama-3.2-1B", pipeline_parallel_size=2) == whole + embedding


def test_that_vocabularies_are_padded_to_64() -> None:
    plain = bytes_of("granite-3.1-8b")
    padded = bytes_of("granite-3.1-8b", vocab_multiple=64)
    assert padded - plain == (49_216 - 49_155) * 4096 * 2


def test_that_vllm_gives_no_remainder_to_the_last_stage() -> None:
    # vLLM distributed/utils.py: the remainder goes to the stages before the last, from the back.
    assert [len(r) for r in stage_layers(62, 4)] == [15, 16, 16, 15]
    assert [len(r) for r in stage_layers(61, 4)] == [15, 15, 16, 15]
    assert [len(r) for r in stage_layers(32, 1)] == [32]


@given(layers=st.integers(1, 200), stages=st.integers(1, 16))
def test_that_stages_partition_the_layers(layers: int, stages: int) -> None:
    ranges = stage_layers(layers, stages)
    assert [i for r in ranges for i in r] == list(range(layers))


def stored(*groups: StoredGroup) -> StoredWeights:
    return StoredWeights(groups, "bf16", "header of a file", sum(g.size_bytes for g in groups))


def test_that_a_header_wins_over_the_shapes() -> None:
    group = StoredGroup(0, ModuleClass.MLP, Sharding.COLUMN, "BF16", 1000, 500, 1000, 1)
    read = replace(model("Llama-3.1-8B"), stored=stored(group))
    found = weights(read, WeightLayout())
    assert found.basis is Basis.READ
    assert found.stages[0].size_bytes == 1000
    assert weights(read, WeightLayout(tensor_parallel_size=2)).stages[0].size_bytes == 500
    what_if = weights(read, WeightLayout("fp8"))
    assert what_if.basis is Basis.EXACT
    assert what_if.stages[0].size_bytes > 8 * 2**30


def test_that_prediction_heads_are_resident_only_when_used() -> None:
    body = StoredGroup(0, ModuleClass.MLP, Sharding.COLUMN, "BF16", 1000, 500, 1000, 1)
    head = StoredGroup(None, ModuleClass.MTP, Sharding.REPLICATED, "BF16", 77, 38, 77, 1)
    read = replace(model("Llama-3.1-8B"), stored=stored(body, head))
    assert weights(read, WeightLayout()).stages[0].size_bytes == 1000
    assert weights(read, WeightLayout(with_mtp=True)).stages[0].size_bytes == 1077


def test_that_expert_parallelism_spreads_whole_experts() -> None:
    split = bytes_of("Qwen3-30B-A3B", tensor_parallel_size=4)
    layout = WeightLayout(tensor_parallel_size=4, enable_expert_parallel=True)
    spread = weights(model("Qwen3-30B-A3B"), layout).stages[0].size_bytes
    assert spread == split


def stated(parameters: dict[ModuleClass, int], **changed: object) -> Model:
    known = model("Llama-3.1-8B")
    spec = replace(known.spec, stated_parameters=parameters, **changed)  # type: ignore[arg-type]
    return replace(known, spec=spec)


LLAMA_CLASSES = {
    ModuleClass.EMBEDDING: 525_336_576,
    ModuleClass.LM_HEAD: 525_336_576,
    ModuleClass.ATTENTION: 1_342_177_280,
    ModuleClass.MLP: 5_637_144_576,
    ModuleClass.NORM: 266_240,
}


def test_that_stated_class_sums_give_the_same_bytes_as_the_tensors() -> None:
    catalogue = stated(LLAMA_CLASSES)
    found = weights(catalogue, WeightLayout())
    assert found.stages[0].size_bytes == 16_060_522_496
    halves = weights(catalogue, WeightLayout(tensor_parallel_size=2)).stages[0].size_bytes
    assert halves == pytest.approx(bytes_of("Llama-3.1-8B", tensor_parallel_size=2), rel=1e-3)
    stages = weights(catalogue, WeightLayout(pipeline_parallel_size=4)).stages
    assert sum(stage.size_bytes for stage in stages) == 16_060_522_496


def test_that_stated_class_sums_are_packed_where_the_format_packs() -> None:
    found = weights(stated(LLAMA_CLASSES), WeightLayout("awq-int4")).stages[0].size_bytes
    assert found == pytest.approx(5_727_854_592, rel=1e-3)


def test_that_doubted_weights_are_a_bound() -> None:
    doubt = Doubt(Subject.WEIGHTS, "Its layers are of an unknown kind.", Direction.LOWER)
    spec = replace(model("Llama-3.1-8B").spec, doubts=(doubt,))
    doubted = replace(model("Llama-3.1-8B"), spec=spec)
    assert weights(doubted, WeightLayout()).basis is Basis.BOUND
    assert weights(stated(LLAMA_CLASSES, doubts=(doubt,)), WeightLayout()).basis is Basis.BOUND


def test_that_32_bit_checkpoints_are_halved_where_the_runtime_does() -> None:
    wide = replace(model("Llama-3.1-8B").spec, dtype="float32", weight_format="fp32")
    known = replace(model("Llama-3.1-8B"), spec=wide)
    assert weights(known, WeightLayout()).stages[0].size_bytes == 4 * 8_030_261_248
    cast = weights(known, WeightLayout(halve_float32=True)).stages[0].size_bytes
    assert cast == 2 * 8_030_261_248
    group = StoredGroup(0, ModuleClass.MLP, Sharding.COLUMN, "F32", 1000, 250, 1000, 1)
    read = replace(known, stored=replace(stored(group), format_label="fp32"))
    assert weights(read, WeightLayout(halve_float32=True)).stages[0].size_bytes == 500
    assert weights(read, WeightLayout()).stages[0].size_bytes == 1000


def test_that_an_unknown_format_counts_in_the_models_own_dtype() -> None:
    odd = replace(model("Llama-3.1-8B").spec, weight_format="mixed")
    found = weights(replace(model("Llama-3.1-8B"), spec=odd), WeightLayout())
    assert found.stages[0].size_bytes == 16_060_522_496


def test_that_stored_groups_go_to_the_stage_of_their_layer() -> None:
    first = StoredGroup(0, ModuleClass.MLP, Sharding.COLUMN, "BF16", 100, 50, 100, 1)
    last = StoredGroup(31, ModuleClass.MLP, Sharding.COLUMN, "BF16", 200, 100, 200, 1)
    head = StoredGroup(None, ModuleClass.LM_HEAD, Sharding.VOCAB, "BF16", 7, 3, 7, 1)
    read = replace(model("Llama-3.1-8B"), stored=stored(first, last, head))
    layout = WeightLayout(pipeline_parallel_size=2)
    assert [stage.size_bytes for stage in weights(read, layout).stages] == [100, 207]


def test_that_experts_of_a_header_are_split_as_well() -> None:
    group = StoredGroup(0, ModuleClass.EXPERTS, Sharding.EXPERT_COLUMN, "U8", 999, 999, 999, 1)
    read = replace(model("Qwen3-30B-A3B"), stored=stored(group))
    assert weights(read, WeightLayout(tensor_parallel_size=4)).stages[0].size_bytes == 250


def header_model(*tensors: HeaderTensor, **changes: object) -> Model:
    config = {"model_type": "llama_of_tomorrow", "vocab_size": 136, "hidden_size": 320}
    config |= {"intermediate_size": 480, "num_hidden_layers": 1, "num_attention_heads": 5}
    config |= {"num_key_value_heads": 1, "head_dim": 64, "torch_dtype": "bfloat16"}
    return read(RawModel("x", "test", config=config | changes, tensors=tensors))


def plain_header() -> list[HeaderTensor]:
    inside = {
        "self_attn.q_proj": (320, 320),
        "self_attn.k_proj": (64, 320),
        "self_attn.v_proj": (64, 320),
        "self_attn.o_proj": (320, 320),
        "mlp.gate_proj": (480, 320),
        "mlp.up_proj": (480, 320),
        "mlp.down_proj": (320, 480),
    }
    shapes = {f"model.layers.0.{name}.weight": shape for name, shape in inside.items()}
    shapes |= {"model.embed_tokens.weight": (136, 320), "lm_head.weight": (136, 320)}
    shapes |= {"model.norm.weight": (320,), "model.layers.0.extra.weight": (96, 320)}
    return [HeaderTensor(n, "BF16", s, 2 * prod(s)) for n, s in shapes.items()]


def test_that_another_format_of_an_unknown_architecture_starts_from_the_header() -> None:
    tensors = plain_header()
    model = header_model(*tensors)
    stored = weights(model, WeightLayout())
    assert stored.basis is Basis.READ
    found = weights(model, WeightLayout("w4a16-g32"))
    assert (found.basis, found.direction) == (Basis.EXACT, None)
    assert "header" in found.source
    # Every matrix of the layer at half a byte a weight, a bf16 scale for 32 and two int64.
    packed = sum(prod(t.shape) for t in tensors if ".layers." in t.name)
    rest = sum(t.size_bytes for t in tensors if ".layers." not in t.name)
    wanted = packed // 2 + 2 * packed // 32 + 8 * 16 + rest
    assert sum(stage.size_bytes for stage in found.stages) == wanted
    assert weights(model, WeightLayout("fp32")).stages[0].size_bytes == (
        2 * sum(t.size_bytes for t in tensors)
    )


def test_that_stacked_experts_of_a_header_are_packed_one_by_one() -> None:
    stack = "model.layers.0.mlp.experts.gate_up_proj"
    tensors = [*plain_header(), HeaderTensor(stack, "BF16", (4, 192, 320), 2 * 4 * 192 * 320)]
    found = weights(header_model(*tensors), WeightLayout("nvfp4"))
    # Eight matrices: 4.5 bits a weight and two fp32 scalars each.
    assert found.stages[0].by_module[ModuleClass.EXPERTS] == 4 * 192 * 320 * 9 // 16 + 8 * 8


def test_that_another_format_of_a_packed_header_is_no_exact_figure() -> None:
    tensors = [t for t in plain_header() if "up_proj" not in t.name]
    up = "model.layers.0.mlp.up_proj"
    tensors.append(HeaderTensor(f"{up}.qweight", "I32", (40, 480), 4 * 40 * 480))
    tensors.append(HeaderTensor(f"{up}.scales", "F16", (10, 480), 2 * 10 * 480))
    found = weights(header_model(*tensors), WeightLayout("nvfp4"))
    assert (found.basis, found.direction) == (Basis.BOUND, Direction.EITHER)


def test_that_packing_on_loading_may_leave_experts_alone() -> None:
    found = weights(model("Qwen3-30B-A3B"), WeightLayout("nf4"))
    assert (found.basis, found.direction) == (Basis.BOUND, Direction.LOWER)
    assert weights(model("Llama-3.1-8B"), WeightLayout("nf4")).basis is Basis.EXACT


def test_that_scales_of_the_cache_are_counted_in_the_published_format_alone() -> None:
    whole = model("Llama-3.1-8B")
    scaled = replace(whole, spec=replace(whole.spec, kv_scale_bytes=8))
    size = bytes_of("Llama-3.1-8B")
    assert sum(s.size_bytes for s in weights(scaled, WeightLayout()).stages) == size + 32 * 8
    other = weights(scaled, WeightLayout("fp16"))
    assert sum(stage.size_bytes for stage in other.stages) == size


def test_that_what_a_runtime_leaves_in_the_files_takes_no_memory() -> None:
    # vLLM's Qwen2.5-Omni is the thinker: its talker and vocoder are those of a model that cannot
    # speak.
    speaks = read(RawModel("omni", "a test", config={"model_type": "qwen2_5_omni"}))
    mute = read(
        RawModel(
            "omni", "a test", config={"model_type": "qwen2_5_omni", "enable_audio_output": False}
        )
    )
    left_out = LEFT_OUT[speaks.spec.root_type]
    found = weights(speaks, WeightLayout(left_out=left_out))
    assert found.stages[0].size_bytes == weights(mute, WeightLayout()).stages[0].size_bytes
    assert weights(speaks, WeightLayout()).stages[0].size_bytes > found.stages[0].size_bytes
