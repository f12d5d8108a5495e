"""Muse: a ViT with a learned grid behind an adapter; Spark hears too.

Source:
    transformers 5.24.0, ``muse_glimmer/modeling_muse_glimmer.py``,
    ``muse_spark/modeling_muse_spark.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.architecture.towers.parts import PLAIN, Tower, encode, number, patches, vision_of
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def muse_glimmer(root: Facts, text: Facts) -> list[Tensor]:
    """Muse Glimmer: a ViT with a learned grid, and an adapter over unshuffled patches."""
    vision = vision_of(root)
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    frames = vision.integer("patch_temporal", 2)
    tower.linear(
        "patch_embedder.patch_embedding", hidden, patches(vision, frames=frames), bias=False
    )
    places = vision.integer("pos_emb_height") * vision.integer("pos_emb_width")
    tower.weight("patch_embedder.position_embedding_table.weight", places, hidden)
    tower.norm("ln_pre", hidden)
    encode(tower, vision, PLAIN)
    tower.norm("ln_post", hidden)
    tower.path = ""
    inner = root.integer("projector_hidden_size")
    tower.linear("vision_adapter.fc1", inner, root.integer("out_hidden_size"), bias=False)
    tower.linear("vision_adapter.fc2", inner, inner, bias=False)
    tower.linear("vision_projection", text.integer("hidden_size"), inner, bias=False)
    return tower.tensors


def muse_spark(root: Facts, text: Facts) -> list[Tensor]:
    """Muse Spark: what Glimmer sees with, and a pyramid of convolutions over the waveform."""
    audio = root.sub("audio_config") or root.empty("audio_config")
    widths, count = audio.integers("hidden_sizes", 1) or (), audio.integer("num_hidden_layers")
    steps, depths = audio.integers("patch_sizes", 1) or (), audio.integers("depths") or ()
    if not len(widths) == len(steps) == len(depths) == count:
        wanted = tr("one entry for each of {count} layers is needed, as of the other lists").format(
            count=count
        )
        raise audio.bad("hidden_sizes", widths, wanted)
    tower = Tower("audio_tower.", ModuleClass.AUDIO)
    kernel = audio.integer("conv_kernel_size")
    before = 1
    for index, (width, step, depth) in enumerate(zip(widths, steps, depths, strict=True)):
        path = f"layers.{index}."
        tower.linear(f"{path}patch_embedder.proj", width, before * step)
        tower.norm(f"{path}patch_embedder.norm", width, bias=False)
        before = width
        if not depth:
            continue
        path, inner = f"{path}conv_blocks.*.", int(width * number(audio, "mlp_ratio", 4))
        tower.weight(f"{path}conv.weight", width, 1, kernel, copies=depth)
        tower.weight(f"{path}conv.bias", width, copies=depth)
        tower.norm(f"{path}norm", width, bias=False, copies=depth)
        tower.linear(f"{path}mlp.fc1", inner, width, copies=depth)
        tower.linear(f"{path}mlp.fc2", width, inner, copies=depth)
    out = audio.integer("out_hidden_size")
    tower.norm("norm", before, bias=False)
    tower.linear("proj", out, before)
    tower.norm("post_proj_norm", out, bias=False)
    return muse_glimmer(root, text) + tower.tensors


TOWERS = {"muse_glimmer": muse_glimmer, "muse_spark": muse_spark}
