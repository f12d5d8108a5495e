"""VibeVoice: tokenizers of convolutions between which a language model and a diffusion sit.

The first published files have keys of their own (``acoustic_tokenizer_config`` ...), which
transformers' class does not read: they are read as what they describe.

Source:
    transformers 5.24.0, ``vibevoice_acoustic_tokenizer/modeling_vibevoice_acoustic_tokenizer.py``,
    ``vibevoice/modeling_vibevoice.py``, ``vibevoice_asr/modeling_vibevoice_asr.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.audio import audio_of, listen
from engine.architecture.towers.parts import number
from engine.architecture.towers.registry import UnknownTowerError
from engine.config.facts import facts_for
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts


def _stages(codec: Facts) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """By how much each stage makes the frames fewer, and its blocks: one stage more."""
    ratios = codec.integers("downsampling_ratios", 1) or ()
    depths = codec.integers("depths") or ()
    if len(depths) < len(ratios) + 1:
        wanted = tr("one for each of downsampling_ratios and one before are needed")
        raise codec.bad("depths", depths, wanted)
    return ratios, depths


def _blocks(tower: Tower, name: str, codec: Facts, width: int, count: int) -> None:
    """ConvNeXt blocks: a convolution for each channel, an MLP, and a scale behind both."""
    if not count:
        return
    inner = width * codec.integer("ffn_expansion")
    tower.linear(f"{name}.mixer.conv", width, codec.integer("kernel_size"), copies=count)
    tower.linear(f"{name}.ffn.linear1", inner, width, copies=count)
    tower.linear(f"{name}.ffn.linear2", width, inner, copies=count)
    for vector in ("norm.weight", "ffn_norm.weight", "gamma", "ffn_gamma"):
        tower.weight(f"{name}.{vector}", width, copies=count)


def _encoder(codec: Facts, tower: Tower, prefix: str = "") -> None:
    """From sound to vectors: each stage doubles the channels."""
    ratios, depths = _stages(codec)
    kernel, width = codec.integer("kernel_size"), codec.integer("num_filters")
    tower.linear(f"{prefix}stem.conv.conv", width, codec.integer("channels") * kernel)
    _blocks(tower, f"{prefix}stem.stage.*", codec, width, depths[0])
    for index, ratio in enumerate(ratios):
        path = f"{prefix}conv_layers.{index}"
        tower.linear(f"{path}.conv.conv", 2 * width, width * 2 * ratio)
        width *= 2
        _blocks(tower, f"{path}.stage.*", codec, width, depths[index + 1])
    tower.linear(f"{prefix}head.conv", codec.integer("hidden_size"), width * kernel)


def _decoder(codec: Facts, tower: Tower, prefix: str) -> None:
    """The way back: each stage halves the channels."""
    ratios, depths = _stages(codec)
    if len(depths) > len(ratios) + 1:
        raise codec.bad("depths", depths, tr("one more than downsampling_ratios has is needed"))
    kernel = codec.integer("kernel_size")
    width = codec.integer("num_filters") * 2 ** len(ratios)
    tower.linear(f"{prefix}stem.conv.conv", width, codec.integer("hidden_size") * kernel)
    _blocks(tower, f"{prefix}stem.stage.*", codec, width, depths[-1])
    for index, ratio in reversed(list(enumerate(ratios))):
        path = f"{prefix}conv_layers.{index}"
        tower.weight(f"{path}.convtr.convtr.weight", width, width // 2, 2 * ratio)
        width //= 2
        tower.weight(f"{path}.convtr.convtr.bias", width)
        _blocks(tower, f"{path}.stage.*", codec, width, depths[index])
    tower.linear(f"{prefix}head.conv", codec.integer("channels"), width * kernel)


def _both(codec: Facts, tower: Tower) -> None:
    _encoder(codec, tower, "encoder.")
    _decoder(codec, tower, "decoder.")


def _connect(tower: Tower, names: Sequence[str], out: int, width: int) -> None:
    """Two linear layers with a norm between, by their names."""
    first, between, second = names
    tower.linear(first, out, width)
    tower.norm(between, out, bias=False)
    tower.linear(second, out, out)


def _vibevoice(root: Facts, text: Facts) -> list[Tensor]:
    """VibeVoice: hears with two tokenizers, speaks by a diffusion into the first one's vectors."""
    first = root.sub(_FIRST) is not None
    acoustic = _published(root, "acoustic") if first else audio_of(root)
    semantic = _published(root, "semantic") if first else audio_of(root, "semantic_model_config")
    tower = listen(acoustic)
    tower.tensors += listen(semantic, "semantic_tokenizer_encoder.").tensors
    hidden, latent = text.integer("hidden_size"), acoustic.integer("hidden_size")
    names = ("linear_1", "act", "linear_2")
    tower.path = "multi_modal_projector."
    _connect(tower, names, hidden, latent)
    tower.path = "semantic_connector."
    _connect(tower, names, hidden, semantic.integer("hidden_size"))
    tower.path = ""
    for name in () if first else ("latent_scaling_factor", "latent_bias_factor"):
        tower.weight(name)  # buffers, when they were first published
    tower.path = "diffusion_head."
    head = audio_of(root, "diffusion_head_config")
    _diffusion(_published_head(head, hidden) if first else head, tower, hidden, latent)
    return tower.tensors


_FIRST = "acoustic_tokenizer_config"
_AS_EVER = {
    "causal": True, "conv_bias": True, "conv_norm": "none", "disable_last_norm": True,
    "layernorm": "RMSNorm", "layernorm_elementwise_affine": True, "mixer_layer": "depthwise_conv",
}  # fmt: skip
"""What every published tokenizer has, and the only values that are counted."""


def _published(root: Facts, kind: str) -> Facts:
    """A tokenizer as it was first published, with the keys of transformers' class.

    Raises:
        UnknownTowerError: it is built otherwise than any that was published.
    """
    stated = audio_of(root, f"{kind}_tokenizer_config")
    for key, usual in _AS_EVER.items():
        if stated.raw(key) not in (None, usual):
            raise UnknownTowerError(tr("{kind} tokenizer with {key}").format(kind=kind, key=key))
    ratios, filters = stated.integers("encoder_ratios", 1) or (), stated.raw("encoder_n_filters")
    for key, usual in (
        ("decoder_depths", None),
        ("decoder_ratios", list(ratios)),
        ("decoder_n_filters", filters),
    ):
        if stated.raw(key) not in (None, usual):
            raise UnknownTowerError(
                tr("{kind} tokenizer with {key} of its own").format(kind=kind, key=key)
            )
    stated.settle("pad_mode", "std_dist_type", "fix_std", "corpus_normalize")
    root.settle(f"{kind}_vae_dim")
    given = {
        "channels": stated.integer("channels", 1),
        "hidden_size": stated.integer("vae_dim"),
        "num_filters": stated.integer("encoder_n_filters"),
        "downsampling_ratios": list(reversed(ratios)),
        "depths": [int(part) for part in _parts(stated)],
    }
    suffix = "" if kind == "acoustic" else "_encoder"
    return facts_for(given, f"vibevoice_acoustic_tokenizer{suffix}", stated.path)


def _parts(stated: Facts) -> list[str]:
    """``3-3-8`` as its numbers."""
    written = stated.word("encoder_depths")
    parts = written.split("-")
    if not all(part.isdecimal() and len(part) < 4 for part in parts):
        raise stated.bad("encoder_depths", written, tr("numbers with dashes between are needed"))
    return parts


def _published_head(stated: Facts, hidden: int) -> Facts:
    """The diffusion head as it was first published, with the keys of transformers' class."""
    given = {
        "num_hidden_layers": stated.integer("head_layers"),
        "intermediate_size": int(hidden * number(stated, "head_ffn_ratio", 3)),
    }
    stated.settle("speech_vae_dim", "ddpm_batch_mul", "ddpm_num_steps", "ddpm_num_inference_steps")
    stated.settle("hidden_size", "latent_size")
    return facts_for(given, "vibevoice_diffusion", stated.path)


def _diffusion(head: Facts, tower: Tower, hidden: int, latent: int) -> None:
    """As wide as the text model and into the tokenizer's vectors, whatever it states itself."""
    head.settle("hidden_size", "latent_size")
    layers, width = head.integer("num_hidden_layers"), head.integer("intermediate_size")
    bias = head.flag("mlp_bias")
    tower.linear("noisy_images_proj", hidden, latent, bias=False)
    tower.linear("cond_proj", hidden, hidden, bias=False)
    waves = head.integer("frequency_embedding_size")
    tower.linear("timestep_proj.fc1", hidden, waves, bias=False)
    tower.linear("timestep_proj.fc2", hidden, hidden, bias=False)
    for name in ("gate_proj", "up_proj"):
        tower.linear(f"layers.*.ffn.{name}", width, hidden, bias=bias, copies=layers)
    tower.linear("layers.*.ffn.down_proj", hidden, width, bias=bias, copies=layers)
    tower.norm("layers.*.norm", hidden, bias=False, copies=layers)
    tower.linear("layers.*.linear", 3 * hidden, hidden, bias=False, copies=layers)
    tower.linear("final_layer.linear_1", 2 * hidden, hidden, bias=False)
    tower.linear("final_layer.linear_2", latent, hidden, bias=False)


def _vibevoice_asr(root: Facts, text: Facts) -> list[Tensor]:
    """VibeVoice-ASR: only hears, with both tokenizers."""
    hidden = text.integer("hidden_size")
    tensors: list[Tensor] = []
    for kind in ("acoustic", "semantic"):
        codec = audio_of(root, f"{kind}_tokenizer_encoder_config")
        tower = listen(codec, f"{kind}_tokenizer_encoder.")
        tower.path = f"multi_modal_projector.{kind}_"
        _connect(tower, ("linear_1", "norm", "linear_2"), hidden, codec.integer("hidden_size"))
        tensors += tower.tensors
    return tensors


ENCODERS = {
    "vibevoice_acoustic_tokenizer_encoder": _encoder,
    "vibevoice_acoustic_tokenizer": _both,
}
TOWERS = {"vibevoice": _vibevoice, "vibevoice_asr": _vibevoice_asr}
