"""Encoders over stacked frames: Nemotron's for speech, for who speaks and for when words are.

Source:
    transformers 5.24.0, ``nemotron3_5_transcribe/modeling_nemotron3_5_transcribe.py``,
    ``nemotron3_diarization/modeling_nemotron3_diarization.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.heads import is_bare
from engine.architecture.spec import ModuleClass
from engine.architecture.towers.audio import audio_of, listen
from engine.architecture.towers.parts import Tower

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


def _layers(facts: Facts, tower: Tower, *, normed: bool) -> None:
    """Layers whose values are as many as the queries, whatever the keys, between two norms."""
    hidden, layers = facts.integer("hidden_size"), facts.integer("num_hidden_layers")
    heads = facts.integer("num_attention_heads")
    head, width = facts.integer("head_dim", hidden // heads), facts.integer("intermediate_size")
    keys = facts.integer("num_key_value_heads", heads)
    path = "layers.*."
    for name, count in (("q_proj", heads), ("k_proj", keys), ("v_proj", heads)):
        rows = count * head
        tower.linear(f"{path}self_attn.{name}", rows, hidden, bias=False, copies=layers)
    tower.linear(path + "self_attn.o_proj", hidden, heads * head, copies=layers)
    for name in ("q_norm", "k_norm") if normed else ():
        tower.norm(f"{path}self_attn.{name}", head, copies=layers)
    tower.linear(path + "mlp.fc1", width, hidden, copies=layers)
    tower.linear(path + "mlp.fc2", hidden, width, copies=layers)
    for name in ("layer_norm1", "layer_norm2"):
        tower.norm(path + name, hidden, copies=layers)
    tower.norm("input_layer_norm", hidden)
    tower.norm("layer_norm", hidden)


def _stacked(facts: Facts, tower: Tower, *, normed: bool) -> None:
    frames = facts.integer("subsampling_factor") * facts.integer("num_mel_bins")
    tower.linear("embedder.projection", facts.integer("hidden_size"), frames, bias=False)
    _layers(facts, tower, normed=normed)


def _asr(facts: Facts, tower: Tower) -> None:
    _stacked(facts, tower, normed=True)


def _diarization(facts: Facts, tower: Tower) -> None:
    """Who speaks: an encoder, and a head that restores the frame rate."""
    audio, head = audio_of(facts), audio_of(facts, "head_config")
    path = tower.path
    tower.path = path + "model.audio_tower."
    _stacked(audio, tower, normed=False)
    tower.path = path
    width, times = head.integer("hidden_size"), head.integer("subsampling_factor")
    tower.weight("silence_embeds", audio.integer("hidden_size"))
    tower.linear("model.proj", width, head.integer("audio_hidden_size"))
    tower.linear("model.upsampler.conv", width * times, 3 * width)
    tower.linear("classifier.dense", width, width)
    tower.linear("classifier.out_proj", head.integer("num_speakers"), width)


def _transcribe(facts: Facts, tower: Tower) -> None:
    """Two encoders side by side: what is said, and by whom."""
    asr, who = audio_of(facts, "asr_config"), audio_of(facts, "diarization_config")
    path = tower.path
    tower.tensors += listen(asr, path + "asr_encoder.").tensors
    tower.tensors += listen(who, path + "diarization_model.").tensors
    tower.norm("asr_norm", asr.integer("hidden_size"))
    tower.norm("speaker_norm", audio_of(who, "head_config").integer("num_speakers"))


def _nemo(root: Facts, text: Facts) -> list[Tensor]:
    """Nemotron Transcribe: the encoders, a linear layer, and a second way out to word times."""
    audio, words = audio_of(root), audio_of(root, "word_timestamp_config")
    tower = listen(audio)
    tower.path = ""
    heard = audio_of(audio, "asr_config").integer("hidden_size")
    tower.linear("multi_modal_projector", text.integer("hidden_size"), heard)
    hidden = words.integer("hidden_size")
    if not is_bare(text):
        tower.linear("word_timestamp_head", words.integer("vocab_size"), hidden)
    second = Tower("word_timestamp_encoder.", ModuleClass.AUDIO)
    second.linear("upsampler", hidden, hidden * words.integer("upsampling_factor"))
    _layers(words, second, normed=True)
    return tower.tensors + second.tensors


ENCODERS = {
    "nemotron3_5_transcribe_asr_audio": _asr,
    "nemotron3_diarization": _diarization,
    "nemotron3_5_transcribe_audio": _transcribe,
}
TOWERS = {"nemo_speechlm": _nemo}
