"""Projectors of learned queries over an image: Q-Former, Perceiver, Aria's cross-attention.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.architecture.spec import Sharding
from engine.architecture.towers.encoders import encoder, tower_of
from engine.architecture.towers.parts import PLAIN, Encoder, Tower, vision_of, width_of
from engine.config.facts import MissingFieldError, is_mapping
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_BARE = Encoder(gated=True, qkv_bias=False, o_bias=False, mlp_bias=False, norm_bias=False)


def former(tower: Tower, facts: Facts, seen: int, *, reads_text: bool, hidden: int = 0) -> None:
    """Add the layers of a Q-Former.

    Args:
        tower: what they are added to.
        facts: the Q-Former's config.
        seen: width of the encoder that its cross-attention looks at.
        reads_text: whether each layer has a second MLP, for words.
        hidden: its width where the root decides it.
    """
    hidden = hidden or facts.integer("hidden_size")
    layers, width = facts.integer("num_hidden_layers"), facts.integer("intermediate_size")
    PLAIN.add(tower, layers, hidden, width, (hidden, hidden))
    if reads_text:
        tower.linear("layers.*.intermediate", width, hidden, copies=layers)
        tower.linear("layers.*.output", hidden, width, copies=layers, sharding=Sharding.ROW)
        tower.norm("layers.*.output.norm", hidden, copies=layers)
    crossing = -(-layers // facts.integer("cross_attention_frequency", 2))
    for name, columns in (("query", hidden), ("key", seen), ("value", seen), ("out", hidden)):
        tower.linear(f"layers.*.crossattention.{name}", hidden, columns, copies=crossing)
    tower.norm("layers.*.crossattention.norm", hidden, copies=crossing)
    tower.norm("layernorm", hidden)


def _former_of(root: Facts) -> Facts:
    return root.sub("qformer_config") or root.empty("qformer_config")


def blip_2(root: Facts, text: Facts) -> list[Tensor]:
    """BLIP-2: a Q-Former that sees the image alone."""
    facts = _former_of(root)
    return _asked(root, text, facts, reads_text=facts.flag("use_qformer_text_input"))


def instructblip(root: Facts, text: Facts) -> list[Tensor]:
    """InstructBLIP: a Q-Former that reads the question too."""
    facts = _former_of(root)
    hidden = facts.integer("hidden_size")
    words = Tower("qformer.embeddings.")
    words.weight("word_embeddings.weight", facts.integer("vocab_size"), hidden)
    words.weight("position_embeddings.weight", facts.integer("max_position_embeddings"), hidden)
    return [*_asked(root, text, facts, reads_text=True), *words.tensors]


def _asked(root: Facts, text: Facts, facts: Facts, *, reads_text: bool) -> list[Tensor]:
    vision = vision_of(root)
    tower = encoder(vision)
    tower.path = "qformer."
    former(tower, facts, vision.integer("hidden_size"), reads_text=reads_text)
    tower.path, hidden = "", facts.integer("hidden_size")
    tower.weight("query_tokens", 1, root.integer("num_query_tokens", 32), hidden)
    tower.linear("language_projection", text.integer("hidden_size"), hidden)
    return tower.tensors


def granite4_vision(root: Facts, text: Facts) -> list[Tensor]:
    """Granite 4 Vision: a Q-Former over windows for each layer that is read, and for each corner.

    Raises:
        ConfigError: ``downsample_rate`` is no fraction, or missing.
    """
    vision = vision_of(root)
    tower = encoder(vision)
    seen, hidden = width_of(vision), text.integer("hidden_size")
    sides = re.fullmatch(r"(\d{1,4})/(\d{1,4})", root.word("downsample_rate"))
    levels = root.items("deepstack_layer_map")
    if sides is None or levels is None:
        key = "downsample_rate" if sides is None else "deepstack_layer_map"
        field = root.name(key)
        raise MissingFieldError(
            tr("{field} is missing, or no fraction.").format(field=field), field=field
        )
    projector = Tower("projectors.*.")
    facts = _former_of(root)
    former(projector, facts, seen, reads_text=facts.flag("use_qformer_text_input"), hidden=seen)
    projector.norm("norm", seen)
    projector.weight("query", 1, int(sides[1]) ** 2, seen)
    projector.weight("image_positions", 1, int(sides[2]) ** 2, seen)
    projector.linear("out_linear", hidden, seen)
    tower.add(projector, times=len(levels) + _CORNERS)
    tower.path = ""
    tower.weight("image_newline", hidden)
    return tower.tensors


_CORNERS = 4


def aria(root: Facts, text: Facts) -> list[Tensor]:
    """Aria: as many queries as the largest image has, one cross-attention, one MLP."""
    tower = tower_of(root)
    seen, hidden = width_of(vision_of(root)), text.integer("hidden_size")
    tower.path = "multi_modal_projector."
    tower.weight("query", _most_queries(root), seen)
    for name in ("q_proj", "k_proj", "v_proj"):
        tower.linear(f"cross_attn.{name}", seen, seen, bias=False)
    tower.linear("cross_attn.multihead_attn.in_proj", 3 * seen, seen)
    tower.linear("cross_attn.multihead_attn.out_proj", seen, seen)
    tower.linear("cross_attn.linear", seen, seen)
    for name in ("cross_attn.layer_norm", "cross_attn.layer_norm_kv", "layer_norm"):
        tower.norm(name, seen)
    tower.linear("feed_forward.linear_in", hidden, seen, bias=False)
    tower.linear("feed_forward.linear_out", hidden, hidden, bias=False)
    return tower.tensors


def _most_queries(root: Facts) -> int:
    stated = root.optional("max_value_projector_patch_to_query_dict", 1)
    if stated is not None:
        return stated
    key = "projector_patch_to_query_dict"
    sizes = root.raw(key)
    if not is_mapping(sizes) or not sizes:
        return 256
    return max(root.checked(key, value, 1) for value in sizes.values())


def idefics2(root: Facts, text: Facts) -> list[Tensor]:
    """Idefics 2: a gated MLP to the text's width, and a Perceiver of that width."""
    vision, hidden = vision_of(root), text.integer("hidden_size")
    tower = encoder(vision)
    width = text.integer("intermediate_size")
    tower.path = "connector.modality_projection."
    for name in ("gate_proj", "up_proj"):
        tower.linear(name, width, vision.integer("hidden_size"), bias=False)
    tower.linear("down_proj", hidden, width, bias=False)
    facts = root.sub("perceiver_config") or root.empty("perceiver_config")
    head, heads = facts.integer("resampler_head_dim"), facts.integer("resampler_n_heads")
    kv = facts.integer("num_key_value_heads") * head
    tower.path = "connector.perceiver_resampler."
    tower.weight("latents", facts.integer("resampler_n_latents"), hidden)
    layers = facts.integer("resampler_depth")
    _BARE.add(tower, layers, hidden, 4 * hidden, (heads * head, kv))
    tower.norm("layers.*.input_context_norm", hidden, bias=False, copies=layers)
    tower.norm("norm", hidden, bias=False)
    return tower.tensors


TOWERS = {
    "aria": aria, "blip-2": blip_2, "granite4_vision": granite4_vision, "idefics2": idefics2,
    "instructblip": instructblip, "instructblipvideo": instructblip,
}  # fmt: skip
