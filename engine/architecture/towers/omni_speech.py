"""What gives Qwen's omni models a voice: talkers, which are small decoders, and vocoders.

Source:
    transformers 5.24.0, ``qwen2_5_omni/modeling_qwen2_5_omni.py``,
    ``qwen3_omni_moe/modeling_qwen3_omni_moe.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.architecture.towers.parts import Encoder, Tower
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_DECODER = Encoder(gated=True, o_bias=False, mlp_bias=False, norm_bias=False)
"""Qwen2's layers: biases for query, key and value only."""
_PLAIN_DECODER = Encoder(gated=True, qkv_bias=False, o_bias=False, mlp_bias=False, norm_bias=False)
_BIASED_DECODER = Encoder(gated=True, mlp_bias=False, norm_bias=False)
_TIME_WIDTH = 256
"""Width of the sinusoids that tell the diffusion its time."""
_STATISTICS = 3
"""Values, means and deviations, side by side."""
_UNITS = 3
"""Residual units of a block, one for each dilation."""


def _sizes(facts: Facts) -> tuple[int, int, int, tuple[int, int]]:
    """Layers, hidden size, a head's width, and the widths of all queries and all keys."""
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    head = facts.integer("head_dim", hidden // heads)
    wide = (heads * head, facts.integer("num_key_value_heads", heads) * head)
    return facts.integer("num_hidden_layers"), hidden, head, wide


def talker(facts: Facts) -> list[Tensor]:
    """Qwen2.5-Omni's talker: a Qwen2 that reads the thinker's states and writes codes."""
    tower = Tower("talker.", ModuleClass.AUDIO)
    layers, hidden, _, heads = _sizes(facts)
    codes, source = facts.integer("vocab_size"), facts.integer("embedding_size")
    tower.weight("model.embed_tokens.weight", codes, source)
    _DECODER.add(tower, layers, hidden, facts.integer("intermediate_size"), heads)
    tower.norm("model.norm", hidden, bias=False)
    tower.linear("thinker_to_talker_proj", hidden, source)
    tower.linear("codec_head", codes, hidden, bias=False)
    return tower.tensors


def _qwen3_layers(tower: Tower, facts: Facts, layers: int, width: int) -> None:
    """Qwen3's layers with a gated MLP of ``width``."""
    _, hidden, head, heads = _sizes(facts)
    style = _BIASED_DECODER if facts.flag("attention_bias") else _PLAIN_DECODER
    style.add(tower, layers, hidden, width, heads)
    tower.norm("layers.*.self_attn.q_norm", head, bias=False, copies=layers)
    tower.norm("layers.*.self_attn.k_norm", head, bias=False, copies=layers)


def talker_moe(root: Facts, facts: Facts) -> list[Tensor]:
    """Qwen3-Omni's talker: experts with a shared one, and MLPs from the thinker's width.

    Its class has experts in every layer, whatever ``decoder_sparse_step`` says.
    """
    tower = Tower("talker.", ModuleClass.AUDIO)
    layers, hidden = facts.integer("num_hidden_layers"), facts.integer("hidden_size")
    # The shared expert is a gated MLP like any other.
    _qwen3_layers(tower, facts, layers, facts.integer("shared_expert_intermediate_size"))
    experts, inner = facts.integer("num_experts"), facts.integer("moe_intermediate_size")
    path, copies = "layers.*.mlp.", layers * experts
    tower.linear(path + "experts.gate_up_proj", 2 * inner, hidden, bias=False, copies=copies)
    tower.linear(path + "experts.down_proj", hidden, inner, bias=False, copies=copies)
    tower.linear(path + "gate", experts, hidden, bias=False, copies=layers)
    tower.linear(path + "shared_expert_gate", 1, hidden, bias=False, copies=layers)
    codes, width = facts.integer("vocab_size"), facts.integer("intermediate_size")
    tower.weight("model.codec_embedding.weight", codes, hidden)
    tower.norm("model.norm", hidden, bias=False)
    if not root.flag("tie_word_embeddings"):
        tower.linear("codec_head", codes, hidden, bias=False)
    for name in ("text_projection", "hidden_projection"):
        tower.linear(f"{name}.linear_fc1", width, root.integer("thinker_hidden_size"))
        tower.linear(f"{name}.linear_fc2", hidden, width)
    root.settle("spatial_merge_size", "speaker_id", "accept_hidden_layer")  # read when it runs
    root.settle(*(key for key in root.stated if key.startswith("codec_")))
    return tower.tensors


def code_predictor(facts: Facts) -> list[Tensor]:
    """Qwen3-Omni's second talker: a Qwen3 with a table and a head for each further code."""
    tower = Tower("talker.code_predictor.", ModuleClass.AUDIO)
    layers, hidden = facts.integer("num_hidden_layers"), facts.integer("hidden_size")
    _qwen3_layers(tower, facts, layers, facts.integer("intermediate_size"))
    tower.norm("model.norm", hidden, bias=False)
    further, codes = facts.integer("num_code_groups") - 1, facts.integer("vocab_size")
    if further:
        tower.weight("model.codec_embedding.*.weight", codes, hidden, copies=further)
        tower.linear("lm_head.*", codes, hidden, bias=False, copies=further)
    return tower.tensors


def dit(facts: Facts) -> list[Tensor]:
    """Qwen2.5-Omni's diffusion from codes to a spectrogram, told of the speaker by ECAPA."""
    tower = Tower("token2wav.code2wav_dit_model.", ModuleClass.AUDIO)
    facts.settle("heads", "enc_lin_neurons")  # of the published file; the class has other names
    layers, hidden = facts.integer("num_hidden_layers"), facts.integer("hidden_size")
    wide, inner = (
        facts.integer("head_dim") * facts.integer("num_attention_heads"),
        hidden * facts.integer("ff_mult"),
    )
    pitches, width = facts.integer("mel_dim"), facts.integer("emb_dim")
    tower.linear("time_embed.time_mlp.0", hidden, _TIME_WIDTH)
    tower.linear("time_embed.time_mlp.2", hidden, hidden)
    tower.weight("text_embed.codec_embed.weight", facts.integer("num_embeds") + 1, width)
    speaker = facts.integer("enc_dim")
    joined = pitches + speaker + facts.integer("enc_emb_dim") + width
    tower.linear("input_embed.proj", hidden, joined)
    _ecapa(tower, facts, pitches, speaker)
    path = "transformer_blocks.*."
    tower.linear(path + "attn_norm.linear", 6 * hidden, hidden, copies=layers)
    for name in ("to_q", "to_k", "to_v"):
        tower.linear(f"{path}attn.{name}", wide, hidden, copies=layers)
    tower.linear(path + "attn.to_out.0", hidden, wide, copies=layers)
    tower.linear(path + "ff.ff.0", inner, hidden, copies=layers)
    tower.linear(path + "ff.ff.3", hidden, inner, copies=layers)
    tower.linear("norm_out.linear", 2 * hidden, hidden)
    tower.linear("proj_out", pitches, hidden)
    return tower.tensors


def _ecapa(tower: Tower, facts: Facts, pitches: int, out: int) -> None:
    """The speaker encoder: convolutions in parts of a layer, squeezed and excited."""
    channels = facts.integers("enc_channels", 1) or ()
    kernels = facts.integers("enc_kernel_sizes", 1) or ()
    if not channels or not kernels or len(kernels) != len(channels):
        raise facts.bad("enc_kernel_sizes", kernels, tr("one for each of enc_channels is needed"))
    scale, squeezed = facts.integer("enc_res2net_scale"), facts.integer("enc_se_channels")
    path = "input_embed.spk_encoder."
    tower.linear(path + "blocks.0.conv", channels[0], pitches * kernels[0])
    for index in range(1, len(channels) - 1):
        block, width = f"{path}blocks.{index}.", channels[index]
        part = width // scale
        tower.linear(block + "tdnn1.conv", width, channels[index - 1])
        if scale > 1:
            tower.linear(block + "res2net", part, part * kernels[index], copies=scale - 1)
        tower.linear(block + "tdnn2.conv", width, width)
        tower.linear(block + "se_block.conv1", squeezed, width)
        tower.linear(block + "se_block.conv2", width, squeezed)
    last, looking = channels[-1], facts.integer("enc_attention_channels")
    tower.linear(path + "mfa.conv", last, last * kernels[-1])
    tower.linear(path + "asp.tdnn.conv", looking, _STATISTICS * last)
    tower.linear(path + "asp.conv", last, looking)
    tower.linear(path + "fc", out, 2 * last)


def bigvgan(facts: Facts) -> list[Tensor]:
    """Qwen2.5-Omni's vocoder: BigVGAN, each convolution behind a learned periodic function."""
    tower = Tower("token2wav.code2wav_bigvgan_model.", ModuleClass.AUDIO)
    width = facts.integer("upsample_initial_channel")
    tower.linear("conv_pre", width, 7 * facts.integer("mel_dim"))
    kernels = facts.integers("resblock_kernel_sizes", 1) or ()
    kernels = kernels[: len(facts.items("resblock_dilation_sizes") or ())]
    ups = zip(
        facts.integers("upsample_rates", 1) or (),
        facts.integers("upsample_kernel_sizes", 1) or (),
        strict=False,
    )
    for index, (_, kernel) in enumerate(ups):
        out = width // 2
        tower.weight(f"ups.{index}.0.weight", width, out, kernel)
        tower.weight(f"ups.{index}.0.bias", out)
        for size in kernels:
            block = f"resblocks.{index}.{size}."
            tower.linear(block + "convs.*", out, out * size, copies=2 * _UNITS)
            tower.weight(block + "activations.*", 2, out, copies=2 * _UNITS)
        width = out
    tower.weight("activation_post", 2, width)
    tower.linear("conv_post", 1, 7 * width, bias=False)
    return tower.tensors


def code2wav(facts: Facts) -> list[Tensor]:
    """Qwen3-Omni's vocoder: a transformer over codes, and convolutions that raise the rate."""
    tower = Tower("code2wav.", ModuleClass.AUDIO)
    # Of the published file, without a place in the class.
    facts.settle("semantic_codebook_size", "num_semantic_quantizers", "codebook_dim")
    layers, hidden, _, heads = _sizes(facts)
    style = Encoder(
        gated=True, mlp_bias=False, norm_bias=False, scales=2,
        qkv_bias=facts.flag("attention_bias"), o_bias=facts.flag("attention_bias"),
    )  # fmt: skip
    style.add(tower, layers, hidden, facts.integer("intermediate_size"), heads)
    tower.norm("pre_transformer.norm", hidden, bias=False)
    codes = facts.integer("codebook_size") * facts.integer("num_quantizers")
    tower.weight("code_embedding.weight", codes, hidden)
    for index, factor in enumerate(facts.integers("upsampling_ratios", 1) or ()):
        path = f"upsample.{index}."
        tower.linear(path + "0.conv", hidden, hidden * factor)
        tower.linear(path + "1.dwconv.conv", hidden, 7)
        tower.norm(path + "1.norm", hidden)
        tower.linear(path + "1.pwconv1", 4 * hidden, hidden)
        tower.linear(path + "1.pwconv2", hidden, 4 * hidden)
        tower.weight(path + "1.gamma", hidden)
    width = facts.integer("decoder_dim")
    tower.linear("decoder.0.conv", width, 7 * hidden)
    for index, rate in enumerate(facts.integers("upsample_rates", 1) or ()):
        path, before = f"decoder.{index + 1}.block.", width
        width = facts.integer("decoder_dim") // 2 ** (index + 1)
        tower.weight(path + "0", 2, before)
        tower.weight(path + "1.conv.weight", before, width, 2 * rate)
        tower.weight(path + "1.conv.bias", width)
        tower.weight(path + "*.act", 2, width, copies=2 * _UNITS)
        tower.linear(path + "*.conv1.conv", width, 7 * width, copies=_UNITS)
        tower.linear(path + "*.conv2.conv", width, width, copies=_UNITS)
    tower.weight("decoder.activation", 2, width)
    tower.linear("decoder.last.conv", 1, 7 * width)
    return tower.tensors
