"""Requests: what is accepted becomes a deployment, what isn't names its key."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resources
from engine.contract.fields import FIELDS, Kind
from engine.contract.request import parse, request_id
from engine.deployment.spec import Deployment
from engine.errors import PlimsollError, UsageError

CONTRACT_KEYS = [
    "model", "from_command", "config", "tensors",
    "runtime", "runtime_version", "weight_format", "kv_cache_dtype",
    "max_model_len", "concurrency", "live_tokens", "max_num_seqs", "max_num_batched_tokens",
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
    "enable_expert_parallel", "decode_context_parallel_size", "gpu_memory_utilization",
    "mem_fraction_static", "enforce_eager", "language_model_only", "enable_prefix_caching",
    "speculative_tokens", "max_loras", "max_lora_rank",
    "gpu", "gpu_total_bytes", "gpu_count", "host_total_bytes", "kv_pool_bytes",
    "n_ctx", "n_parallel", "kv_unified", "n_batch", "n_ubatch", "cache_type_k", "cache_type_v",
    "cache_ram_bytes", "flash_attn", "swa_full", "n_gpu_layers", "n_cpu_moe", "split_mode",
    "tensor_split", "mmap",
    "repack", "offload_kqv", "op_offload", "n_outputs_max", "batch_size", "prompt_len",
    "attn_implementation", "cache_implementation", "kv_bits", "num_beams", "prefill_chunk_size",
    "device_map", "platform", "backend",
    "gpu_overhead_bytes", "sched_spread",
    "inverse", "devices", "baseline", "instead_of", "with",
    "kv_cache_memory_bytes", "num_gpu_blocks_override", "block_size", "pp_layer_partition",
    "draft_model",
    "chunked_prefill_size", "max_running_requests", "max_total_tokens", "cuda_graph_max_bs",
    "page_size", "enable_dp_attention", "swa_full_tokens_ratio", "max_mamba_cache_size",
    "mamba_full_memory_ratio", "prompt_lengths", "output_lengths", "arrival_rate",
    "tokens_per_second", "prefill_step_size", "kv_group_size", "quantized_kv_start", "max_kv_size",
]  # fmt: skip


def request_schema() -> dict[str, object]:
    return json.loads(resources.path("schema", "request.schema.json").read_text("utf-8"))


def test_that_the_table_holds_every_key_of_the_contract_and_no_other():
    assert sorted(field.name for field in FIELDS) == sorted(CONTRACT_KEYS)


def test_that_every_key_but_the_model_and_the_device_is_a_field_of_the_deployment():
    outside = {
        "model", "from_command", "config", "tensors",
        "gpu", "gpu_total_bytes", "gpu_count", "host_total_bytes", "inverse", "devices",
        "baseline", "instead_of", "with", "prompt_lengths", "output_lengths", "arrival_rate",
        "tokens_per_second",
    }  # fmt: skip
    assert {f.name for f in FIELDS} - outside == set(Deployment.__dataclass_fields__)


def test_that_what_is_given_reaches_the_deployment_and_the_rest_keeps_its_default():
    request = parse({
        "id": "a", "model": "m", "tensor_parallel_size": 4, "gpu_memory_utilization": 1,
        "flash_attn": "on", "tensor_split": [3, 1], "enforce_eager": True, "max_model_len": None,
    })  # fmt: skip
    assert request.deployment == Deployment(
        tensor_parallel_size=4, gpu_memory_utilization=1.0, flash_attn="on",
        tensor_split=(3.0, 1.0), enforce_eager=True,
    )  # fmt: skip
    assert request.given == {
        "model", "tensor_parallel_size", "gpu_memory_utilization", "flash_attn", "tensor_split",
        "enforce_eager",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tensor_parallel_size", "4"),
        ("tensor_parallel_size", 4.0),
        ("tensor_parallel_size", True),
        ("tensor_parallel_size", 0),
        ("tensor_parallel_size", 10**12),
        ("max_model_len", "32k"),
        ("max_model_len", -2),
        ("gpu_memory_utilization", 1.5),
        ("gpu_memory_utilization", math.nan),
        ("gpu_memory_utilization", math.inf),
        ("gpu_memory_utilization", "0.9"),
        ("enforce_eager", 1),
        ("enforce_eager", "yes"),
        ("flash_attn", "maybe"),
        ("flash_attn", []),
        ("split_mode", "diagonal"),
        ("runtime", "onnx"),
        ("runtime", ["vllm"]),
        ("weight_format", ""),
        ("weight_format", 4),
        ("tensor_split", "3,1"),
        ("tensor_split", [1, "x"]),
        ("tensor_split", [-1]),
        ("gpu_count", -1),
        ("gpu_total_bytes", 8e10),
        ("kv_pool_bytes", 10**40),
        ("config", []),
        ("config", "config.json"),
        ("tensors", {}),
        ("model", 7),
    ],
)
def test_that_a_value_of_the_wrong_type_or_size_names_its_key(key, value):
    with pytest.raises(UsageError) as caught:
        parse({"model": "m", "config": {}, key: value})
    assert caught.value.field == key
    assert caught.value.message.startswith(key)
    assert caught.value.message.endswith(".")
    assert len(caught.value.message) < 300


def test_that_an_unknown_key_is_refused_with_the_nearest_known_one():
    with pytest.raises(UsageError, match="Did you mean max_model_len") as caught:
        parse({"model": "m", "max_model_length": 8192})
    assert caught.value.field == "max_model_length"


def test_that_a_request_without_a_model_says_what_to_give():
    with pytest.raises(UsageError, match="give model") as caught:
        parse({"concurrency": 4})
    assert caught.value.field == "model"


def test_that_tensors_take_the_bytes_of_their_dtype_and_shape():
    # 4-bit values lie two in a byte: 3 × 5 = 15 values take 8 bytes.
    request = parse(
        {
            "config": {},
            "tensors": [
                {"name": "a", "dtype": "BF16", "shape": [4096, 128]},
                {"name": "b", "dtype": "F4", "shape": [3, 5]},
                {"name": "c", "dtype": "F32", "shape": []},
            ],
        }
    )
    assert [t.size_bytes for t in request.tensors] == [1_048_576, 8, 4]


@pytest.mark.parametrize(
    "tensor",
    [
        {"name": "a", "dtype": "BF16"},
        {"name": "a", "dtype": "BF16", "shape": [1], "data": 0},
        {"name": "a", "dtype": "BF17", "shape": [1]},
        {"name": "a", "dtype": "BF16", "shape": [-1]},
        {"name": "a", "dtype": "BF16", "shape": [2**63]},
        {"name": "a", "dtype": "BF16", "shape": [True]},
        {"name": "a", "dtype": "BF16", "shape": "1"},
        {"name": None, "dtype": "BF16", "shape": [1]},
        "a",
    ],
)
def test_that_a_tensor_that_cannot_be_is_named_by_its_place(tensor):
    with pytest.raises(UsageError) as caught:
        parse({"config": {}, "tensors": [tensor]})
    assert caught.value.field == "tensors[0]"


@pytest.mark.parametrize("value", [True, 1.5, [], {}])
def test_that_an_id_is_text_or_a_whole_number(value):
    with pytest.raises(UsageError):
        request_id({"id": value})


@given(
    st.dictionaries(
        st.sampled_from([*CONTRACT_KEYS, "id", "nonsense"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
            max_leaves=4,
        ),
        max_size=6,
    )
)
def test_that_any_mapping_is_either_accepted_or_refused_in_one_sentence(mapping):
    try:
        request = parse(mapping)
    except PlimsollError as error:
        sentence = error.message
    else:
        assert set(request.given) <= set(CONTRACT_KEYS)
        return
    assert "\n" not in sentence
    assert len(sentence) < 400


@given(
    st.fixed_dictionaries(
        {"model": st.just("m")},
        optional={
            field.name: st.one_of(
                st.integers(-3, 5),
                st.booleans(),
                st.floats(-1, 2, width=16),
                st.just("on"),
                st.just("vllm"),
                st.lists(st.floats(0, 3, width=16), max_size=3),
                st.none(),
            )
            for field in FIELDS
            if field.kind not in {Kind.OBJECT, Kind.OBJECTS} and field.name != "model"
        },
    )
)
def test_that_the_published_schema_accepts_exactly_what_is_accepted(mapping):
    # JSON Schema counts 2.0 as an integer, we do not: whole floats are left out here.
    floats = [v for v in mapping.values() if isinstance(v, float)]
    if any(v == int(v) for v in floats):
        return
    try:
        parse(mapping)
        accepted = True
    except PlimsollError:
        accepted = False
    validator = jsonschema.Draft202012Validator(request_schema())
    assert validator.is_valid(mapping) == accepted
