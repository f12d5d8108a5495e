"""Dots 3 Note: eyes whose deeper layers are mixtures of ever more experts, and ears.

Source:
    transformers 5.24.0, ``dots3_note/modeling_dots3_note.py`` and its configuration.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.architecture.towers.audio import audio_of
from engine.architecture.towers.parts import Encoder, Tower, patches, vision_of
from engine.config.facts import is_mapping
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_ROUTED = (*(0,) * 25, *range(4, 65, 4), 64)
"""Experts of each layer where the config doesn't say; 0 in a dense one."""


def _vision(vision: Facts) -> list[Tensor]:
    tower = Tower("vision_tower.")
    hidden = vision.optional("embed_dim", 1) or vision.integer("hidden_size")
    heads = vision.optional("num_heads", 1) or vision.integer("num_attention_heads")
    key = "attention_bias" if vision.raw("use_bias") is None else "use_bias"
    bias = vision.flag(key)
    tower.linear("patch_embed.proj", hidden, patches(vision))
    tower.norm("patch_embed.norm", hidden, bias=False)
    layers, mlp_bias = vision.integer("num_hidden_layers"), vision.flag("mlp_bias")
    for name, columns in (("qkv", 3 * hidden), ("proj", hidden)):
        tower.linear(f"blocks.*.attn.{name}", columns, hidden, bias=bias, copies=layers)
    for name in ("q_norm", "k_norm"):
        tower.norm(f"blocks.*.attn.{name}", hidden // heads, bias=False, copies=layers)
    for name in ("norm1", "norm2"):
        tower.norm(f"blocks.*.{name}", hidden, bias=False, copies=layers)
    for (experts, width), copies in Counter(_feeds(vision, layers)).items():
        for name, rows, columns in (
            ("gate_proj", width, hidden),
            ("up_proj", width, hidden),
            ("down_proj", hidden, width),
        ):
            path = (
                f"blocks.*.mlp.experts_of_{experts}.{name}" if experts else f"blocks.*.mlp.{name}"
            )
            times = copies * max(experts, 1)
            tower.linear(path, rows, columns, bias=mlp_bias and not experts, copies=times)
        if experts:
            tower.weight(f"blocks.*.mlp.gate_of_{experts}.weight", experts, hidden, copies=copies)
    tower.norm("norm", hidden, bias=False)
    width = vision.integer("adapter_in_dim")
    merged = width * vision.integer("adapter_merge_size") ** 2
    tower.norm("merger.ln_q", width)
    tower.linear("merger.mlp.0", merged, merged)
    tower.linear("merger.mlp.2", vision.integer("adapter_out_dim"), merged)
    return tower.tensors


def _feeds(vision: Facts, layers: int) -> list[tuple[int, int]]:
    """Experts of each layer (0 in a dense one) and their width.

    Raises:
        ConfigError: a list of another length than the layers.
    """
    counts = vision.integers("pyramid_num_routed", -1)
    kinds = vision.words("mlp_layer_types") if counts is None else None
    if kinds is not None:
        usual = vision.integer("num_local_experts")
        counts = tuple(usual if kind == "sparse" else 0 for kind in kinds)
    counts = _ROUTED if counts is None else counts
    if len(counts) != layers:
        wanted = tr("a number for each of the {layers} layers is needed").format(layers=layers)
        raise vision.bad("pyramid_num_routed", counts, wanted)
    own = vision.raw("per_layer_config")
    return [_feed(vision, own, index, count) for index, count in enumerate(counts)]


def _feed(vision: Facts, own: object, index: int, count: int) -> tuple[int, int]:
    stated = own.get(str(index)) if is_mapping(own) else None
    given = stated if is_mapping(stated) else {}
    key = "moe_intermediate_size" if count > 0 else "intermediate_size"
    width = vision.checked(key, given.get(key, vision.integer(key)), 1)
    if count <= 0:
        return 0, width
    # Layers that are described one by one have what all have where their own entry is silent.
    usual = vision.integer("num_local_experts") if is_mapping(own) else count
    return vision.checked("num_local_experts", given.get("num_local_experts", usual), 1), width


_WHISPER = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "intermediate_size": "encoder_ffn_dim",
    "feature_size": "num_mel_bins",
}


def _audio(audio: Facts) -> list[Tensor]:
    tower = Tower("audio_tower.", ModuleClass.AUDIO)
    whisper = audio.sub("whisper_config")

    def size(key: str) -> int:
        stated = whisper.optional(_WHISPER[key], 1) if whisper else None
        return stated or audio.integer(key)

    hidden, layers, width = (
        size("hidden_size"),
        size("num_hidden_layers"),
        size("intermediate_size"),
    )
    channels, bias = audio.integer("downsample_hidden_size"), audio.flag("attention_bias")
    for index, columns in enumerate((1, channels, channels)):
        tower.linear(f"conv_stem.convs.{index}", channels, 9 * columns)
    pitches = (size("feature_size") + 7) // 8
    tower.linear("conv_stem.conv_out", hidden, channels * pitches, bias=False)
    style = Encoder(gated=True, qkv_bias=bias, k_bias=False, o_bias=bias, norm_bias=False)
    style.add(tower, layers, hidden, width, (hidden, hidden))
    tower.norm("layer_norm", hidden, bias=False)
    seen = audio.optional("whisper_adapter_in_dim", 1) or audio.integer("adapter_input_size")
    out = (
        audio.optional("whisper_adapter_out_dim", 1)
        or audio.optional("adapter_output_size", 1)
        or audio.integer("adapter_out_dim")
    )
    tower.norm("adapter.norm", seen)
    tower.linear("adapter.fc1", out, seen)
    tower.linear("adapter.fc2", out, out)
    return tower.tensors


def dots3_note(root: Facts, _text: Facts) -> list[Tensor]:
    """Dots 3 Note: both towers, each with the layers that project to the text's width."""
    return [*_vision(vision_of(root)), *_audio(audio_of(root))]


TOWERS = {"dots3_note": dots3_note}
