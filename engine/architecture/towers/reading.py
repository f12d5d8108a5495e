"""Encoders of encoder-decoders whose two sides have configs of their own.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.build import layers_of
from engine.architecture.families.base import Family, norm
from engine.architecture.families.seq2seq import repeated, table
from engine.architecture.families.seq2seq_gemma import MODULE, MODULE2
from engine.architecture.families.speech_codes import DIA_SIDE
from engine.architecture.families.speech_encoders import audio
from engine.architecture.heads import is_bare, whole_class
from engine.architecture.spec import ModuleClass, Tensor
from engine.architecture.towers.audio import listen
from engine.architecture.towers.codecs import CODECS
from engine.architecture.towers.encoders import encoder, tower_of
from engine.architecture.towers.parts import Tower, vision_of
from engine.architecture.towers.registry import UnknownTowerError
from engine.architecture.towers.stacks import stack

if TYPE_CHECKING:
    from engine.config.facts import Facts


def _side(root: Facts, key: str) -> Facts:
    """One side's config, as its class has it where the model states nothing."""
    root.settle("is_encoder_decoder")
    found = root.sub(key)
    return found if found is not None else root.empty(key)


def _canary(root: Facts, _text: Facts) -> list[Tensor]:
    return listen(_side(root, "encoder_config"), "model.encoder.").tensors


def _module(facts: Facts, family: Family, path: str) -> list[Tensor]:
    """A Gemma encoder with its table of tokens."""
    hidden = facts.integer("hidden_size")
    return [
        table(f"{path}embed_tokens", facts.integer("vocab_size"), hidden),
        *norm(f"{path}norm", hidden),
        *repeated(layers_of(facts, family), path),
    ]


def _t5gemma(root: Facts, _text: Facts) -> list[Tensor]:
    return _module(_side(root, "encoder"), MODULE, "model.encoder.")


def _t5gemma2(root: Facts, text: Facts) -> list[Tensor]:
    """T5Gemma 2: the encoder reads images too; both sides share their table of tokens."""
    inner = _side(root, "encoder")
    reader = inner.sub("text_config") or inner.empty("text_config")
    path = "model.encoder.text_model."
    tensors = _module(reader, MODULE2, path)
    hidden = reader.integer("hidden_size")
    if root.flag("tie_word_embeddings", default=True):
        tensors = [t for t in tensors if not t.name.endswith("embed_tokens.weight")]
    else:
        tensors.append(_image_end("model.decoder.", text.integer("hidden_size")))
    tensors.append(_image_end(path, hidden))
    tower = tower_of(inner)
    width = vision_of(inner).integer("hidden_size")
    tower.path = "multi_modal_projector."
    tower.weight("mm_input_projection_weight", width, hidden)
    tower.norm("mm_soft_emb_norm", width, bias=False)
    return tensors + tower.tensors


def _image_end(path: str, hidden: int) -> Tensor:
    """The embedding of the token that ends an image, kept apart from the table."""
    return Tensor(f"{path}embed_tokens.eoi_embedding", ModuleClass.EMBEDDING, (hidden,))


def _bridge(given: int, text: Facts, columns: int = 0) -> list[Tensor]:
    """The linear layer between an encoder and a decoder of other widths.

    ``columns`` is its input where that is not the width of what the encoder gives.
    """
    wanted = text.integer("hidden_size")
    if given == wanted or text.has("cross_attention_hidden_size"):
        return []
    tower = Tower("", ModuleClass.OTHER)
    tower.linear("enc_to_dec_proj", wanted, columns or given)
    return tower.tensors


def _bare(facts: Facts) -> Facts:
    """``facts`` as the class without a head has it, whatever class it was taken from."""
    facts.stated = {**facts.stated, "architectures": ["AutoModel"], "is_decoder": False}
    return facts


def _of_text(root: Facts, text: Facts) -> list[Tensor]:
    inner = _bare(_side(root, "encoder"))
    return stack(inner, "encoder.") + _bridge(inner.integer("hidden_size"), text)


def _of_images(root: Facts, text: Facts) -> list[Tensor]:
    inner = _side(root, "encoder")
    inner.settle("path_norm")
    tensors = encoder(inner).tensors
    # A pyramid of stages (Swin) doubles its width at each.
    stages = len(inner.items("depths") or ()) - 1
    given = None if stages < 0 else inner.integer("embed_dim") * 2**stages
    return tensors + _bridge(inner.integer("hidden_size", given), text)


def _of_speech(root: Facts, text: Facts) -> list[Tensor]:
    inner = _side(root, "encoder")
    tensors = listen(inner, "encoder.").tensors
    hidden = inner.integer("hidden_size")
    given = inner.integer("output_hidden_size", hidden)
    inner.settle("tdnn_dim", "tdnn_dilation", "tdnn_kernel")
    # The class builds the bridge for the width before the adapter, even where that differs.
    return tensors + _bridge(given, text, hidden)


def _dia(root: Facts, _text: Facts) -> list[Tensor]:
    """Dia's encoder of text; the codec that makes sound of its codes is a model of its own."""
    return _module(_side(root, "encoder_config"), DIA_SIDE, "model.encoder.")


def _codec(root: Facts, key: str, path: str) -> list[Tensor]:
    codec = _side(root, key)
    rule = CODECS.get(codec.model_type)
    if rule is None:
        raise UnknownTowerError(codec.model_type)
    tower = audio(path)
    rule(codec, tower)
    return tower.tensors


def _kyutai(root: Facts, _text: Facts) -> list[Tensor]:
    """The codec of Kyutai's transcriber, which the class keeps in 32 bits."""
    if is_bare(root):
        return []
    found = _codec(root, "codec_config", "codec_model.")
    return [replace(tensor, stored_as="fp32") for tensor in found]


def _musicgen(root: Facts, text: Facts) -> list[Tensor]:
    """MusicGen: a text encoder, and the codec that makes sound of the codes."""
    if whole_class(root).endswith("ForCausalLM"):
        return []
    inner = _side(root, "text_encoder")
    inner.stated = {**inner.stated, "architectures": ["AutoEncoderModel"]}
    sound = _codec(root, "audio_encoder", "audio_encoder.")
    return [*stack(inner, "text_encoder."), *sound, *_bridge(inner.integer("hidden_size"), text)]


def _musicgen_melody(root: Facts, text: Facts) -> list[Tensor]:
    """MusicGen with a melody, whose pitches go in front of the codes."""
    tower = Tower("", ModuleClass.OTHER)
    root.settle("chroma_length")
    pitches, wanted = root.integer("num_chroma"), text.integer("hidden_size")
    if pitches != wanted and not whole_class(root).endswith("ForCausalLM"):
        tower.linear("audio_enc_to_dec_proj", wanted, pitches)
    return [*_musicgen(root, text), *tower.tensors]


TOWERS = {
    "canary": _canary, "t5gemma": _t5gemma, "t5gemma2": _t5gemma2,
    "encoder-decoder": _of_text, "vision-encoder-decoder": _of_images,
    "speech-encoder-decoder": _of_speech, "dia": _dia, "kyutai_speech_to_text": _kyutai,
    "musicgen": _musicgen, "musicgen_melody": _musicgen_melody,
}  # fmt: skip
