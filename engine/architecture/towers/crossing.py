"""Encoders of models whose text layers look at them, or whose config is the text model's own.

Source:
    transformers 5.24.0, ``git``, ``blip``, ``idefics`` and ``evolla``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.heads import is_tied
from engine.architecture.spec import ModuleClass
from engine.architecture.towers.encoders import encoder
from engine.architecture.towers.parts import PLAIN, Tower, vision_of

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def git(root: Facts, _text: Facts) -> list[Tensor]:
    """GIT: CLIP, one linear layer and a norm, and a vector for each frame of a video."""
    vision = vision_of(root)
    tower = encoder(vision)
    seen, hidden = vision.integer("hidden_size"), root.integer("hidden_size")
    tower.path = "git."
    tower.linear("visual_projection.0", hidden, seen)
    tower.norm("visual_projection.1", hidden)
    frames = root.count("num_image_with_embedding")
    if frames:
        tower.weight("img_temporal_embedding.*", 1, 1, seen, copies=frames)
    return tower.tensors


def blip(root: Facts, text: Facts) -> list[Tensor]:
    """BLIP: its encoder and, where the head is not tied, a second bias of words."""
    tower = encoder(vision_of(root))
    if not is_tied(text, root, otherwise=False):
        words = Tower("cls.predictions.", ModuleClass.LM_HEAD)
        words.weight("bias", text.integer("vocab_size"))
        tower.add(words)
    return tower.tensors


def idefics(root: Facts, _text: Facts) -> list[Tensor]:
    """IDEFICS: CLIP and, where the config asks for it, a Perceiver as wide."""
    vision = vision_of(root)
    tower = encoder(vision)
    if not root.flag("use_resampler"):
        return tower.tensors
    facts = root.sub("perceiver_config") or root.empty("perceiver_config")
    hidden, layers = vision.integer("hidden_size"), facts.integer("resampler_depth")
    head = facts.integer("resampler_head_dim")
    rows = facts.integer("resampler_n_heads") * head
    tower.path = "perceiver_resampler."
    tower.weight("latents", facts.integer("resampler_n_latents"), hidden)
    for name in ("context_layer_norm", "latents_layer_norm", "mlp.ln"):
        tower.norm(f"blocks.*.{name}", hidden, copies=layers)
    if facts.flag("qk_layer_norms_perceiver"):
        for name in ("q_layer_norm", "k_layer_norm"):
            tower.norm(f"blocks.*.{name}", head, copies=layers)
    for name in ("q_proj", "k_proj", "v_proj"):
        tower.linear(f"blocks.*.{name}", rows, hidden, bias=False, copies=layers)
    tower.linear("blocks.*.output_proj", hidden, rows, bias=False, copies=layers)
    tower.linear("blocks.*.mlp.fc", 4 * hidden, hidden, bias=False, copies=layers)
    tower.linear("blocks.*.mlp.c_proj", hidden, 4 * hidden, bias=False, copies=layers)
    tower.norm("layer_norm", hidden)
    return tower.tensors


def evolla(root: Facts, _text: Facts) -> list[Tensor]:
    """Evolla: SaProt reads a protein, and learned queries make it a few tokens."""
    key = "protein_encoder_config"
    facts = root.sub(key) or root.empty(key)
    tower = Tower("protein_encoder.model.", ModuleClass.OTHER)
    hidden, layers = facts.integer("hidden_size"), facts.integer("num_hidden_layers")
    tower.weight("embeddings.word_embeddings.weight", facts.integer("vocab_size"), hidden)
    if facts.word("position_embedding_type") == "absolute":
        places = facts.integer("max_position_embeddings")
        tower.weight("embeddings.position_embeddings.weight", places, hidden)
    if facts.flag("emb_layer_norm_before"):
        tower.norm("embeddings.layer_norm", hidden)
    PLAIN.add(tower, layers, hidden, facts.integer("intermediate_size"), (hidden, hidden))
    tower.norm("encoder.emb_layer_norm_after", hidden)
    _compress(tower, root, hidden)
    return tower.tensors


def _compress(tower: Tower, root: Facts, hidden: int) -> None:
    out, layers = root.integer("hidden_size"), root.integer("resampler_depth")
    rows = root.integer("resampler_heads") * root.integer("resampler_dim_head")
    width = hidden * root.integer("resampler_ff_mult")
    tower.path = "protein_encoder.sequence_compressor_resampler."
    tower.weight("latents", root.integer("resampler_num_latents"), hidden)
    for name in ("0.norm_media", "0.norm_latents", "1.norm"):
        tower.norm(f"layers.*.{name}", hidden, copies=layers)
    tower.linear("layers.*.0.to_q", rows, hidden, bias=False, copies=layers)
    tower.linear("layers.*.0.to_kv", 2 * rows, hidden, bias=False, copies=layers)
    tower.linear("layers.*.0.to_out", hidden, rows, bias=False, copies=layers)
    tower.linear("layers.*.1.fc1", width, hidden, bias=False, copies=layers)
    tower.linear("layers.*.1.fc2", hidden, width, bias=False, copies=layers)
    tower.norm("norm", out)
    tower.linear("protein_projector", out, hidden)


TOWERS = {"blip": blip, "evolla": evolla, "git": git, "idefics": idefics}
