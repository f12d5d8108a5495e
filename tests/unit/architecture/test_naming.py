"""What a tensor's name says of its part of the model, for names that checkpoints really have."""

from __future__ import annotations

import pytest

from engine.architecture.naming import named, pattern_of
from engine.architecture.spec import ModuleClass, Sharding

# BERT, BART, BLOOM and T5, then projectors of PaddleOCR-VL, MiniCPM-V, ERNIE 4.5 VL and Ovis2, as
# published; what each tensor is follows from the papers.
NAMES = [
    ("embeddings.LayerNorm.weight", ModuleClass.NORM),
    ("embeddings.word_embeddings.weight", ModuleClass.EMBEDDING),
    ("model.encoder.layernorm_embedding.weight", ModuleClass.NORM),
    ("word_embeddings_layernorm.bias", ModuleClass.NORM),
    ("shared.weight", ModuleClass.EMBEDDING),
    ("encoder.block.0.layer.0.SelfAttention.q.weight", ModuleClass.ATTENTION),
    ("decoder.block.11.layer.1.EncDecAttention.o.weight", ModuleClass.ATTENTION),
    ("decoder.block.11.layer.2.DenseReluDense.wi_0.weight", ModuleClass.MLP),
    ("decoder.block.0.layer.2.layer_norm.weight", ModuleClass.NORM),
    ("model.projector.linear_1.weight", ModuleClass.VISION),
    ("model.merger.mlp.0.pre_norm.weight", ModuleClass.VISION),
    ("model.resampler_model.spatial_linear.fc1.weight", ModuleClass.VISION),
    ("model.visual_embeddings_table.weight", ModuleClass.VISION),
]


@pytest.mark.parametrize(("name", "module"), NAMES)
def test_that_a_name_says_its_part(name: str, module: ModuleClass) -> None:
    assert named(pattern_of(name)).module is module


def test_that_a_norm_over_embeddings_is_on_every_device() -> None:
    assert named("word_embeddings_layernorm.weight").sharding is Sharding.REPLICATED
