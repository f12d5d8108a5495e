"""Roots whose adapter is a block of its own: Molmo 2, Nemotron Omni.

Source:
    transformers 5.24.0, ``molmo2/modeling_molmo2.py``,
    ``nemotron_h_omni/modeling_nemotron_h_omni.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.audio import listen
from engine.architecture.towers.encoders import tower_of
from engine.architecture.towers.parts import Encoder, Tower, number, vision_of
from engine.config.defaults import class_defaults
from engine.config.facts import Facts

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor

_READ = (24, 18)
"""Layers of the encoder that Molmo 2 reads where its config names none."""


def molmo2(root: Facts, _text: Facts) -> list[Tensor]:
    """Molmo 2: patches of several layers pooled by attention, and a gated MLP.

    Published files call the encoder ``vit_config``; of such a one only the layers up to the
    deepest that is read are built.
    """
    adapter = root.sub("adapter_config") or root.empty("adapter_config")
    read = _layers_read(adapter)
    published = root.sub("vit_config") if root.raw("vision_config") is None else None
    if published is None:
        vision = vision_of(root)
        layers = vision.integer("num_hidden_layers")
    else:
        vision = published
        vision.defaults = class_defaults("molmo2_vision") or vision.defaults
        stated = vision.integer("num_hidden_layers")
        layers = max(layer % stated for layer in read) + 1
    tower = Tower("vision_tower.")
    hidden, width = vision.integer("hidden_size"), vision.integer("intermediate_size")
    side = vision.integer("image_patch_size", vision.integer("patch_size"))
    tower.linear("patch_embedding", hidden, vision.integer("num_channels", 3) * side * side)
    tower.weight("positional_embedding", _places(vision, side), hidden)
    bias = vision.flag("attention_bias", default=True)
    Encoder(qkv_bias=bias, o_bias=bias).add(tower, layers, hidden, width, _heads(vision, hidden))
    _pool(tower, adapter, len(read))
    return tower.tensors


def _layers_read(adapter: Facts) -> tuple[int, ...]:
    for key in ("vit_layers", "vision_feature_layer"):
        entries = adapter.items(key)
        if entries:
            return tuple(adapter.checked(key, entry, -4_096) for entry in entries)
    return _READ


def _places(vision: Facts, side: int) -> int:
    key = "image_default_input_size"
    size = vision.integers(key, 1) or vision.integers("image_size", 1) or (378, 378)
    fitting = (size[0] // side) * (size[-1] // side)
    return vision.integer("image_num_pos", vision.integer("num_position_embeddings", fitting))


def _heads(facts: Facts, hidden: int) -> tuple[int, int]:
    """Total width of queries, and of keys."""
    heads = facts.integer("num_attention_heads")
    head = facts.integer("head_dim", hidden // heads)
    return heads * head, facts.integer("num_key_value_heads", heads) * head


def _pool(tower: Tower, adapter: Facts, read: int) -> None:
    hidden, width = adapter.integer("hidden_size"), adapter.integer("intermediate_size")
    q, kv = _heads(adapter, hidden)
    bias = adapter.flag("attention_bias", default=True)
    tower.path = "adapter.image_pooling_2d."
    for name, rows in (("q_proj", q), ("k_proj", kv), ("v_proj", kv)):
        tower.linear(name, rows, hidden * read, bias=bias)
    tower.linear("o_proj", hidden, q, bias=bias)
    tower.path = "adapter.image_projector."
    for name in ("gate_proj", "up_proj"):
        tower.linear(name, width, hidden, bias=adapter.flag("mlp_bias"))
    tower.linear("down_proj", adapter.integer("text_hidden_size"), width, bias=False)


def nemotron_omni(root: Facts, text: Facts) -> list[Tensor]:
    """Nemotron Omni: RADIO, Parakeet where it hears, and for each two linear layers."""
    vision = vision_of(root)
    tower, out = tower_of(root), text.integer("hidden_size")
    seen = root.integer("vit_hidden_size", root.integer("vision_hidden_size"))
    tower.path = ""
    if text.count("num_nextn_predict_layers"):
        tower.norm("vision_final_layernorm", seen)
    width = seen * int(1 / number(root, "downsample_ratio", 0.5)) ** 2
    _projector(tower, "multi_modal_projector.", (width, root.integer("projector_hidden_size"), out))
    vision.settle("image_size")
    return tower.tensors + _heard(root, out)


def _heard(root: Facts, out: int) -> list[Tensor]:
    stated = root.sub("audio_config") or root.sub("sound_config")
    if stated is None:
        return []
    kind = "parakeet_encoder"
    # Published files leave out what their encoder has otherwise than its class.
    given = {"attention_bias": False, **stated.stated}
    audio = Facts(given, kind, class_defaults(kind), stated.path)
    audio.asked = stated.asked
    tower = listen(audio)
    widths = (audio.integer("hidden_size"), audio.integer("projection_hidden_size"), out)
    _projector(tower, "embed_audio.", widths, bias=audio.flag("projection_bias"))
    return tower.tensors


def _projector(
    tower: Tower, path: str, widths: tuple[int, int, int], *, bias: bool = False
) -> None:
    width, inner, out = widths
    tower.path = path
    tower.norm("layer_norm", width, bias=False)
    tower.linear("linear_1", inner, width, bias=bias)
    tower.linear("linear_2", out, inner, bias=bias)


TOWERS = {"molmo2": molmo2, "nemotron_h_omni": nemotron_omni}
