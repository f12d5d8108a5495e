"""Models that turn images and sound into tokens of their own before they read them.

Apertus 1.5 quantises both; Inkling looks up the pitches of a sound and folds an image step by
step into one vector.

Source:
    transformers 5.24.0, ``apertus1p5/modeling_apertus1p5.py``, ``inkling/modeling_inkling.py``,
    ``inkling2/modeling_inkling2.py``.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf, isqrt, log, prod
from struct import pack, unpack
from typing import TYPE_CHECKING

from engine.architecture.towers.audio import audio_of, listen
from engine.architecture.towers.parts import Encoder, Tower, encode, number, patches, vision_of
from engine.config.facts import Facts
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor

_MOST_STEPS = 256
"""Layers that are planned one by one at most."""
_ROUND = 64
"""Widths of Inkling's steps are multiples of it."""


def apertus(root: Facts, _text: Facts) -> list[Tensor]:
    """Apertus 1.5: the encoding halves of two autoencoders; the text model knows their tokens."""
    vision = vision_of(root)
    tower = Tower("vision_tokenizer.")
    base, latent = vision.integer("base_channels"), vision.integer("latent_channels")
    widths = [base * times for times in vision.integers("channel_multiplier", 1) or ()]
    attending, blocks = vision.integers("attn_resolutions") or (), vision.integer("num_res_blocks")
    side, before = vision.integer("resolution"), base
    _conv(tower, "encoder.conv_in", base, vision.integer("in_channels"))
    for level, width in enumerate(widths):
        path = f"encoder.stages.{level}."
        for name, source, count in (("0", before, 1), ("*", width, blocks - 1)):
            if count:
                _residual(tower, f"{path}layers.{name}.resnet", source, width, copies=count)
        if side // 2**level in attending:
            _attention(tower, f"{path}layers.*.attention", width, copies=blocks)
        before = width
        if level < len(widths) - 1:
            _conv(tower, path + "downsample.conv", width, width)
    _residual(tower, "encoder.mid.block_1", before, before)
    _attention(tower, "encoder.mid.attn_1", before)
    _residual(tower, "encoder.mid.block_2", before, before)
    tower.norm("encoder.norm_out", before)
    _conv(tower, "encoder.conv_out", latent, before)
    code = vision.integer("embed_dim")
    tower.weight("quantize.embedding.weight", vision.integer("codebook_size"), code)
    tower.linear("quant_conv", code, latent)
    return tower.tensors + listen(audio_of(root), "audio_tokenizer.").tensors


def _conv(tower: Tower, name: str, out: int, width: int, *, copies: int = 1) -> None:
    tower.linear(name, out, 9 * width, copies=copies)


def _residual(tower: Tower, name: str, before: int, width: int, *, copies: int = 1) -> None:
    tower.norm(f"{name}.norm1", before, copies=copies)
    _conv(tower, f"{name}.conv1", width, before, copies=copies)
    tower.norm(f"{name}.norm2", width, copies=copies)
    _conv(tower, f"{name}.conv2", width, width, copies=copies)
    if before != width:
        tower.linear(f"{name}.nin_shortcut", width, before, copies=copies)


def _attention(tower: Tower, name: str, width: int, *, copies: int = 1) -> None:
    tower.norm(f"{name}.norm", width, copies=copies)
    for part in ("q", "k", "v", "proj_out"):
        tower.linear(f"{name}.{part}", width, width, copies=copies)


def _dmel(audio: Facts, tower: Tower) -> None:
    """Inkling's ear: a table of the levels of every pitch."""
    width = audio.integer("text_hidden_size")
    levels = audio.integer("n_mel_bins") * audio.integer("mel_vocab_size")
    tower.weight("embed_audio_tokens.embed_audio_tokens.weight", levels, width)
    tower.norm("norm", width, bias=False)


def inkling(root: Facts, text: Facts) -> list[Tensor]:
    """Inkling: an image folded in steps, and a table for sound; both as wide as the text."""
    vision, audio = vision_of(root), audio_of(root)
    hidden, layers = text.integer("hidden_size"), vision.integer("num_hidden_layers")
    vision.settle("text_hidden_size", "hidden_size", "num_attention_heads")
    # The root sets the width last, over either name of it.
    wide = {**audio.stated, "text_hidden_size": hidden, "hidden_size": hidden}
    heard = listen(Facts(wide, audio.model_type, audio.defaults, audio.path))
    tower = Tower("vision_tower.")
    steps = _plan(vision, layers)
    for index, (start, end) in enumerate(pairwise(steps)):
        frames, side, channels = start
        fold = (end[0] // frames) * (end[1] // side) ** 2
        last = index == layers - 1
        out = hidden if last else end[2]
        tower.linear(f"encoder_layers.{index}.projection", out, channels * fold, bias=False)
        if not last:
            tower.norm(f"encoder_layers.{index}.layer_norm", out, bias=False)
    tower.norm("final_norm", hidden, bias=False)
    return tower.tensors + heard.tensors


_Step = tuple[int, int, int]
"""Frames and side of what one vector stands for, and the vector's width."""


def _plan(vision: Facts, layers: int) -> list[_Step]:
    """What is folded into one vector before each of the encoder's layers, and behind the last.

    Each takes the step whose volume is nearest to its share of the whole, on a scale of logs.
    """
    side, frames = vision.integer("patch_size", low=2), vision.integer("temporal_patch_size")
    channels = vision.integer("num_channels")
    if layers > _MOST_STEPS:
        raise vision.bad(
            "num_hidden_layers",
            layers,
            tr("at most {most_steps} are planned").format(most_steps=_MOST_STEPS),
        )
    sides, times = _products(side), _products(frames)
    steps: list[_Step] = [(1, 1, channels)]
    steps += [(1, high, -(-(high**2) * channels // _ROUND) * _ROUND) for high in sides]
    steps += [(time, side, side**2 * channels * time * _ROUND) for time in times]
    volumes = [_single(log(time * high**2)) for time, high, _ in steps]
    whole = _single(log(side**2 * frames * channels))
    # Powers of two lie in the middle between two volumes: how single precision rounds decides.
    share, half = _single(whole / layers), (layers + 1) // 2
    wanted = [
        _single(share * index)
        if index < half
        else _single(whole - _single(share * (layers - index)))
        for index in range(layers + 1)
    ]
    chosen = _nearest(wanted, volumes) if layers >= len(steps) else _spread(wanted, volumes)
    chosen[0], chosen[-1] = 0, len(steps) - 1
    return [steps[index] for index in chosen]


def _single(value: float) -> float:
    """``value`` in single precision."""
    return float(unpack("f", pack("f", value))[0])


def _products(number: int) -> list[int]:
    """The products of the first 1, 2, ... prime factors of ``number``, the largest first."""
    factors: list[int] = []
    for prime in (2, *range(3, isqrt(number) + 1, 2)):
        while number % prime == 0:
            factors.append(prime)
            number //= prime
    if number > 1:
        factors.append(number)
    return [prod(factors[: -index - 1 : -1]) for index in range(1, len(factors) + 1)]


def _nearest(wanted: list[float], values: list[float]) -> list[int]:
    places = range(len(values))
    return [min(places, key=lambda i, w=want: _single(abs(w - values[i]))) for want in wanted]


def _spread(wanted: list[float], values: list[float]) -> list[int]:
    """Another value for each: of all ways that keep the order, the one with the least distance."""
    best: list[tuple[float, list[int]]] = [(0.0, [])] * (len(values) + 1)
    for want in wanted:
        row: list[tuple[float, list[int]]] = [(inf, [])]
        for index, value in enumerate(values):
            cost, picked = best[index]
            row.append(min(row[-1], (cost + abs(want - value), [*picked, index])))
        best = row
    return best[-1][1]


def inkling2(root: Facts, _text: Facts) -> list[Tensor]:
    """Inkling 2: a ViT with layer scale whose patches are merged; no ear of its own."""
    vision = vision_of(root)
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.linear("embeddings.patch_embedding", hidden, patches(vision), bias=False)
    places = vision.integer("posemb_grid_size") ** 2
    tower.weight("embeddings.position_embedding.weight", places, hidden)
    tower.weight("embeddings.class_embedding", hidden)
    tower.weight("embeddings.cls_position_embedding", hidden)
    width = vision.integer("intermediate_size", int(hidden * number(vision, "mlp_ratio", 4)))
    encode(tower, vision, Encoder(scales=2), mlp=width)
    tower.norm("pre_layernorm", hidden)
    merged = hidden * vision.integer("spatial_merge_size") ** 2
    inner, out = vision.integer("projection_hidden_dim"), vision.integer("text_hidden_size")
    bias = vision.flag("projector_bias")
    tower.linear("merger.linear_1", inner, merged, bias=bias)
    tower.linear("merger.linear_2", out, inner, bias=bias)
    return tower.tensors


ENCODERS = {"inkling_audio": _dmel}
TOWERS = {
    "apertus1p5": apertus,
    "inkling_mm_model": inkling,
    "inkling2": inkling2,
    "inkling2_loop": inkling2,
}
