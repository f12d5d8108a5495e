"""Published models of unusual shapes, whose types have code of their own, and their totals.

Dimensions are facts of the models' configs, totals what the Hub states of their safetensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping

OPENVLA: dict[str, object] = {
    "model_type": "openvla", "architectures": ["OpenVLAForActionPrediction"],
    "arch_specifier": "no-align+fused-gelu-mlp", "hf_llm_id": "meta-llama/Llama-2-7b-hf",
    "image_sizes": [224, 224], "llm_backbone_id": "llama2-7b-pure", "n_action_bins": 256,
    "norm_stats": {"bridge_orig": {}}, "pad_to_multiple_of": 64,
    "text_config": {"model_type": "llama", "vocab_size": 32_064},
    "timm_override_act_layers": [None, None], "use_fused_vision_backbone": True,
    "vision_backbone_id": "dinosiglip-vit-so-224px",
}  # fmt: skip
HUGINN: dict[str, object] = {
    "model_type": "huginn_raven", "architectures": ["RavenForCausalLM"], "n_embd": 5_280,
    "n_heads": 55, "n_layers": 8, "n_layers_in_prelude": 2, "n_layers_in_recurrent_block": 4,
    "n_layers_in_coda": 2, "head_dim": 96, "num_key_value_heads": 55, "intermediate_size": 17_920,
    "vocab_size": 65_536, "padded_vocab_size": 65_536, "mean_recurrence": 32, "qk_bias": True,
    "bias": False, "tie_embeddings": True, "injection_type": "linear",
    "block_class_name": "SandwichBlock", "mlp_class_name": "GatedMLP",
}  # fmt: skip
DPR = {"model_type": "dpr", "architectures": ["DPRQuestionEncoder"], "projection_dim": 0}
EXACT: dict[str, tuple[Mapping[str, object], int]] = {
    "openvla/openvla-7b-finetuned-libero-spatial": (OPENVLA, 7_541_237_184),
    # BERT (109,482,240) without its pooler.
    "facebook/dpr-question_encoder-single-nq-base": (DPR, 109_482_240 - 768 * 769),
}


@pytest.mark.parametrize("name", EXACT)
def test_that_it_has_its_published_total(name: str) -> None:
    stated, total = EXACT[name]
    spec = specify(stated)
    assert spec.parameters == total
    assert not spec.doubts


def test_that_passes_over_the_same_layers_keep_a_cache_each() -> None:
    """The file of huginn-0125 also holds the tied head and a table of rotations."""
    spec = specify(HUGINN)
    assert spec.parameters == 3_911_400_096 - 65_536 * 5_280 - 4_096 * 96
    caches = sum(layer.attention.caches for layer in spec.layers if layer.attention)
    assert caches == 2 + 4 * 32 + 2
    assert spec.direction(Subject.WEIGHTS) is None
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


def test_that_another_backbone_than_the_known_one_is_not_guessed() -> None:
    spec = specify({**OPENVLA, "vision_backbone_id": "siglip-vit-so400m"})
    # Llama 2 7B with 64 words more.
    assert spec.parameters == 6_738_415_616 + 2 * 64 * 4_096
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER
