"""What a config states and nothing asked for: fields that may change memory, not understood.

Every whole number, list or object that is unread and not known to be harmless is taken to
describe something that was not counted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, Subject
from engine.config.defaults import all_fields
from engine.config.facts import is_mapping
from engine.words import tr, tr_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.config.facts import Facts

_WEIGHTS = re.compile(
    r"^(moe_|n_|num_)?(local_|routed_|shared_)?experts?$"
    r"|^(num|n)_(local|routed|shared)?_?experts$|moe_(intermediate_size|latent_size|layers?)"
    r"|^(q|kv|o)_lora_rank$|^block_configs$|^ffn_mult|^layer_ffn|_per_layer$|^num_(query|kv)_heads$"
    r"|^use_double_wide_mlp$|^hidden_size_per_layer_input$|^altup|^laurel|^hc_mult$|^engram"
)
# Another kind of layer: weights of its own and a state of its own.
_LAYERS = re.compile(
    r"^(ssm|mamba|linear|kda|lightning|gdn)_\w+|_block_type$|^hybrid_|^attn_layer_"
    r"|^cross_attention|^(index|sparse)_(head_dim|n_heads)$|^sparse_attention_config$"
    r"|^linear_attn_config$|^conv_L_cache$|^recurrent|^rwkv"
)
# Layers that run several times, and keep as much each time.
_REPEATS = re.compile(
    r"(^|_)(ut_steps|num_loops|loop_count|n_loops|cycles|num_passes|repeats?|num_repeat|recurrences?)$"
)
# Layers that keep less than full attention does.
_LESS_STATE = re.compile(
    r"^full_attn|^num_kv_shared_layers$|^compress_|^kv_sharing|^yoco|^sliding_window$"
    r"|^attention_chunk_size$|^layer_types$|^sliding_window_pattern$|^swa_|^cla_"
    r"|^global_attn_every|^attention_(types|layers)$"
)
# Fields that change neither weights nor state, whatever they hold.
_HARMLESS = re.compile(
    # tokens, labels, training, generation, storage (read elsewhere)
    r"_token_ids?$|_token_index$|^(model_type|architectures|auto_map|id2label|label2id)$"
    r"|^transformers_version$|^(quantization|compression)_config$|^task_specific_params$"
    r"|^init(_config|ializer\w*)$|_(max|min)_length$"
    r"|^(min|max)_\w*(length|len|tokens|positions?|embeddings|truncation)$"
    r"|^(n_positions|n_ctx|seq_length|seq_len|initial_context_length|pretraining_tp|seed)$"
    r"|^num_(beams|beam_groups|return_sequences|logits_to_keep)$|no_repeat_ngram_size$|_words_ids$"
    r"|^(top_k|prefix|pruned_heads|block_size|chunk_size_feed_forward|keys_to_ignore_at_inference)$"
    r"|^(begin_)?suppress_tokens$|^forced_|^exponential_decay|^original_max_position_embeddings$"
    # positions and rotation
    r"|rope|rotary|theta|^nope_|^qk_head_dim$"
    # routing, selection and scaling: which values, not how many
    r"|^(n_group|topk_group|experts_per_token|attn_type_list|mask_value)$"
    r"|^index_(topk|skip)|^(dim_model_base|scale_emb|mup_\w+|query_pre_attn_scalar)$"
    r"|^time_step_|^num_hash_layers$|chunk_size$|_multipliers$|^mamba_expand$|coef_clip$"
    r"|_sparsity_pattern$|^_|alibi"
    # files for other runtimes, and what a release of the class called by another name
    r"|^transformers\.js_config$|_(start|end|init|newline|pad|bos|eos|sep|mask)_ids?$|^\w+_init_id$"
    r"|^pad_vocab_size_multiple$|^fused_add_norm$|^(qk|route)_norm$|^norm_before_gate$|^rms_norm$"
    r"|^use_embedding_sharing$|^use_parallel_(block|embedding)$|^moe_(capacity|use_aux_free)$"
    r"|^order_of_interleaved_layers$|^layer_switch$|^(classifier|rotary)_"
    r"|^vit_(?!\w*(hidden|layers|width|dim))|^num_media_embeds$"
    r"|^skip_bias_add|_fusion$|_in_fp32$|^num_labels$|^fused_bias_fc$"
    # masks, losses and the sound's own rate
    r"|^mask_(time|feature)_(length|min_masks)$|^guided_attention_loss_|^sampling_rate$"
    r"|_(factor|multiplier|scale|scalar|seed|version)$|_act$|^mtp_(?!num)|^num_sliding_window_layers$"
    r"|^attention_chunk_size$|^linear_(bias|scale)"
    # a width that the type has, and that none of this model's layers uses
    r"|^intermediate_size(_mlp)?$|^num_key_value_heads$"
)
_EXPERTS = re.compile(r"experts?($|_)|(^|_)moe(_|$)", re.IGNORECASE)
_BESIDE = re.compile(r"^mm_|vision|visual|audio|speech|image|img|video|patch|tower|projector")
_SECOND_STACK = re.compile(
    r"^(num_)?encoder_(layers|ffn_dim|attention_heads|config)$|^num_decoder_layers$"
    r"|^(encoder|decoder)$|^(add_)?cross_?attention"
)
# Types that are such by their class's default.
_ENCODER_DECODERS = re.compile(r"^(m|um|long)?t5$|^switch_transformers$|prophetnet$")


_LONGEST = 80
"""Characters of a foreign name that are shown."""


def unread_doubts(text: Facts) -> list[Doubt]:
    """One doubt for each subject that stated but unread fields of a known type put in question."""
    uncounted: list[str] = []
    layers: list[str] = []
    less: list[str] = []
    for key, value in text.stated.items():
        if text.is_asked(key) or says_nothing(value) or _HARMLESS.search(key):
            continue
        if _LAYERS.search(key) or _REPEATS.search(key):
            layers.append(key)
        elif _LESS_STATE.search(key):
            less.append(key)
        elif _WEIGHTS.search(key) or (_may_count(value) and _is_foreign(text, key)):
            uncounted.append(key)
    found: list[Doubt] = []
    if uncounted or layers:
        reason = _not_counted(text, [*uncounted, *layers])
        found.append(Doubt(Subject.WEIGHTS, reason, Direction.LOWER))
    if layers:
        reason = _not_counted(text, layers)
        found.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.LOWER))
    if less:
        reason = tr_count(
            "{named} is not known for {type}: all layers count in full",
            "{named} are not known for {type}: all layers count in full",
            len(less),
        ).format(named=_named(less), type=_type(text))
        found.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.UPPER))
    return found


def expert_doubts(text: Facts) -> list[Doubt]:
    """Doubts of an unknown type that states experts, by whatever name, that nothing counted."""
    keys = [
        key
        for key, value in text.stated.items()
        if not text.is_asked(key) and not says_nothing(value) and _states_experts(key, value)
    ]
    if not keys:
        return []
    reason = tr("{named} of {type} may describe experts that are not counted").format(
        named=_named(keys), type=_type(text)
    )
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


def _states_experts(key: str, value: object) -> bool:
    if is_mapping(value):
        return any(_EXPERTS.search(str(inner)) for inner in value)
    return isinstance(value, int | list) and bool(_EXPERTS.search(key))


def is_telling(key: str) -> bool:
    """Whether a key's name says what it describes: ``unread_doubts`` then says which way."""
    return any(expression.search(key) for expression in (_LAYERS, _REPEATS, _LESS_STATE, _WEIGHTS))


def is_harmless(key: str) -> bool:
    """Whether a key changes neither weights nor state, whatever it holds."""
    return bool(_HARMLESS.search(key))


def second_stack_doubts(root: Facts, text: Facts, *, crosses: bool) -> list[Doubt]:
    """Doubts of an encoder-decoder, whose layers read an encoder's tokens where it ``crosses``.

    What counts an encoder asks whether the model has one; of the others it is not counted.
    """
    if any(facts.is_asked("is_encoder_decoder") for facts in (root, text)):
        reason = tr("what the encoder of {model_type} needs while it runs is not counted").format(
            model_type=root.model_type
        )
        return [Doubt(Subject.ACTIVATIONS, reason, Direction.LOWER)] if crosses else []
    keys = [
        key
        for facts in dict.fromkeys((root, text))
        for key, value in facts.stated.items()
        if value
        and not facts.is_asked(key)
        and (_SECOND_STACK.search(key) or (key == "is_encoder_decoder" and value is True))
    ]
    if not keys and not _ENCODER_DECODERS.search(text.model_type):
        return []
    named = f" ({_named(list(dict.fromkeys(keys)))})" if keys else ""
    reason = tr("{type} has an encoder or cross-attention{named}, which is not counted").format(
        type=_type(text), named=named
    )
    return [
        Doubt(subject, reason, Direction.LOWER)
        for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
    ]


def _may_count(value: object) -> bool:
    """Whether ``value`` could be a number of things, or a description of some."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | list) or is_mapping(value)


def _is_foreign(text: Facts, key: str) -> bool:
    """Whether the field belongs to other classes, and not to what is beside the text model."""
    own = text.defaults
    fields: Iterable[str] = (*own.values, *own.aliases, *own.sub_types, *own.absent)
    return key not in fields and key in all_fields() and not _BESIDE.search(key)


def says_nothing(value: object) -> bool:
    """Whether ``value`` is one that switches nothing on."""
    return value is None or value is False or value in (0, 1, "", []) or value == {}


def _not_counted(text: Facts, keys: list[str]) -> str:
    return tr_count(
        "{named} is not known for {type} and was not counted",
        "{named} are not known for {type} and were not counted",
        len(keys),
    ).format(named=_named(keys), type=_type(text))


def _named(keys: list[str]) -> str:
    return ", ".join(key[:_LONGEST] for key in keys[:3]) + (" …" if len(keys) > 3 else "")


def _type(text: Facts) -> str:
    return text.model_type or tr("this type")
