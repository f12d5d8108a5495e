"""Autoencoders that turn an image into words of the vocabulary: Chameleon's and Emu3's.

Source:
    transformers 5.24.0, ``chameleon/modeling_chameleon.py``, ``emu3/modeling_emu3.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.towers.parts import Tower
from engine.architecture.towers.tokens import attention, conv, residual
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def _codes(root: Facts) -> Facts:
    root.settle("vocabulary_map")
    return root.sub("vq_config") or root.empty("vq_config")


def _widths(codes: Facts) -> tuple[int, ...]:
    """Channels at each resolution, the highest first.

    Raises:
        ConfigError: ``channel_multiplier`` is empty.
    """
    base, key = codes.integer("base_channels"), "channel_multiplier"
    times = codes.integers(key, 1)
    if not times:
        raise codes.bad(key, times, tr("a factor for each resolution is needed"))
    return tuple(base * factor for factor in times)


def chameleon(root: Facts, _text: Facts) -> list[Tensor]:
    """Chameleon: an encoder and its codes; attention at the resolutions that are listed."""
    codes = _codes(root)
    tower = Tower("model.vqmodel.")
    attends = codes.word("attn_type", "vanilla") == "vanilla"
    at = set(codes.integers("attn_resolutions") or ()) if attends else set[int]()
    widths, blocks = _widths(codes), codes.integer("num_res_blocks")
    before, resolution = codes.integer("base_channels"), codes.integer("resolution")
    conv(tower, "encoder.conv_in", before, codes.integer("in_channels"))
    for level, width in enumerate(widths):
        path = f"encoder.down.{level}."
        residual(tower, f"{path}block.0.", before, width)
        residual(tower, f"{path}block.*.", width, width, copies=blocks - 1)
        if resolution in at:
            attention(tower, f"{path}attn.*.", width, copies=blocks)
        if level < len(widths) - 1:
            conv(tower, f"{path}downsample.conv", width, width)
            resolution //= 2
        before = width
    residual(tower, "encoder.mid.block_*.", before, before, copies=2)
    if attends:
        attention(tower, "encoder.mid.attn_1.", before)
    tower.norm("encoder.norm_out", before)
    latent, code = codes.integer("latent_channels"), codes.integer("embed_dim")
    conv(tower, "encoder.conv_out", latent * _doubled(codes), before)
    tower.weight("quantize.embedding.weight", codes.integer("num_embeddings"), code)
    tower.linear("quant_conv", code, latent)
    tower.linear("post_quant_conv", latent, code)
    return tower.tensors


def _doubled(codes: Facts) -> int:
    return 2 if codes.flag("double_latent") else 1


@dataclass(frozen=True, slots=True)
class _Half:
    """The encoder or the decoder of Emu3's codes; the decoder's norms also look at the code."""

    tower: Tower
    path: str
    attended: int
    """Width of attention."""
    code: int = 0
    """Width of the code; 0 in the encoder."""

    def norm(self, name: str, width: int, *, copies: int = 1) -> None:
        """A norm, by two more convolutions of a pixel where it looks at the code."""
        self.tower.norm(self.path + name, width, copies=copies)
        if self.code:
            for part in ("conv_y", "conv_b"):
                self.tower.linear(f"{self.path}{name}.{part}", width, self.code, copies=copies)

    def residual(self, name: str, width: int, out: int, *, copies: int = 1) -> None:
        """Two convolutions with a norm before each."""
        path = self.path + name
        self.norm(f"{name}norm1", width, copies=copies)
        conv(self.tower, f"{path}conv1", out, width, copies=copies)
        self.norm(f"{name}norm2", out, copies=copies)
        conv(self.tower, f"{path}conv2", out, out, copies=copies)
        if width != out:
            self.tower.linear(f"{path}nin_shortcut", out, width, copies=copies)

    def attention(self, name: str, width: int, *, copies: int = 1) -> None:
        """Attention among pixels and its norm."""
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            wide = self.attended
            self.tower.linear(f"{self.path}{name}attn.{part}", wide, wide, copies=copies)
        self.norm(f"{name}attn_norm", width, copies=copies)

    def middle(self, width: int) -> None:
        """Two residual blocks around attention."""
        self.residual("middle_block.block_*.", width, width, copies=2)
        self.attention("middle_block.", width)

    def levels(
        self, widths: Iterator[tuple[int, int]], before: int, blocks: int, at: set[int]
    ) -> None:
        """``blocks`` residual blocks at each (level, width), the first from the width before."""
        for level, width in widths:
            path = f"levels.{level}."
            self.residual(f"{path}block.0.", before, width)
            self.residual(f"{path}block.*.", width, width, copies=blocks - 1)
            if level in at:
                self.attention(path, width, copies=blocks)
            before = width


def emu3(root: Facts, _text: Facts) -> list[Tensor]:
    """Emu3: an encoder, its codes and a decoder, each with convolutions over frames."""
    codes = _codes(root)
    tower = Tower("model.vqmodel.")
    widths, blocks = _widths(codes), codes.integer("num_res_blocks")
    latent, code = codes.integer("latent_channels"), codes.integer("embed_dim")
    halvings = codes.integer("temporal_downsample_factor").bit_length() - 1
    at = set(codes.integers("attn_resolutions") or ())
    top, base, coded = widths[-1], codes.integer("base_channels"), latent * _doubled(codes)
    wide = codes.integer("hidden_size")

    encoder = _Half(tower, "encoder.", wide)
    conv(tower, "encoder.conv_in", base, codes.integer("in_channels"))
    encoder.levels(iter(enumerate(widths)), base, blocks, at)
    encoder.middle(top)
    encoder.norm("norm_out", top)
    conv(tower, "encoder.conv_out", coded, top)
    tower.linear("encoder.time_conv.*", coded, 4 * 9 * coded, copies=halvings)
    _over_frames(tower, "encoder.", coded, blocks)

    tower.weight("quantize.embedding.weight", codes.integer("codebook_size"), code)
    tower.linear("quant_conv", code, 3 * latent)
    tower.linear("post_quant_conv", latent, 3 * code)

    decoder = _Half(tower, "decoder.", wide, code)
    _over_frames(tower, "decoder.", latent, blocks)
    tower.linear("decoder.time_conv.*", latent, 3 * 9 * latent, copies=halvings)
    conv(tower, "decoder.conv_in", top, latent)
    decoder.middle(top)
    decoder.levels(reversed(list(enumerate(widths))), top, blocks + 1, at)
    decoder.norm("norm_out", widths[0])
    conv(tower, "decoder.conv_out", codes.integer("out_channels"), widths[0])
    for width in (*widths[:-1], *widths[1:]):
        conv(tower, "resample", width, width)
    return tower.tensors


def _over_frames(tower: Tower, path: str, width: int, blocks: int) -> None:
    """Residual blocks of three by three by three."""
    for part in ("1", "2"):
        tower.norm(f"{path}time_res_stack.*.norm{part}", width, copies=blocks)
        tower.linear(f"{path}time_res_stack.*.conv{part}", width, 27 * width, copies=blocks)


TOWERS = {"chameleon": chameleon, "emu3": emu3}
