"""Draft models against the totals that the Hub lists for published ones, and by hand.

The Hub counts the elements of all tensors of the files, the two tables of words too.
"""

from math import prod

import pytest

from engine.architecture.drafts import kind_of
from engine.architecture.read import read, specify
from engine.architecture.spec import AttentionKind, Direction, Subject
from engine.budget.weights import WeightLayout, weights
from engine.errors import ConfigError
from engine.source.raw import HeaderTensor, RawModel

SIZES = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "intermediate_size", "vocab_size",
)  # fmt: skip


def layers(*sizes):
    sizes = dict(zip(SIZES, sizes, strict=True))
    return {**sizes, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


def speculator(words, inner, **more):
    return {
        "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3",
        "draft_vocab_size": words, "norm_before_residual": True,
        "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "org/target"}},
        "transformer_layer_config": {"model_type": "llama", **inner}, **more,
    }  # fmt: skip


def eagle3(inner, name="LlamaForCausalLMEagle3", **more):
    return {"architectures": [name], "model_type": "llama", **inner, **more}


def block(inner, sources, name="DFlashDraftModel", own=None, **more):
    own = {"mask_token_id": 1, "target_layer_ids": list(range(sources)), **(own or {})}
    return {
        "architectures": [name], "model_type": "qwen3", "num_target_layers": 64, "block_size": 16,
        "dflash_config": own, "use_sliding_window": False, "sliding_window": None, **inner, **more,
    }  # fmt: skip


MLA = {
    "model_type": "kimi_k2", "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128,
}  # fmt: skip
SPARK = {
    "markov_rank": 256, "markov_head_type": "vanilla", "enable_confidence_head": True,
    "confidence_head_with_markov": True,
}  # fmt: skip
CONV = {"conv_kernel_size": 2, "conv_group_size": 16, "selector_rank": 256, "selector_top_k": 16}
KIMI = layers(7168, 1, 64, 64, 112, 18432, 163840)
GPT_OSS = layers(2880, 1, 64, 8, 64, 2880, 201088)
QWEN = layers(5120, 5, 32, 8, 128, 17408, 248320)


@pytest.mark.parametrize(
    ("config", "published"),
    [
        # RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3, Qwen3-8B, Qwen3-32B, gpt-oss-20b
        (speculator(32000, layers(4096, 1, 32, 8, 128, 14336, 128256)), 950_186_496),
        (speculator(32000, layers(4096, 1, 32, 8, 128, 12288, 151936)), 1_022_037_632),
        (speculator(32000, layers(5120, 1, 64, 8, 128, 25600, 151936)), 1_560_616_576),
        (speculator(64000, GPT_OSS, norm_before_fc=True), 854_792_768),
        # Inferact/MiniMax-M3-EAGLE3 and -GQA, lightseekorg/kimi-k2.6-eagle3-mla
        (eagle3(layers(6144, 1, 64, 64, 128, 18432, 200064), fc_norm=True), 3_263_735_808),
        (eagle3(layers(6144, 1, 64, 4, 128, 18432, 200064), fc_norm=True), 3_074_992_128),
        (eagle3(KIMI, "Eagle3DeepseekV2ForCausalLM", **MLA), 3_015_604_224),
    ],
)
def test_eagle3_has_the_published_parameters(config, published):
    spec = specify(config)
    tables = [t for t in spec.outer if t.name in ("d2t", "t2d")]
    words, vocab = config["draft_vocab_size"] if tables else 0, spec.vocab_size if tables else 0
    assert spec.parameters == published - words - vocab
    # 64 bits for each word of the draft, and a byte for each of the target.
    held = weights(read(RawModel("e3", "test", config=config)), WeightLayout())
    assert held.stages[0].size_bytes == 2 * (published - words - vocab) + 8 * words + vocab
    assert spec.direction(Subject.WEIGHTS) is Direction.UPPER
    assert spec.direction(Subject.SEQUENCE_STATE) is None
    assert len(spec.attentions) == 1


@pytest.mark.parametrize(
    ("config", "published"),
    [
        # z-lab/Qwen3-4B-DFlash-b16, Qwen3-8B-DFlash-b16, Qwen3.6-35B-A3B-DFlash,
        # gemma-4-31B-it-DFlash, gemma-4-26B-A4B-it-DFlash
        (block(layers(2560, 5, 32, 8, 128, 9728, 151936), 5), 537_427_200),
        (block(layers(4096, 5, 32, 8, 128, 12288, 151936), 5), 1_048_626_432),
        (block(layers(2048, 6, 32, 8, 128, 6144, 248320), 8), 385_906_176),
        (block(layers(5376, 5, 64, 8, 128, 10752, 262144), 6), 1_535_967_488),
        (block(layers(2816, 5, 32, 8, 128, 5632, 262144), 6), 429_689_088),
        # z-lab/gpt-oss-120b-DFlash
        (
            block(layers(2880, 8, 64, 8, 64, 7680, 201088), 5, attention_bias=True),
            784_767_104,
        ),
        # incoai/Qwen3.8-27B-DFlash2, GLM-5.3-Flash-DFlash2
        (block(QWEN, 5, "DFlash2DraftModel", CONV), 1_924_404_480),
        (
            block(layers(4096, 5, 32, 8, 128, 12288, 154880), 5, "DFlash2DraftModel", CONV),
            1_171_080_448,
        ),
        # RadixArk/Qwen3.8-27B-DSpark, Kimi-K3-DSpark; openbmb/MiniCPM5-2B-DSpark;
        # LiquidAI/LFM2.5-2.6B-DSpark
        (block(QWEN, 5, "DSparkDraftModel", SPARK), 1_857_358_337),
        (
            block(layers(7168, 5, 64, 16, 64, 14336, 163840), 5, "DSparkDraftModel", SPARK),
            2_249_289_601,
        ),
        (
            block(layers(2048, 5, 16, 2, 128, 6144, 130560), 5, "DSparkDraftModel", SPARK),
            323_776_001,
        ),
        (
            block(layers(2048, 5, 32, 8, 64, 6144, 128000), 5, "DSparkDraftModel", SPARK),
            327_707_521,
        ),
    ],
)
def test_drafts_of_whole_blocks_have_the_published_parameters(config, published):
    spec = specify(config)
    assert spec.parameters == published
    assert spec.doubts == ()
    assert len(spec.attentions) == config["num_hidden_layers"]


def test_a_draft_with_tables_of_its_own_has_the_published_parameters():
    # AlayaNeW/GLM-5.2-DSpark stores embeddings and head.
    config = {
        "architectures": ["Qwen3DSparkModel"], "model_type": "qwen3_dspark", "markov_rank": 512,
        "enable_confidence_head": True, "target_layer_ids": [1, 2, 3, 4, 5],
        **layers(6144, 5, 64, 64, 128, 12288, 154880),
    }  # fmt: skip
    spec = specify(config)
    assert spec.parameters == 4_389_682_945
    assert spec.direction(Subject.WEIGHTS) is Direction.UPPER


def test_eagle_by_hand():
    inner = layers(4096, 1, 32, 8, 128, 14336, 128256)
    layer = 2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096 + 4096
    whole = 128256 * 4096 + 2 * 4096 * 4096 + layer
    for config in (
        {"architectures": ["LlamaForCausalLMEagle"], "model_type": "llama", **inner},
        {"architectures": ["EagleLlamaForCausalLM"], "model_type": "llama", **inner},
        {"architectures": ["EAGLEModel"], "model_type": "eagle",
         "model": {"model_type": "llama", **inner}},
    ):  # fmt: skip
        spec = specify(config)
        assert spec.parameters == whole + 4096  # the most: with a bias
        assert spec.direction(Subject.WEIGHTS) is Direction.UPPER
    config = {
        "architectures": ["EagleSpeculator"], "speculators_model_type": "eagle",
        "fusion_bias": False, "layernorms": True, "transformer_layer_config": inner,
    }  # fmt: skip
    assert specify(config).parameters == whole + 3 * 4096


def test_more_layers_of_eagle3_are_plain_ones():
    one = specify(eagle3(layers(1024, 1, 8, 8, 128, 2048, 8000)))
    two = specify(eagle3(layers(1024, 2, 8, 8, 128, 2048, 8000)))
    plain = 4 * 1024 * 1024 + 3 * 2048 * 1024 + 2 * 1024
    assert two.parameters - one.parameters == plain


def test_windows_of_a_draft_need_a_window():
    inner = {**layers(1024, 1, 8, 8, 128, 2048, 8000), "layer_types": ["sliding_attention"]}
    (seen,) = specify(eagle3({**inner, "sliding_window": 512})).attentions
    assert (seen.kind, seen.window) == (AttentionKind.SLIDING, 512)
    (seen,) = specify(eagle3({**inner, "sliding_window": None})).attentions
    assert seen.kind is AttentionKind.FULL


def test_medusa_by_hand():
    config = {
        "model_type": "medusa", "hidden_size": 4096, "vocab_size": 32000, "num_heads": 5,
        "num_hidden_layers": 1,
    }  # fmt: skip
    head = 4096 * 4096 + 32000 * 4096
    assert specify(config).parameters == 5 * head
    # The first format, whose residual blocks have a bias.
    first = {
        "medusa_num_heads": 3, "medusa_num_layers": 2, "hidden_size": 4096, "vocab_size": 32000,
    }  # fmt: skip
    assert specify(first).parameters == 3 * (head + 4096 * 4096 + 2 * 4096)
    shared = {**config, "original_lm_head": True}
    assert specify(shared).parameters == 5 * 4096 * 4096 + 32000 * 4096
    assert specify(config).attentions == ()
    with pytest.raises(ConfigError, match="target's config"):
        specify({"medusa_num_heads": 5, "medusa_num_layers": 1})


def test_an_mlp_speculator_by_hand():
    config = {
        "architectures": ["MLPSpeculatorPreTrainedModel"], "model_type": "mlp_speculator",
        "emb_dim": 4096, "inner_dim": 3072, "n_predict": 4, "vocab_size": 128256,
        "tie_weights": False, "scale_input": True, "top_k_tokens_per_head": [4, 3, 2, 2],
    }  # fmt: skip
    stage = 2 * 128256 * 3072 + 2 * 3072
    assert specify(config).parameters == 4 * stage + 4096 * 3072 + 3 * 3072 * 3072
    tied = {**config, "tie_weights": True}
    assert specify(tied).parameters == stage + 4096 * 3072 + 3072 * 3072
    assert specify(config).doubts == ()


def test_a_prediction_block_alone_is_one_layer_in_doubt():
    config = {
        "architectures": ["Qwen3MTPModel"], "model_type": "qwen3_mtp",
        **layers(1024, 28, 8, 8, 128, 2048, 8000),
    }  # fmt: skip
    spec = specify(config)
    layer = 4 * 1024 * 1024 + 3 * 2048 * 1024 + 2 * 1024 + 2 * 128
    assert spec.parameters == layer + 2 * 1024 * 1024 + 3 * 1024
    assert spec.direction(Subject.WEIGHTS) is Direction.EITHER


def test_the_type_alone_is_enough_for_layers_described_below():
    inner = layers(1024, 1, 8, 8, 128, 2048, 8000)
    for config in (
        {"model_type": "eagle", "model": {"model_type": "llama", **inner}},
        {"model_type": "qwen3_mtp", "text_config": {"model_type": "qwen3", **inner}},
    ):
        spec = specify(config)
        assert spec.draft == kind_of(config) != ""
        assert {doubt.direction for doubt in spec.doubts} <= {Direction.UPPER, Direction.EITHER}


def test_a_key_of_eagle_config_that_is_not_known_is_in_doubt():
    inner = layers(1024, 1, 8, 8, 128, 2048, 8000)
    known = {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": [1, 2, 3]}
    spec = specify(eagle3(inner, eagle_config=known))
    assert spec.direction(Subject.WEIGHTS) is Direction.UPPER
    spec = specify(eagle3(inner, eagle_config={**known, "parallel_draft_step": 4}))
    assert spec.direction(Subject.WEIGHTS) is Direction.EITHER
    none = specify(eagle3(inner, eagle_config={"use_aux_hidden_state": False}))
    assert spec.parameters - none.parameters == 3 * 1024 * 1024


def test_a_kind_that_is_not_known_is_in_doubt():
    config = speculator(8000, layers(1024, 1, 8, 8, 128, 2048, 8000))
    spec = specify({**config, "speculators_model_type": "some_new_kind"})
    assert spec.direction(Subject.WEIGHTS) is Direction.EITHER
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


def test_the_block_of_qwen3_5_has_the_parameters_by_which_files_with_and_without_it_differ():
    # lued/Qwen3.8-27B-INT8-W8A16-MTP and -DFlash2: 27,781,427,952 and 27,356,728,560.
    inner = layers(5120, 64, 24, 4, 256, 17408, 248320)
    config = {
        "model_type": "qwen3_5_mtp", "architectures": ["Qwen3_5MTP"],
        "text_config": {"model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1, **inner},
    }  # fmt: skip
    spec = specify(config)
    assert spec.parameters == 27_781_427_952 - 27_356_728_560
    assert len(spec.attentions) == 1


def test_a_draft_that_calls_itself_a_model_is_counted_at_most():
    # SafeAILab/EAGLE, eagle/train/llama_2_chat_7B_config.json
    inner = layers(4096, 1, 32, 32, 128, 11008, 32000)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **inner}
    spec = specify(config)
    assert spec.direction(Subject.WEIGHTS) is Direction.UPPER
    eagle = specify({**config, "architectures": ["LlamaForCausalLMEagle"]})
    assert eagle.parameters < spec.parameters
    assert specify({**config, "num_hidden_layers": 2}).doubts == ()
    assert specify({**config, "hidden_size": 1024, "head_dim": 32}).doubts == ()


@pytest.mark.parametrize(
    "own", [{"attention_mode": "kda"}, {"attention_modes": ["kda", "gqa"]}, {"num_experts": 4}]
)
def test_what_a_block_draft_has_that_is_not_known_is_in_doubt(own):
    spec = specify(block(QWEN, 5, own=own))
    assert spec.direction(Subject.WEIGHTS) is Direction.EITHER


@pytest.mark.parametrize("config", [
    {"architectures": ["DSparkForCausalLM"], "model_type": "dspark", "num_target_layers": 64},
    {"architectures": ["DSparkModel"], "model_type": "qwen3", "num_target_layers": 64},
    {"architectures": ["DFlashDraftModel"], "model_type": "qwen3"},
    {"architectures": ["K3DSparkModel"], "model_type": "k3_dspark", "num_target_layers": 64},
])  # fmt: skip
def test_block_drafts_of_classes_that_are_not_known_are_in_doubt(config):
    spec = specify({**QWEN, **config})
    assert spec.draft == "dflash_draft"
    assert spec.direction(Subject.WEIGHTS) is Direction.EITHER


def header(name, *shape, dtype="BF16", width=2):
    return HeaderTensor(name, dtype, shape, prod(shape) * width)


def test_the_header_of_a_draft_says_whether_the_embeddings_are_there():
    inner = layers(64, 1, 4, 4, 16, 96, 512)
    tensors = [
        *(header(f"midlayer.self_attn.{n}_proj.weight", 64, 128) for n in "qkv"),
        header("midlayer.self_attn.o_proj.weight", 64, 64),
        header("midlayer.mlp.gate_proj.weight", 96, 64),
        header("midlayer.mlp.up_proj.weight", 96, 64),
        header("midlayer.mlp.down_proj.weight", 64, 96),
        *(header(f"midlayer.{n}.weight", 64)
          for n in ("hidden_norm", "input_layernorm", "post_attention_layernorm")),
        header("fc.weight", 64, 192),
        header("norm.weight", 64),
        header("lm_head.weight", 128, 64),
        header("d2t", 128, dtype="I64", width=8),
        header("t2d", 512, dtype="BOOL", width=1),
    ]  # fmt: skip
    config = eagle3(inner, draft_vocab_size=128)
    model = read(RawModel("e3", "test", config=config, tensors=tuple(tensors)))
    own = sum(prod(t.shape) for t in tensors[:-2])
    assert model.parameters == own
    assert model.spec.direction(Subject.WEIGHTS) is None
    assert model.stored is not None
    assert model.stored.size_bytes == 2 * own + 8 * 128 + 512
    assert model.notes[0].startswith("An EAGLE-3 draft model for speculative decoding")


def test_a_block_is_counted_whatever_number_its_layer_has():
    config = {
        "model_type": "qwen3_mtp", "architectures": ["Qwen3MTPModel"],
        **layers(64, 28, 4, 4, 16, 96, 512),
    }  # fmt: skip
    for prefix in ("model.layers.28.", "mtp.layers.0.", "model.mtp_layers.0.", "mtp.0."):
        tensors = (
            header(f"{prefix}self_attn.q_proj.weight", 64, 64),
            header(f"{prefix}eh_proj.weight", 64, 128),
        )
        model = read(RawModel("mtp", "test", config=config, tensors=tensors))
        assert model.parameters == 64 * 64 + 64 * 128


@pytest.mark.parametrize(
    "name",
    [
        "LlamaForCausalLM", "Eagle2_5_VLForConditionalGeneration", "DeepseekV3ForCausalLM",
        "EagleQwenGForCausalLM", "Qwen3_5ForConditionalGeneration", "Gemma4AssistantForCausalLM",
    ],
)  # fmt: skip
def test_other_classes_are_no_drafts(name):
    assert not kind_of({"architectures": [name], "model_type": "llama"})


@pytest.mark.parametrize(
    "more",
    [
        {"eagle_config": 3}, {"draft_vocab_size": "many"}, {"target_hidden_size": -1},
        {"eagle_aux_hidden_state_layer_ids": "all"}, {"norm_before_fc": "yes"},
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(more):
    with pytest.raises(ConfigError):
        specify(eagle3(layers(64, 1, 4, 4, 16, 96, 512), **more))
