"""Audio encoders over raw sound or stacked frames: wav2vec 2.0's kind and SenseVoice's.

Source:
    transformers 5.24.0, ``omniasr/modeling_omniasr.py``, ``fun_asr_nano/modeling_fun_asr_nano.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.audio import audio_of, listen
from engine.architecture.towers.parts import PLAIN, encode
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower
    from engine.config.facts import Facts


def _omniasr(audio: Facts, tower: Tower) -> None:
    """Convolutions over raw sound, positions by convolution, layers with biases everywhere."""
    hidden = audio.integer("hidden_size")
    widths = audio.integers("conv_dim", 1) or ()
    kernels = audio.integers("conv_kernel", 1) or ()
    bias = audio.flag("conv_bias")
    before = 1
    if not widths or len(kernels) != len(widths):
        raise audio.bad("conv_kernel", kernels, tr("one for each of conv_dim is needed"))
    for index, (width, kernel) in enumerate(zip(widths, kernels, strict=True)):
        path = f"subsampling.conv_layers.{index}"
        tower.linear(f"{path}.conv", width, before * kernel, bias=bias)
        tower.norm(f"{path}.layer_norm", width)
        before = width
    tower.norm("subsampling.layer_norm", before)
    tower.linear("subsampling.projection", hidden, before)
    reach = hidden // audio.integer("num_conv_pos_embedding_groups")
    tower.linear("encode_positions.conv", hidden, reach * audio.integer("num_conv_pos_embeddings"))
    encode(tower, audio, PLAIN)
    tower.norm("layer_norm", hidden)


def _fun_asr_nano(audio: Facts, tower: Tower) -> None:
    """Layers with a memory by convolution; the first reads stacked frames, of another width."""
    hidden, layers = audio.integer("hidden_size"), audio.integer("num_hidden_layers")
    inner = audio.integer("intermediate_size")
    frames = audio.integer("num_mel_bins") * audio.integer("num_stacked_frames")
    for name in ("q_proj", "k_proj", "v_proj"):
        tower.linear(f"layers.0.self_attn.{name}", hidden, frames)
    tower.linear("layers.0.self_attn.o_proj", hidden, hidden)
    tower.linear("layers.0.mlp.fc1", inner, hidden)
    tower.linear("layers.0.mlp.fc2", hidden, inner)
    tower.norm("layers.0.norm1", frames)
    tower.norm("layers.0.norm2", hidden)
    if layers > 1:
        PLAIN.add(tower, layers - 1, hidden, inner, (hidden, hidden))
    kernel = audio.integer("fsmn_kernel_size")
    tower.weight("layers.*.self_attn.fsmn.conv.weight", hidden, 1, kernel, copies=layers)
    timed = audio.integer("num_timestamp_prediction_layers", low=0)
    for index in {layers - timed - 1, layers - 1} & set(range(layers)):
        tower.norm(f"layers.{index}.final_layernorm", hidden)


def _fun_asr_nano_root(root: Facts, _text: Facts) -> list[Tensor]:
    """Fun-ASR-Nano: two linear layers and an adaptor of transformer layers."""
    audio, adaptor = audio_of(root), audio_of(root, "adaptor_config")
    tower = listen(audio)
    hidden, inner = adaptor.integer("hidden_size"), adaptor.integer("projector_hidden_size")
    tower.path = "multi_modal_projector."
    tower.linear("linear_1", inner, audio.integer("hidden_size"))
    tower.linear("linear_2", hidden, inner)
    encode(tower, adaptor, PLAIN)
    return tower.tensors


ENCODERS = {"omniasr_audio": _omniasr, "fun_asr_nano_encoder": _fun_asr_nano}
TOWERS = {"fun_asr_nano": _fun_asr_nano_root}
