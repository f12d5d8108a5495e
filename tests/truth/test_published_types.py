"""Published models whose types have code of their own, against their published totals.

Dimensions are facts of the models' configs, totals what the Hub states of their safetensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, Subject
from engine.runtimes.transformers.cache import layer_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping


def config(
    kind: str, sizes: tuple[int, int, int, int, int, int], **more: object
) -> dict[str, object]:
    """A config from layers, heads, key/value heads, hidden size, vocabulary and MLP width."""
    names = (
        "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size",
        "vocab_size", "intermediate_size",
    )  # fmt: skip
    return {"model_type": kind, **dict(zip(names, sizes, strict=True)), **more}


OLMO = {
    "model_type": "hf_olmo", "architectures": ["OLMoForCausalLM"], "vocab_size": 50_280,
    "embedding_size": 50_304, "block_type": "sequential", "layer_norm_type": "default",
    "layer_norm_with_affine": False, "activation_type": "swiglu", "include_bias": False,
    "max_sequence_length": 2_048, "block_group_size": 1, "multi_query_attention": False,
}  # fmt: skip
LLADA = {
    "model_type": "llada", "architectures": ["LLaDAModelLM"], "d_model": 4_096, "n_layers": 32,
    "n_heads": 32, "n_kv_heads": 32, "mlp_hidden_size": 12_288, "mlp_ratio": 4,
    "vocab_size": 126_464, "embedding_size": 126_464, "weight_tying": False,
    "block_type": "llama", "layer_norm_type": "rms", "layer_norm_with_affine": True,
    "activation_type": "silu", "include_bias": False, "max_sequence_length": 4_096,
}  # fmt: skip
REFINED_WEB = {
    "architectures": ["RWForCausalLM"], "alibi": False, "bias": False, "parallel_attn": True,
    "vocab_size": 65_024, "apply_residual_connection_post_layernorm": False,
}  # fmt: skip
PHI = {
    "vocab_size": 51_200, "n_head": 32, "n_inner": None, "n_positions": 2_048, "rotary_dim": 32,
    "tie_word_embeddings": False,
}  # fmt: skip
INTERN_S1 = {
    "model_type": "interns1", "architectures": ["InternS1ForConditionalGeneration"],
    "downsample_ratio": 0.5, "vision_feature_layer": -1,
}  # fmt: skip
INTERN_VIT = {
    "model_type": "interns1_vision", "image_size": [448, 448], "patch_size": [14, 14],
    "num_channels": 3, "use_mean_pooling": True,
}  # fmt: skip
ERNIE_VL: dict[str, object] = {
    "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"], "tie_word_embeddings": True,
    "moe_num_experts": [64, 64], "im_patch_id": 100_295, "pixel_hidden_size": 1_280,
    "spatial_conv_size": 2, "temporal_conv_size": 2, "use_bias": False,
    "vision_config": {
        "model_type": "DFNRope_vision_transformer", "depth": 32, "embed_dim": 1_280,
        "hidden_size": 1_280, "in_channels": 3, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14,
        "spatial_merge_size": 2,
    },
}  # fmt: skip
TIED = {"tie_word_embeddings": True}

# name: (config, published total, keys and values of a token)
DECODERS: dict[str, tuple[Mapping[str, object], int, int]] = {
    "01-ai/Yi-6B": (
        config("Yi", (32, 32, 4, 4_096, 64_000, 11_008), architectures=["YiForCausalLM"]),
        6_061_035_520, 32 * 2 * 4 * 128,
    ),
    "BAAI/Aquila2-34B": (
        config("aquila", (60, 48, 8, 6_144, 143_973, 24_576)),
        34_233_796_608, 60 * 2 * 8 * 128,
    ),
    "hmellor/Ilama-3.2-1B": (
        config("ilama", (16, 32, 8, 2_048, 128_256, 8_192), head_dim=64, **TIED),
        1_235_814_400, 16 * 2 * 8 * 64,
    ),
    "IFM/K2-Horizon-7B": (
        config("k2_horizon", (36, 32, 8, 4_096, 250_624, 12_288), head_dim=128),
        8_999_178_240, 36 * 2 * 8 * 128,
    ),
    "JetLM/SDAR-1.7B-Chat": (
        config("sdar", (28, 16, 8, 2_048, 151_936, 6_144), head_dim=128),
        2_031_739_904, 28 * 2 * 8 * 128,
    ),
    "jtatman/zephyr-3b-gravityfalls": (
        config("stablelm_epoch", (32, 32, 32, 2_560, 50_304, 6_912)),
        2_795_443_200, 32 * 2 * 32 * 80,
    ),
    "AI4Chem/ChemLLM-7B-Chat-1_5-DPO": (
        config("internlm", (32, 32, 8, 4_096, 92_544, 14_336), bias=False),
        7_737_708_544, 32 * 2 * 8 * 128,
    ),
    "allenai/OLMo-7B": (
        {**OLMO, "d_model": 4_096, "n_layers": 32, "n_heads": 32, "mlp_hidden_size": 22_016,
         "mlp_ratio": 4, "weight_tying": False},
        6_888_095_744, 32 * 2 * 4_096,
    ),
    "allenai/OLMo-1B": (
        {**OLMO, "d_model": 2_048, "n_layers": 16, "n_heads": 16, "mlp_hidden_size": None,
         "mlp_ratio": 8, "weight_tying": True},
        1_176_764_416, 16 * 2 * 2_048,
    ),
    "ByteDance/Ouro-1.4B": (  # every layer runs four times
        config("ouro", (24, 16, 16, 2_048, 49_152, 5_632), head_dim=128, total_ut_steps=4),
        1_434_652_673, 4 * 24 * 2 * 2_048,
    ),
    "ByteDance/Ouro-2.6B-Thinking": (
        config("ouro", (48, 16, 16, 2_048, 49_152, 5_632), head_dim=128, total_ut_steps=4),
        2_667_974_657, 4 * 48 * 2 * 2_048,
    ),
    "tiiuae/falcon-7b": (
        {**REFINED_WEB, "model_type": "RefinedWebModel", "hidden_size": 4_544, "n_head": 71,
         "n_layer": 32, "multi_query": True},
        6_921_720_704, 32 * 2 * 64,
    ),
    "tiiuae/falcon-40b": (
        {**REFINED_WEB, "model_type": "RefinedWeb", "hidden_size": 8_192, "n_head": 128,
         "n_head_kv": 8, "n_layer": 60},
        41_303_293_952, 60 * 2 * 8 * 64,
    ),
    "microsoft/phi-2": (
        {**PHI, "model_type": "phi-msft", "n_embd": 2_560, "n_layer": 32, "n_head_kv": None},
        2_779_683_840, 32 * 2 * 2_560,
    ),
    "microsoft/phi-1_5": (
        {**PHI, "model_type": "mixformer-sequential", "n_embd": 2_048, "n_layer": 24,
         "architecture": {"block_cls": "parallel", "mixer": {}, "mlp": {"mlp_cls": "mlp"}}},
        1_418_270_720, 24 * 2 * 2_048,
    ),
    "microsoft/Phi-3-small-128k-instruct": (
        {**config("phi3small", (32, 32, 8, 4_096, 100_352, 14_336)), "intermediate_size": None,
         "ff_intermediate_size": 14_336, "blocksparse_block_size": 64},
        7_392_272_384, 32 * 2 * 8 * 128,
    ),
    "amd/Instella-3B": (
        config("instella", (36, 32, 32, 2_560, 50_304, 6_912), head_dim=80),
        3_112_675_840, 36 * 2 * 2_560,
    ),
    "KORMo-Team/KORMo-10B-sft": (
        config("kormo", (40, 32, 8, 4_096, 125_184, 16_384), head_dim=128),
        10_756_624_384, 40 * 2 * 8 * 128,
    ),
    "Nanbeige/Nanbeige4.2-3B": (  # every layer runs twice
        config(
            "nanbeige", (22, 48, 8, 3_072, 166_144, 10_752), head_dim=128, num_loops=2,
            loop_loss_weights=[], tie_word_embeddings=False,
        ),
        4_169_800_704, 2 * 22 * 2 * 8 * 128,
    ),
    "pfnet/plamo-3-610m-fin-instruct": (
        config(
            "plamo3", (16, 16, 1, 1_536, 107_520, 6_144), head_dim=128, window_size=2_048,
            sliding_window_pattern=8, tie_word_embeddings=False,
        ),
        890_344_960, 16 * 2 * 128,
    ),
    "pico-lm/pico-decoder-tiny": (
        {
            "model_type": "pico_decoder", "architectures": ["PicoDecoderHF"], "n_layers": 12,
            "d_model": 96, "vocab_size": 50_304, "attention_n_heads": 12,
            "attention_n_kv_heads": 4, "activation_hidden_dim": 384, "max_seq_len": 2_048,
            "batch_size": 1_024,
        },
        11_282_784, 12 * 2 * 4 * 8,
    ),
    "THUDM/chatglm-6b": (
        {
            "model_type": "chatglm", "architectures": ["ChatGLMModel"], "hidden_size": 4_096,
            "inner_hidden_size": 16_384, "num_layers": 28, "num_attention_heads": 32,
            "vocab_size": 130_528, "max_sequence_length": 2_048, "position_encoding_2d": True,
            "quantization_bit": 0, "prefix_projection": False, "pre_seq_len": None,
        },
        6_173_286_400, 28 * 2 * 4_096,
    ),
    "rednote-hilab/dots.ocr": (
        config(
            "dots_ocr", (28, 12, 2, 1_536, 151_936, 8_960), attention_bias=True,
            architectures=["DotsOCRForCausalLM"], tie_word_embeddings=False,
            vision_config={
                "embed_dim": 1_536, "hidden_size": 1_536, "intermediate_size": 4_224,
                "num_hidden_layers": 42, "num_attention_heads": 12, "num_channels": 3,
                "patch_size": 14, "post_norm": True, "spatial_merge_size": 2,
                "temporal_patch_size": 1, "use_bias": False,
            },
        ),
        3_039_179_264, 28 * 2 * 2 * 128,
    ),
    "internlm/Intern-S1-mini": (
        {
            **INTERN_S1,
            "text_config": config(
                "qwen3", (36, 32, 8, 4_096, 153_216, 12_288), head_dim=128,
                tie_word_embeddings=False,
            ),
            "vision_config": {
                **INTERN_VIT, "hidden_size": 1_024, "intermediate_size": 4_096,
                "num_hidden_layers": 24, "num_attention_heads": 16, "attention_bias": True,
                "use_qk_norm": False, "norm_type": "layer_norm",
            },
        },
        8_538_804_224, 36 * 2 * 8 * 128,
    ),
    "internlm/Intern-S1": (
        {
            **INTERN_S1,
            "text_config": config(
                "qwen3_moe", (94, 64, 4, 4_096, 153_216, 12_288), head_dim=128,
                tie_word_embeddings=False, num_experts=128, num_experts_per_tok=8,
                moe_intermediate_size=1_536,
            ),
            "vision_config": {
                **INTERN_VIT, "hidden_size": 3_200, "intermediate_size": 12_800,
                "num_hidden_layers": 45, "num_attention_heads": 25, "attention_bias": False,
                "use_qk_norm": True, "norm_type": "rms_norm",
            },
        },
        240_709_856_128, 94 * 2 * 4 * 128,
    ),
    "vikhyatk/moondream2": (  # its sizes are its code's
        {"model_type": "moondream1", "architectures": ["HfMoondream"], "config": {}},
        1_927_237_104, 24 * 2 * 2_048,
    ),
    "MiniMaxAI/MiniMax-VL-01": (  # every eighth layer attends
        {
            "model_type": "minimax_vl_01", "image_grid_pinpoints": [[336, 336]],
            "architectures": ["MiniMaxVL01ForConditionalGeneration"], "vision_feature_layer": -2,
            "text_config": config(
                "minimax_text_01", (80, 64, 8, 6_144, 200_064, 9_216), head_dim=128,
                attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10, num_local_experts=32,
                num_experts_per_tok=2, postnorm=True, tie_word_embeddings=False,
            ),
            "vision_config": {
                "model_type": "clip_vision_model", "hidden_size": 1_024, "image_size": 336,
                "intermediate_size": 4_096, "num_attention_heads": 16, "num_hidden_layers": 24,
                "patch_size": 14,
            },
        },
        456_437_219_328, 10 * 2 * 8 * 128,
    ),
    "stepfun-ai/step3": (  # all heads share one key and one value
        {
            "model_type": "step3_vl", "architectures": ["Step3VLForConditionalGeneration"],
            "understand_projector_stride": 2, "projector_bias": False,
            "text_config": {
                "model_type": "step3_text", "num_hidden_layers": 61, "num_attention_heads": 64,
                "num_attention_groups": 1, "head_dim": 256, "share_q_dim": 2_048,
                "hidden_size": 7_168, "vocab_size": 128_815, "intermediate_size": 18_432,
                "moe_intermediate_size": 5_120, "share_expert_dim": 5_120, "moe_num_experts": 48,
                "moe_top_k": 3, "moe_layers_enum": ",".join(map(str, range(4, 60))),
            },
            "vision_config": {
                "hidden_size": 1_792, "output_hidden_size": 4_096, "image_size": 728,
                "intermediate_size": 15_360, "num_attention_heads": 16, "num_hidden_layers": 63,
                "patch_size": 14,
            },
        },
        320_969_912_832, 61 * 2 * 256,
    ),
    "baidu/ERNIE-4.5-VL-28B-A3B-PT": (
        {
            **config("ernie4_5_moe_vl", (28, 20, 4, 2_560, 103_424, 12_288), **ERNIE_VL),
            "moe_intermediate_size": [1_536, 512], "moe_k": 6, "moe_num_shared_experts": 2,
            "moe_layer_start_index": [1, 1], "moe_layer_end_index": [29, 28],
        },
        29_399_294_336, 28 * 2 * 4 * 128,
    ),
    "baidu/ERNIE-4.5-VL-424B-A47B-Base-PT": (
        {
            **config("ernie4_5_moe_vl", (54, 64, 8, 8_192, 103_424, 28_672), **ERNIE_VL),
            "moe_intermediate_size": [3_584, 1_536], "moe_k": 8, "moe_num_shared_experts": 0,
            "moe_layer_start_index": [3, 3], "moe_layer_end_index": [53, 53],
            "tie_word_embeddings": False,
        },
        423_526_285_184, 54 * 2 * 8 * 128,
    ),
    "stepfun-ai/GOT-OCR2_0": (  # its file holds the tied head beside the embedding
        config("GOT", (24, 16, 16, 1_024, 151_860, 2_816), image_token_len=256, **TIED),
        716_033_280 - 151_860 * 1_024, 24 * 2 * 1_024,
    ),
}  # fmt: skip
DIFFUSION: dict[str, tuple[Mapping[str, object], int]] = {
    "Dream-org/Dream-v0-Base-7B": (
        config("Dream", (28, 28, 4, 3_584, 152_064, 18_944), architectures=["DreamModel"]),
        7_615_616_512,
    ),
    "GSAI-ML/LLaDA-8B-Base": (LLADA, 8_015_581_184),
    "inclusionAI/LLaDA2.0-mini": (
        config(
            "llada2_moe", (20, 16, 4, 2_048, 157_184, 5_120), head_dim=128,
            moe_intermediate_size=512, num_experts=256, num_shared_experts=1,
            num_experts_per_tok=8, first_k_dense_replace=1, use_qk_norm=True,
            moe_router_enable_expert_bias=True,
        ),
        16_255_643_392,
    ),
    "GSAI-ML/iLLaDA-8B-Base": (
        config("illada", (32, 32, 8, 4_096, 155_136, 14_336)), 8_250_462_208,
    ),
}  # fmt: skip
RECURRENT: dict[str, tuple[Mapping[str, object], int, int]] = {
    "RWKV/rwkv-5-world-7b": (  # two inputs in bf16, and 64 matrices of 64 x 64 in fp32
        {
            "model_type": "rwkv5", "hidden_size": 4_096, "attention_hidden_size": 4_096,
            "head_size": 64, "intermediate_size": None, "num_hidden_layers": 32,
            "vocab_size": 65_536, "torch_dtype": "bfloat16",
        },
        7_518_044_160, 32 * (2 * 4_096 * 2 + 64 * 64 * 64 * 4),
    ),
    "RWKV/rwkv-6-world-1b6": (
        {
            "model_type": "rwkv6", "hidden_size": 2_048, "attention_hidden_size": 2_048,
            "head_size": 64, "intermediate_size": None, "num_hidden_layers": 24,
            "vocab_size": 65_536, "torch_dtype": "bfloat16",
        },
        1_599_873_024, 24 * (2 * 2_048 * 2 + 32 * 64 * 64 * 4),
    ),
    "state-spaces/mamba-130m": (  # inputs in bf16, states in fp32
        {
            "d_model": 768, "n_layer": 24, "vocab_size": 50_277, "ssm_cfg": {}, "rms_norm": True,
            "residual_in_fp32": True, "fused_add_norm": True, "pad_vocab_size_multiple": 8,
            "torch_dtype": "bfloat16",
        },
        129_135_360, 24 * 1_536 * (4 * 2 + 16 * 4),
    ),
    "state-spaces/mamba2-130m": (
        {
            "d_model": 768, "n_layer": 24, "vocab_size": 50_277, "ssm_cfg": {"layer": "Mamba2"},
            "d_intermediate": 0, "attn_layer_idx": [], "attn_cfg": {}, "rms_norm": True,
            "residual_in_fp32": True, "fused_add_norm": True, "pad_vocab_size_multiple": 16,
            "tie_embeddings": True, "torch_dtype": "bfloat16",
        },
        128_989_632, 24 * (1_792 * 4 * 2 + 1_536 * 128 * 4),
    ),
}  # fmt: skip
BOUNDED: dict[str, tuple[Mapping[str, object], int, Subject, Direction]] = {
    "IQuestLab/IQuest-Coder-V1-40B-Loop-Instruct": (
        config(
            "iquestloopcoder", (80, 40, 8, 5_120, 76_800, 27_648), head_dim=128, loop_num=2,
            loop_window_size=64,
        ),
        39_794_696_320, Subject.SEQUENCE_STATE, Direction.UPPER,
    ),
    "openbmb/MiniCPM-SALA": (  # 8 of the 32 layers attend
        config(
            "minicpm_sala", (32, 32, 2, 4_096, 73_448, 16_384), head_dim=128,
            mixer_types=(["minicpm4"] + ["lightning-attn"] * 3) * 8, lightning_nh=32,
            lightning_nkv=32, lightning_head_dim=128, qk_norm=True, use_output_gate=True,
            use_output_norm=True, attn_use_output_gate=True, attention_bias=False,
        ),
        9_477_203_968, Subject.SEQUENCE_STATE, Direction.LOWER,
    ),
    "RWKV/RWKV7-G1j-2.9B-20260831": (
        {
            "model_type": "rwkv7", "hidden_size": 2_560, "head_dim": 64, "norm_first": True,
            "intermediate_size": 10_240, "num_hidden_layers": 32, "vocab_size": 65_536,
            "decay_low_rank_dim": 96, "gate_low_rank_dim": 320, "a_low_rank_dim": 96,
            "v_low_rank_dim": 64,
        },
        2_948_065_280, Subject.WEIGHTS, Direction.UPPER,
    ),
    "microsoft/Phi-4-mini-instruct inside phi4mm": (
        config("phi4mm", (32, 24, 8, 3_072, 200_064, 8_192), **TIED, embd_layer={"a": 1}),
        3_836_021_760, Subject.WEIGHTS, Direction.LOWER,
    ),
}  # fmt: skip
NOMIC = {"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_inner": 3_072}
MODERN = {"model_type": "modernbert", "architectures": ["ModernBertModel"]}
MINI = {
    **MODERN, "num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 384,
    "intermediate_size": 1_536,
}  # fmt: skip
ENCODERS: dict[str, tuple[Mapping[str, object], int]] = {
    "nomic-ai/nomic-embed-text-v1.5": (
        {
            **NOMIC, "architectures": ["NomicBertModel"], "vocab_size": 30_528,
            "activation_function": "swiglu", "n_positions": 8_192, "type_vocab_size": 2,
            "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
        },
        136_731_648,
    ),
    "nomic-ai/nomic-embed-text-v2-moe": (  # experts in every second layer
        {
            **NOMIC, "architectures": ["NomicBertModel"], "vocab_size": 250_048,
            "activation_function": "gelu", "n_positions": 2_048, "type_vocab_size": 1,
            "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True, "num_experts": 8,
            "moe_top_k": 2, "moe_every_n_layers": 2,
        },
        475_292_928,
    ),
    "ibm-granite/granite-embedding-small-english-r2": (
        {**MINI, "vocab_size": 50_368}, 47_662_464,
    ),
    "ibm-granite/granite-embedding-97m-multilingual-r2": (
        {**MINI, "vocab_size": 180_000}, 97_441_152,
    ),
    "ibm-granite/granite-embedding-311m-multilingual-r2": (
        {**MODERN, "vocab_size": 262_152}, 311_664_384,
    ),
    "jinaai/jina-embeddings-v3-hf": (
        {"model_type": "jina_embeddings_v3", "architectures": ["JinaEmbeddingsV3Model"]},
        559_364_096,
    ),
    "Salesforce/SFR-Embedding-Code-400M_R": (
        config(
            "new", (24, 16, 16, 1_024, 30_528, 4_096), architectures=["NewModel"],
            type_vocab_size=2,
        ),
        434_139_136,
    ),
    "sentence-transformers/distilbert-base-nli-mean-tokens": (
        {"model_type": "distilbert", "architectures": ["DistilBertModel"]}, 66_362_880,
    ),
    "opensearch-project/opensearch-neural-sparse-encoding-doc-v2-distill": (
        {"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"]}, 66_985_530,
    ),
    "chandar-lab/NeoBERT": (
        config(
            "neobert", (28, 12, 12, 768, 30_522, 3_072), architectures=["NeoBERTLMHead"],
            max_length=4_096,
        ),
        245_136_954,
    ),
    "farbodtavakkoli/OTel-Embedding-109M": (
        {
            "model_type": "mpnet", "architectures": ["MPNetModel"],
            "max_position_embeddings": 514,
        },
        109_486_464,
    ),
    "nvidia/llama-nemotron-embed-1b-v2": (
        config(
            "llama_bidirec", (16, 32, 8, 2_048, 128_256, 8_192), head_dim=64,
            architectures=["LlamaBidirectionalModel"],
        ),
        1_235_814_400,
    ),
    "perplexity-ai/pplx-embed-v1-4b": (
        config(
            "bidirectional_pplx_qwen3", (36, 32, 8, 2_560, 151_936, 9_728), head_dim=128,
            architectures=["PPLXQwen3Model"],
        ),
        4_022_468_096,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DECODERS)
def test_that_a_type_of_its_own_has_its_published_total(name: str) -> None:
    stated, total, per_token = DECODERS[name]
    spec = specify(stated)
    assert spec.parameters == total
    kept = [layer.attention for layer in spec.layers if layer.attention]
    widths = (a.caches * a.num_key_value_heads * (a.head_dim + a.v_head_dim) for a in kept)
    assert sum(widths) == per_token
    assert not spec.doubts


@pytest.mark.parametrize("name", DIFFUSION)
def test_that_what_a_diffusing_model_keeps_is_a_bound(name: str) -> None:
    stated, total = DIFFUSION[name]
    spec = specify(stated)
    assert spec.parameters == total
    assert [doubt.subject for doubt in spec.doubts] == [Subject.SEQUENCE_STATE]
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.UPPER


@pytest.mark.parametrize("name", ENCODERS)
def test_that_an_encoder_keeps_nothing(name: str) -> None:
    stated, total = ENCODERS[name]
    spec = specify(stated)
    assert spec.parameters == total
    assert not any(layer.attention and layer.attention.keeps_cache for layer in spec.layers)
    assert not spec.doubts


@pytest.mark.parametrize("name", BOUNDED)
def test_that_what_is_left_open_is_said(name: str) -> None:
    stated, total, subject, direction = BOUNDED[name]
    spec = specify(stated)
    assert spec.parameters == total
    assert [doubt.subject for doubt in spec.doubts] == [subject]
    assert spec.direction(subject) is direction


@pytest.mark.parametrize("name", RECURRENT)
def test_that_a_recurrent_type_has_its_total_and_its_state(name: str) -> None:
    stated, total, state_bytes = RECURRENT[name]
    spec = specify(stated)
    assert spec.parameters == total
    assert sum(layer_bytes(layer, 1_000, "bfloat16") for layer in spec.layers) == state_bytes
    assert not spec.doubts
