"""Audio encoders that descend from Whisper, and the projectors behind them.

An encoder is known by the ``model_type`` of its own config, so that every root that nests one
works; a root adds only what is between encoder and text model.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.architecture.towers.parts import Encoder, Tower
from engine.architecture.towers.registry import AUDIO_ENCODERS, UnknownTowerError

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

AUDIO = "audio_config"


def audio_of(root: Facts, key: str = AUDIO) -> Facts:
    """The audio config, as the root's class has it where the model states nothing.

    Raises:
        ConfigError: it is no object.
    """
    found = root.sub(key)
    return found if found is not None else root.empty(key)


def listen(audio: Facts, path: str = "audio_tower.") -> Tower:
    """The encoder that ``audio`` describes.

    Raises:
        UnknownTowerError: there is no rule for its type.
        ConfigError: a field is missing, of the wrong type or absurd.
    """
    rule = AUDIO_ENCODERS.get(audio.model_type)
    if rule is None:
        raise UnknownTowerError(audio.model_type)
    tower = Tower(path, ModuleClass.AUDIO)
    rule(audio, tower)
    return tower


_KEYS_WITHOUT_BIAS = Encoder(k_bias=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whisper:
    """How an encoder differs from Whisper's."""

    planes: bool = False
    """Three convolutions over time and pitch in place of two over time."""
    positions: bool = True
    """Learned positions."""
    grouped: bool = False
    """Whether heads have a width and a number of keys of their own."""
    style: Encoder = _KEYS_WITHOUT_BIAS
    output: tuple[str, ...] = ()
    """Linear layers to ``output_dim`` behind the last norm."""
    ends: bool = False
    """Learned tokens that begin and end a sound."""

    def __call__(self, audio: Facts, tower: Tower) -> None:
        """Add the encoder's tensors."""
        hidden = audio.integer("hidden_size")
        if self.planes:
            _planes(audio, tower, hidden)
        else:
            tower.linear("conv1", hidden, 3 * audio.integer("num_mel_bins"))
            tower.linear("conv2", hidden, 3 * hidden)
        if self.positions:
            tower.weight("embed_positions.weight", audio.integer("max_source_positions"), hidden)
        layers = audio.integer("encoder_layers", audio.count("num_hidden_layers") or None)
        width = audio.integer("encoder_ffn_dim", audio.count("intermediate_size") or None)
        self.style.add(tower, layers, hidden, width, self._heads(audio, hidden))
        if self.style.gated:
            tower.weight("layers.*.mlp.down_proj.bias", hidden, copies=layers)
        tower.norm("layer_norm", hidden, bias=self.style.norm_bias)
        for index, name in enumerate(self.output):
            last = index == len(self.output) - 1
            tower.linear(name, audio.integer("output_dim") if last else hidden, hidden)
        if self.ends:
            tower.weight("audio_bos_eos_token.weight", 2, audio.integer("output_dim"))

    def _heads(self, audio: Facts, hidden: int) -> tuple[int, int]:
        if not self.grouped:
            return hidden, hidden
        heads = audio.integer("num_attention_heads")
        width = audio.integer("head_dim", hidden // heads)
        return heads * width, audio.integer("num_key_value_heads", heads) * width


def _planes(audio: Facts, tower: Tower, hidden: int) -> None:
    """Halve time and pitch three times."""
    channels = audio.integer("downsample_hidden_size")
    for index in range(3):
        tower.linear(f"conv2d{index + 1}", channels, 9 * (channels if index else 1))
    bins = audio.integer("num_mel_bins")
    for _ in range(3):
        bins = (bins + 1) // 2
    tower.linear("conv_out", hidden, channels * bins, bias=False)


def two_layers(
    root: Facts, text: Facts, *, times: int = 1, bias: bool | str = True, inner: int = 1,
    key: str = "hidden_size",
) -> list[Tensor]:  # fmt: skip
    """An encoder and two linear layers over ``times`` frames of the width ``key``.

    The first is ``inner`` times as wide as the text model.
    """
    audio = audio_of(root)
    tower = listen(audio)
    hidden = text.integer("hidden_size")
    has_bias = root.says(bias)
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", inner * hidden, times * audio.integer(key), bias=has_bias)
    tower.linear("linear_2", hidden, inner * hidden, bias=has_bias)
    return tower.tensors


def _one_layer(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen2-Audio and OmniASR: an encoder and one linear layer."""
    audio = audio_of(root)
    tower = listen(audio)
    tower.path = ""
    out = text.integer("hidden_size")
    tower.linear("multi_modal_projector", out, audio.integer("hidden_size"))
    return tower.tensors


def _voxtral_realtime(root: Facts, text: Facts) -> list[Tensor]:
    """Voxtral Realtime: frames are joined before the projector."""
    return two_layers(root, text, times=root.integer("downsample_factor"), bias=False)


def _moss(root: Facts, text: Facts) -> list[Tensor]:
    """MOSS-Transcribe-Diarize: frames are joined, and a norm is behind the projector."""
    merged = root.integer("audio_merge_size")
    tensors = two_layers(root, text, times=merged, bias="projector_bias")
    behind = Tower("multi_modal_projector.", ModuleClass.AUDIO)
    behind.norm("norm", text.integer("hidden_size"))
    return tensors + behind.tensors


def _qwen3_asr(root: Facts, text: Facts) -> list[Tensor]:
    """Qwen3-ASR: the projector's width is the encoder's own ``output_dim``.

    The first published files nest both parts in a ``thinker_config``.
    """
    audio = audio_of(text.above or root)
    tower = listen(audio)
    hidden = audio.integer("hidden_size")
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", hidden, hidden)
    tower.linear("linear_2", audio.integer("output_dim"), hidden)
    return tower.tensors


_WHISPER = _Whisper()
_QWEN3_ASR = _Whisper(planes=True, positions=False, style=Encoder())
_REALTIME = Encoder(k_bias=False, gated=True, mlp_bias=False, norm_bias=False)
ENCODERS = {
    "voxtral_encoder": _WHISPER,
    "audioflamingo3_encoder": _WHISPER,
    "musicflamingo_encoder": _WHISPER,
    "qwen2_audio_encoder": _WHISPER,
    "moss_transcribe_diarize_audio": _WHISPER,
    "glmasr_encoder": _Whisper(positions=False, grouped=True),
    "voxtral_realtime_encoder": _Whisper(positions=False, grouped=True, style=_REALTIME),
    "qwen2_5_omni_audio_encoder": _Whisper(positions=False, output=("proj",), ends=True),
    "qwen3_omni_moe_audio_encoder": _Whisper(
        planes=True, positions=False, style=Encoder(), output=("proj1", "proj2")
    ),
    "qwen3_asr_encoder": _QWEN3_ASR,
    "qwen3_asr_audio_encoder": _QWEN3_ASR,
}
_JOINED = "intermediate_size"
"""As wide as the MLP: frames are joined until their width is that."""
TOWERS = {
    "voxtral": partial(two_layers, bias=False, key=_JOINED),
    "glmasr": partial(two_layers, inner=2, key=_JOINED),
    "audioflamingo3": partial(two_layers, bias="projector_bias"),
    "musicflamingo": partial(two_layers, bias="projector_bias"),
    "voxtral_realtime": _voxtral_realtime,
    "moss_transcribe_diarize": _moss,
    "qwen2_audio": _one_layer,
    "omniasr": _one_layer,
    "qwen3_asr": _qwen3_asr,
}
