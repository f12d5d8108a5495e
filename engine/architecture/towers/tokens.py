"""Towers that turn images into tokens of a vocabulary of their own: Ovis 2, Janus.

Source:
    transformers 5.24.0, ``ovis2/modeling_ovis2.py``, ``janus/modeling_janus.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.heads import is_bare, is_tied
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.architecture.towers.parts import (
    Encoder,
    Tower,
    encode,
    grid,
    number,
    patches,
    vision_of,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts


def ovis2(root: Facts, text: Facts) -> list[Tensor]:
    """Ovis 2: AIMv2, a head over visual words and their embedding.

    The root's own width and vocabulary, not the text model's, are those of an untied head.
    """
    vision = vision_of(root)
    tower = Tower("vision_tower.")
    hidden = vision.integer("hidden_size")
    tower.linear("embeddings.patch_embedding", hidden, patches(vision))
    tower.weight("embeddings.position_embedding.weight", grid(vision), hidden)
    tower.norm("embeddings.rms_norm", hidden, bias=False)
    bias = vision.flag("qkv_bias")
    style = Encoder(
        gated=True, qkv_bias=bias, o_bias=bias, mlp_bias=vision.flag("mlp_bias"), norm_bias=False
    )
    encode(tower, vision, style)
    tower.norm("rms_norm", hidden, bias=False)
    words = vision.integer("vocab_size")
    seen = words - vision.integer("num_visual_indicator_tokens")
    if seen < 1:
        raise vision.bad("vocab_size", words, tr("more words than indicators are needed"))
    tower.linear("head_linear", seen, hidden * vision.integer("hidden_stride", 1) ** 2, bias=False)
    tower.norm("head_norm", seen)
    width = root.integer("hidden_size")
    tower.path = ""
    tower.weight("visual_embeddings_table.weight", words, width)
    if not (is_bare(text) or is_tied(text, root, otherwise=False)):
        head = (root.integer("vocab_size"), width)
        tower.tensors.append(
            Tensor("lm_head.weight", ModuleClass.LM_HEAD, head, 1, Sharding.VOCAB, linear=True)
        )
    return tower.tensors


def janus(root: Facts, text: Facts) -> list[Tensor]:
    """Janus: a SigLIP that reads images, and a quantising autoencoder that writes them."""
    del text
    vision = vision_of(root)
    tower = Tower("vision_model.")
    hidden = vision.integer("hidden_size")
    tower.linear("embeddings.patch_embedding", hidden, patches(vision))
    tower.weight("embeddings.position_embedding.weight", grid(vision), hidden)
    width = int(hidden * number(vision, "mlp_ratio", 4))
    encode(tower, vision, Encoder(qkv_bias=vision.flag("attention_bias", default=True)), mlp=width)
    if vision.flag("use_qk_norm"):
        for name in ("q_norm", "k_norm"):
            copies = vision.integer("num_hidden_layers")
            tower.norm(f"encoder.layers.*.self_attn.{name}", hidden, copies=copies)
    tower.norm("post_layernorm", hidden)
    tower.path = ""
    _aligner(tower, "aligner", vision, hidden, vision.integer("depth"))
    return tower.tensors + writing(root.sub("vq_config") or root.empty("vq_config"))


def writing(codes: Facts) -> list[Tensor]:
    """What Janus writes images with: the autoencoder, and the words' embedding and head."""
    tower = Tower("vqmodel.")
    _autoencoder(tower, codes)
    words, code = codes.integer("num_embeddings"), codes.integer("embed_dim")
    tower.path = ""
    tower.weight("generation_embeddings.weight", words, code)
    _aligner(tower, "generation_aligner", codes, code, codes.integer("num_hidden_layers"))
    out = codes.integer("projection_dim")
    tower.linear("generation_head.proj_out", out, codes.integer("image_token_embed_dim"))
    tower.linear("generation_head.vision_head", words, out)
    return tower.tensors


def _aligner(tower: Tower, name: str, facts: Facts, width: int, layers: int) -> None:
    out = facts.integer("projection_dim")
    tower.linear(f"{name}.fc1", out, width)
    if layers > 1:
        tower.linear(f"{name}.hidden_layers.*", out, out, copies=layers - 1)


def _autoencoder(tower: Tower, codes: Facts) -> None:
    """Convolutions down to a code and up again; attention at the lowest resolution."""
    base, latent = codes.integer("base_channels"), codes.integer("latent_channels")
    widths = [base * times for times in codes.integers("channel_multiplier", 1) or (1, 1, 2, 2, 4)]
    _encoder(tower, codes, base, widths)
    coded = latent * (2 if codes.flag("double_latent") else 1)
    conv(tower, "encoder.conv_out", coded, widths[-1])
    code = codes.integer("embed_dim")
    tower.weight("quantize.embedding.weight", codes.integer("num_embeddings"), code)
    tower.linear("quant_conv", code, latent)
    tower.linear("post_quant_conv", latent, code)
    conv(tower, "decoder.conv_in", widths[-1], latent)
    _decoder(tower, codes, widths)
    conv(tower, "decoder.conv_out", codes.integer("out_channels"), widths[0])


def _encoder(tower: Tower, codes: Facts, base: int, widths: list[int]) -> None:
    conv(tower, "encoder.conv_in", base, codes.integer("in_channels"))
    before, blocks = base, codes.integer("num_res_blocks")
    for level, width in enumerate(widths):
        path, is_last = f"encoder.down.{level}.", level == len(widths) - 1
        _blocks(tower, path, (before, width), blocks, attends=is_last)
        before = width
        if not is_last:
            conv(tower, f"{path}downsample.conv", width, width)
    _middle(tower, "encoder.", before)
    tower.norm("encoder.norm_out", before)


def _decoder(tower: Tower, codes: Facts, widths: list[int]) -> None:
    before, blocks = widths[-1], codes.integer("num_res_blocks") + 1
    _middle(tower, "decoder.", before)
    for level, width in reversed(list(enumerate(widths))):
        path, is_last = f"decoder.up.{level}.", level == len(widths) - 1
        _blocks(tower, path, (before, width), blocks, attends=is_last)
        before = width
        if level:
            conv(tower, f"{path}upsample.conv", width, width)
    tower.norm("decoder.norm_out", before)


def conv(tower: Tower, name: str, out: int, width: int, *, copies: int = 1) -> None:
    """A convolution of three by three pixels."""
    tower.linear(name, out, 9 * width, copies=copies)


def _blocks(tower: Tower, path: str, widths: tuple[int, int], count: int, *, attends: bool) -> None:
    """``count`` residual blocks, the first of which goes from one width to the other."""
    width, out = widths
    if count:
        residual(tower, f"{path}block.0.", width, out)
    if count > 1:
        residual(tower, f"{path}block.*.", out, out, copies=count - 1)
    if attends and count:
        attention(tower, f"{path}attn.*.", out, copies=count)


def residual(tower: Tower, path: str, width: int, out: int, *, copies: int = 1) -> None:
    """Two convolutions with a norm before each, and one of a pixel beside them."""
    tower.norm(f"{path}norm1", width, copies=copies)
    conv(tower, f"{path}conv1", out, width, copies=copies)
    tower.norm(f"{path}norm2", out, copies=copies)
    conv(tower, f"{path}conv2", out, out, copies=copies)
    if width != out:
        tower.linear(f"{path}nin_shortcut", out, width, copies=copies)


def attention(tower: Tower, path: str, width: int, *, copies: int = 1) -> None:
    """Attention among pixels, with a norm before it."""
    tower.norm(f"{path}norm", width, copies=copies)
    for name in ("q", "k", "v", "proj_out"):
        tower.linear(path + name, width, width, copies=copies)


def _middle(tower: Tower, path: str, width: int) -> None:
    residual(tower, f"{path}mid.block_*.", width, width, copies=2)
    attention(tower, f"{path}mid.attn_1.", width)


TOWERS = {"janus": janus, "ovis2": ovis2}
