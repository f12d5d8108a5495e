"""Prediction blocks by hand: what each kind stores, and what of it becomes resident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import ArchitectureSpec, AttentionKind, Direction, Subject
from engine.budget.model import Region
from engine.budget.weights import WeightLayout, weights
from engine.deployment.spec import Deployment
from engine.errors import ConfigError
from engine.runtimes.registry import get
from engine.runtimes.vllm.layout import PoolRule
from engine.runtimes.vllm.pool import pool_layout
from engine.source.raw import HeaderTensor, RawModel
from tests.helpers.published import H100, machine

if TYPE_CHECKING:
    from engine.architecture.model import Model

H, V = 64, 640
# Attention of two heads of 32 and two KV heads, and a gated MLP of 128.
ATTENTION, MLP, JOIN = 4 * H * H, 3 * 128 * H, 2 * H * H
PLAIN: dict[str, Any] = {
    "hidden_size": H, "vocab_size": V, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 128,
    "torch_dtype": "bfloat16", "tie_word_embeddings": False, "num_nextn_predict_layers": 1,
}  # fmt: skip
MIXTURE = PLAIN | {
    "n_routed_experts": 4, "moe_intermediate_size": 16, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "first_k_dense_replace": 1,
}  # fmt: skip
EXPERTS = (4 + 1) * 3 * 16 * H + 4 * H
"""Four experts, a shared one and their router."""
GLM = MIXTURE | {"model_type": "glm4_moe"}


def block(spec: ArchitectureSpec) -> int:
    return sum(tensor.parameters for tensor in spec.mtp)


def test_that_glm_repeats_both_tables_in_its_block() -> None:
    spec = specify(GLM)
    own = ATTENTION + EXPERTS + JOIN + 5 * H
    assert block(spec) == own + 2 * V * H
    assert sum(tensor.parameters for tensor in spec.mtp if not tensor.repeats) == own
    # Two blocks have everything twice.
    assert block(specify(GLM | {"num_nextn_predict_layers": 2})) == 2 * block(spec)


def test_that_blocks_that_join_once_add_layers_alone() -> None:
    exaone = PLAIN | {"model_type": "exaone4"}
    layer = ATTENTION + MLP + 2 * H + 2 * 32
    joined = JOIN + 3 * H
    assert block(specify(exaone)) == layer + joined
    assert block(specify(exaone | {"num_nextn_predict_layers": 3})) == 3 * layer + joined


def test_that_exaone_predicts_with_a_dense_layer_behind_sparse_ones() -> None:
    config = {
        **PLAIN, "model_type": "exaone_moe", "num_experts": 4, "moe_intermediate_size": 16,
        "num_experts_per_tok": 2,
        "num_shared_experts": 1, "first_k_dense_replace": 1,
    }  # fmt: skip
    assert block(specify(config)) == ATTENTION + MLP + 2 * H + 2 * 32 + JOIN + 3 * H


def test_that_step_slides_with_heads_of_its_own_and_keeps_its_head() -> None:
    config = {
        **PLAIN, "model_type": "step3p5", "num_attention_groups": 2, "sliding_window": 16,
        "attention_other_setting": {"num_attention_heads": 4}, "moe_layers_enum": "1",
        "moe_num_experts": 4, "moe_intermediate_size": 16, "share_expert_dim": 16,
        "num_experts_per_tok": 2,
        "layer_types": ["full_attention"] * 2, "num_nextn_predict_layers": 3,
    }  # fmt: skip
    # Query and output of four heads of 32, key and value of two, a gate for each head, two norms
    # of a head; its own output head, that nothing shares.
    layer = 2 * 128 * H + 2 * 64 * H + 4 * H + 2 * 32 + MLP + 2 * H
    spec = specify(config)
    assert block(spec) == 3 * (layer + JOIN + 3 * H + V * H)
    assert not any(tensor.repeats for tensor in spec.mtp)
    assert [(a.kind, a.window) for a in spec.mtp_attentions] == [(AttentionKind.SLIDING, 16)] * 3


def test_that_nemotron_predicts_with_attention_and_experts() -> None:
    config = {
        **PLAIN, "model_type": "nemotron_h", "hybrid_override_pattern": "M-", "ssm_state_size": 16,
        "mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 1, "conv_kernel": 4,
        "n_routed_experts": 4, "moe_intermediate_size": 16, "num_experts_per_tok": 2,
        "moe_shared_expert_intermediate_size": 48, "moe_latent_size": 8,
        "mtp_hybrid_override_pattern": "*E",
    }  # fmt: skip
    # One norm a block; experts of two matrices in a latent space, between two projections.
    experts = 4 * 2 * 16 * 8 + 4 * H + 2 * 48 * H + 2 * 8 * H
    attending = ATTENTION + H
    spec = specify(config)
    assert block(spec) == attending + experts + H + JOIN + 3 * H
    assert len(spec.mtp_attentions) == 1
    twice = specify(config | {"mtp_hybrid_override_pattern": "**E"})
    assert block(twice) == block(spec) + attending


def test_that_deepseek_v4_predicts_without_compressed_entries() -> None:
    config = {
        "model_type": "deepseek_v4", "hidden_size": H, "vocab_size": V, "num_hidden_layers": 2,
        "num_attention_heads": 2, "head_dim": 32, "q_lora_rank": 16, "o_groups": 2,
        "o_lora_rank": 8, "sliding_window": 16, "index_head_dim": 8, "index_n_heads": 2,
        "qk_rope_head_dim": 8, "n_routed_experts": 4, "moe_intermediate_size": 16,
        "num_experts_per_tok": 2, "hc_mult": 4, "compress_ratios": [0, 4, 0],
        "num_nextn_predict_layers": 1,
    }  # fmt: skip
    query, output = 16 * H + 16 + 64 * 16, 2 * 8 * 32 + H * 16
    attention = query + 32 * H + 32 + output + 2
    # 24 rows over four streams, around both blocks; the head of the streams has four.
    streams = 2 * (24 * 4 * H + 24 + 3)
    head = 4 * 4 * H + 4 + 1
    spec = specify(config)
    assert block(spec) == attention + EXPERTS + 2 * H + streams + JOIN + 3 * H + head
    assert [(a.kind, a.compression) for a in spec.mtp_attentions] == [(AttentionKind.SLIDING, None)]


def test_that_the_unproven_is_left_out_and_told() -> None:
    model = read(RawModel("x", "test", config=PLAIN | {"model_type": "llama"}))
    assert (model.spec.mtp, model.spec.uncounted_mtp) == ((), 1)
    assert any("not known here" in note for note in model.notes)
    (told,) = read(RawModel("x", "test", config=GLM)).notes
    assert f"{block(specify(GLM)):,} parameters" in told


def resident(model: Model, **layout: Any) -> list[int]:
    return [stage.size_bytes for stage in weights(model, WeightLayout(**layout)).stages]


def test_that_repeated_tables_are_loaded_once() -> None:
    model = read(RawModel("x", "test", config=GLM))
    (alone,), (predicting,) = resident(model), resident(model, with_mtp=True)
    assert predicting - alone == 2 * (ATTENTION + EXPERTS + JOIN + 5 * H)
    # In a pipeline the last stage has no embedding to share.
    before = resident(model, pipeline_parallel_size=2)
    after = resident(model, pipeline_parallel_size=2, with_mtp=True)
    assert after[0] == before[0]
    assert after[1] - before[1] == predicting - alone + 2 * V * H


def test_that_repeated_tables_of_a_header_are_loaded_once() -> None:
    spec = specify(GLM)
    tensors = [
        HeaderTensor(tensor.name, "BF16", tensor.shape, 2 * tensor.parameters)
        for tensor in spec.outer
    ]
    for index, layer in enumerate((*spec.layers, None)):
        for tensor in layer.tensors if layer else spec.mtp:
            for copy in range(tensor.copies):
                name = tensor.name.replace("*", str(copy))
                size = 2 * tensor.parameters // tensor.copies
                path = f"model.layers.{index}.{name}"
                tensors.append(HeaderTensor(path, "BF16", tensor.shape, size))
    model = read(RawModel("x", "test", config=GLM, tensors=tuple(tensors)))
    assert model.stored is not None
    assert sum(g.size_bytes for g in model.stored.groups) == 2 * (spec.parameters + block(spec))
    (alone,), (predicting,) = resident(model), resident(model, with_mtp=True)
    assert alone == 2 * spec.parameters
    assert predicting - alone == 2 * (ATTENTION + EXPERTS + JOIN + 5 * H)


@pytest.mark.parametrize("ignored", ["mtp*", "mtp.layers.0*", "re:^mtp.*", "model.layers.2*"])
def test_that_a_block_that_a_quantisation_leaves_alone_stays_plain(ignored: str) -> None:
    statement = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", ignored]}
    spec = specify(GLM | {"quantization_config": statement})
    assert {t.stored_as for t in spec.mtp if t.linear} == {"bf16"}
    assert {t.stored_as for layer in spec.layers for t in layer.tensors} == {""}


def test_that_the_projection_and_the_router_of_a_block_are_not_quantised() -> None:
    # DeepSeek-V3's file has no scale for either (``tests/truth/test_prediction_blocks.py``).
    plain = {t.name for t in specify(GLM).mtp if not t.linear and len(t.shape) == 2}
    assert {"eh_proj.weight", "mlp.gate.weight"} <= plain


def test_that_an_absurd_number_of_blocks_is_refused() -> None:
    with pytest.raises(ConfigError, match="num_nextn_predict_layers"):
        specify(GLM | {"num_nextn_predict_layers": 10**9})


@pytest.mark.parametrize(
    "key", ["num_mtp_modules", "num_mtp_layers", "mtp_num_hidden_layers", "mtp_num_layers"]
)
def test_that_a_stated_block_puts_no_built_count_in_doubt(key: str) -> None:
    config = {k: v for k, v in PLAIN.items() if k != "num_nextn_predict_layers"}
    spec = specify(config | {"model_type": "llama", key: 2})
    assert spec.uncounted_mtp == 2
    assert not spec.doubts


def test_that_blocks_stated_beside_the_text_model_are_told() -> None:
    config = PLAIN | {"model_type": "llama", "mtp_config": {"num_nextn_predict_layers": 8}}
    del config["num_nextn_predict_layers"]
    assert specify(config).uncounted_mtp == 8


def test_that_files_without_the_stated_block_are_told() -> None:
    spec = specify(GLM)
    tensors = [HeaderTensor(t.name, "BF16", t.shape, 2 * t.parameters) for t in spec.outer]
    for index, layer in enumerate(spec.layers):
        for tensor in layer.tensors:
            path = f"model.layers.{index}.{tensor.name}"
            shape = (tensor.copies, *tensor.shape) if tensor.copies > 1 else tensor.shape
            name = path.replace(".*", "")
            tensors.append(HeaderTensor(name, "BF16", shape, 2 * tensor.parameters))
    model = read(RawModel("x", "test", config=GLM, tensors=tuple(tensors)))
    deployment = Deployment(max_model_len=256, speculative_tokens=1)
    warnings = get("vllm").plan(model, deployment, machine(H100)).warnings
    assert any("files hold no prediction layers" in line for line in warnings)


def test_that_speculating_with_an_unknown_block_is_a_bound() -> None:
    config = PLAIN | {"model_type": "llama", "max_position_embeddings": 256}
    model = read(RawModel("x", "test", config=config))
    for tokens, direction in ((0, None), (1, Direction.LOWER)):
        deployment = Deployment(max_model_len=256, speculative_tokens=tokens)
        budget = get("vllm").plan(model, deployment, machine(H100))
        found = {d.subject: d.direction for d in budget.doubts}
        assert found.get(Subject.WEIGHTS) is direction
        assert found.get(Subject.SEQUENCE_STATE) is direction
        region = budget.ranks[0].regions[Region.WEIGHTS]
        assert (region.estimate.basis.value == "bound") is bool(tokens)


def test_that_every_block_keeps_keys_and_values() -> None:
    spec = specify(GLM | {"num_nextn_predict_layers": 2})
    layout = pool_layout(spec, 0, 2, PoolRule("bfloat16", speculative_tokens=2, with_mtp=True))
    assert layout is not None
    # Two layers and two blocks, 16 tokens of two heads, 32 wide, in 16 bits, keys and values.
    assert layout.bytes_per_block == 4 * 16 * 2 * 32 * 2 * 2


def test_that_an_unknown_block_in_the_files_is_counted_as_stored() -> None:
    config = PLAIN | {"model_type": "llama", "max_position_embeddings": 256}
    spec = specify(config)
    named = [(t.name, t) for t in spec.outer]
    for index, layer in enumerate((*spec.layers, spec.layers[-1])):
        named += [(f"model.layers.{index}.{t.name}", t) for t in layer.tensors]
    tensors = tuple(HeaderTensor(n, "BF16", t.shape, 2 * t.parameters) for n, t in named)
    model = read(RawModel("x", "test", config=config, tensors=tensors))
    deployment = Deployment(max_model_len=256, speculative_tokens=1)
    budget = get("vllm").plan(model, deployment, machine(H100))
    assert {d.subject: d.direction for d in budget.doubts}[Subject.WEIGHTS] is Direction.EITHER
    (alone,) = resident(model)
    (predicting,) = resident(budget.model, with_mtp=True)
    assert predicting - alone == 2 * spec.layers[-1].parameters
    assert weights(budget.model, WeightLayout(with_mtp=True)).direction is Direction.EITHER
