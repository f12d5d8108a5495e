"""Latent attention with a sparse indexer, in the forms that came after GLM-5.

Source:
    transformers 5.24.0, ``axk2``, ``dots3_note``, ``glm5_next``, ``hy_v4`` and ``mistral_large4``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import patterns
from engine.architecture.families.base import (
    FULL,
    LINEAR,
    RENAMED,
    SLIDING,
    SPARSE,
    Family,
    Mixed,
    Moe,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.dense import AB
from engine.architecture.families.kimi_linear import delta_attention
from engine.architecture.families.latent import Latent, latent_of
from engine.architecture.families.selecting import (
    INDEXED,
    INDEXED_MOE,
    SHARED_INDEX,
    indexed,
    indexer,
    shares_index,
)
from engine.architecture.families.sparse import DEEPSEEK_MOE
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.config.facts import Facts, is_mapping
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import MixerRule

_A, _OTHER = ModuleClass.ATTENTION, ModuleClass.OTHER
_WHOLE, _COLUMN = Sharding.REPLICATED, Sharding.COLUMN
_PATH = "self_attn."


def _axk2_attention(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """The query and the gate of the output come from one matrix."""
    latent = latent_of(facts, bias=facts.says(AB))
    rows = latent.heads * (latent.width + latent.v_width)
    tensors = [
        *latent.query_latent(_PATH),
        *matrix(_PATH + "q_gate_proj", _A, (rows, 2 * latent.q_rank), _COLUMN),
        *latent.latent(_PATH),
        *latent.unfold(_PATH),
        *indexer(facts, latent.q_rank),
    ]
    return Mixed(tensors, replace(latent.spec(), index_head_dim=facts.integer("index_head_dim")))


def _axk2_norms(facts: Facts, _family: Family, _mixer: str, fed: str) -> list[Tensor]:
    """Each norm is gated by a small MLP, but not the one before a dense MLP."""
    hidden, rank = facts.integer("hidden_size"), facts.integer("gated_norm_rank")
    found: list[Tensor] = []
    for name, is_gated in (("input_layernorm", True), ("post_attention_layernorm", fed == SPARSE)):
        found += norm(f"{name}.norm", hidden)
        if is_gated:
            found += matrix(f"{name}.mlp.fc1", ModuleClass.NORM, (rank, hidden), _WHOLE)
            found += matrix(f"{name}.mlp.fc2", ModuleClass.NORM, (hidden, rank), _WHOLE)
    return found


def _all_indexed(facts: Facts, layers: int) -> tuple[str, ...]:
    facts.settle("layer_types")
    return (INDEXED,) * layers


AXK2 = Family(
    pattern=_all_indexed, reads_layer_types=False, mixers={INDEXED: _axk2_attention}, norms=(),
    feed_pattern=patterns.dense_then(1), layer_extra=_axk2_norms, moe=DEEPSEEK_MOE,
)  # fmt: skip


def _connections(facts: Facts, rows: int, scales: int) -> list[Tensor]:
    """Hyper-connections around both blocks: the mixing weights of the residual streams."""
    wide = facts.integer("hc_mult") * facts.integer("hidden_size")
    return [
        tensor
        for name, module in (("attn_hc", _A), ("ffn_hc", ModuleClass.MLP))
        for tensor in (
            Tensor(f"{name}.fn", module, (rows, wide)),
            Tensor(f"{name}.base", module, (rows,)),
            Tensor(f"{name}.scale", module, (scales,)),
        )
    ]


def _hy_v4_extra(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    heads = facts.integer("num_attention_heads")
    shape = (heads * facts.integer("v_head_dim"), facts.integer("hidden_size"))
    return [
        vector(_PATH + "sinks", _A, heads, _COLUMN),
        *matrix(_PATH + "gate_proj", _A, shape, _COLUMN),
        *_connections(facts, 2 * facts.integer("hc_mult"), 2),
    ]


def _hy_v4_outer(facts: Facts, _family: Family) -> list[Tensor]:
    streams = facts.integer("hc_mult")
    return [
        Tensor("hc_head.hc_fn", _OTHER, (streams, streams * facts.integer("hidden_size"))),
        Tensor("hc_head.hc_base", _OTHER, (streams,)),
        Tensor("hc_head.hc_scale", _OTHER, (1,)),
    ]


def _hy_v4_types(_facts: Facts, layers: int) -> tuple[str, ...]:
    return tuple("full" if i == 0 or i % 4 == 1 else "shared" for i in range(layers))


def _hy_v4_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    facts.settle("layer_types")
    shared = shares_index(facts, layers, _hy_v4_types)
    mixers = [SHARED_INDEX if shares else INDEXED for shares in shared]
    return tuple(zip(mixers, patterns.dense_then(1)(facts, layers), strict=True))


HY_V4 = Family(
    kinds=_hy_v4_kinds, mixers={INDEXED: indexed, SHARED_INDEX: indexed}, q_bias=AB,
    layer_extra=_hy_v4_extra, positions=_hy_v4_outer, moe=DEEPSEEK_MOE,
)  # fmt: skip


def _large4_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Three choices a layer: rotated or not, its own keys or another layer's, its own index or not.

    A layer that neither keeps keys nor rests its index keeps the index's keys alone.
    """
    layers = facts.integer("num_hidden_layers")
    facts.settle("layer_types")
    roped = facts.integers("no_rope_layers")
    if roped is None:
        step = facts.integer("no_rope_layer_interval", 4)
        roped = tuple(int((i + 1) % step != 0) for i in range(layers))
    sources = facts.integers("kv_source_layers")
    sources = tuple(range(layers)) if sources is None else sources
    for key, entries in (("no_rope_layers", roped), ("kv_source_layers", sources)):
        if len(entries) != layers:
            raise facts.bad(
                key,
                entries,
                tr("one entry for each of the {layers} layers is needed").format(layers=layers),
            )
    shared = shares_index(facts, layers)
    mixers = [
        _large4_kind(rotates=bool(roped[i]), keeps=sources[i] == i, selects=not shared[i])
        for i in range(layers)
    ]
    feeds = patterns.dense_first("first_k_dense_replace")(facts, layers)
    return tuple(zip(mixers, feeds, strict=True))


def _large4_kind(*, rotates: bool, keeps: bool, selects: bool) -> str:
    words = (("rotates", rotates), ("keeps", keeps), ("selects", selects))
    return " ".join(word for word, holds in words if holds)


def _large4_attention(facts: Facts, _family: Family, kind: str) -> Mixed:
    """No low-rank query; what is not rotated is as wide as what is, and learned scales a head."""
    latent = replace(latent_of(facts, bias=facts.says(AB)), q_rank=0)
    if "rotates" not in kind:
        latent = replace(latent, nope=latent.width, rope=0)
    tensors = [*latent.query(_PATH), *latent.unfold(_PATH), *_scales(_PATH, latent.heads)]
    keeps = latent.spec()
    if "keeps" in kind:
        tensors += latent.latent(_PATH)
    elif "selects" in kind:
        keeps = replace(keeps, kv_lora_rank=0, qk_rope_head_dim=0)
    else:
        keeps = replace(keeps, keeps_cache=False)
    if "selects" in kind:
        path = _PATH + "indexer."
        tensors += indexer(facts, latent.hidden)
        tensors += norm(path + "q_input_norm", latent.hidden, bias=True)
        tensors += _scales(path, facts.integer("index_n_heads"))
        keeps = replace(keeps, index_head_dim=facts.integer("index_head_dim"))
    return Mixed(tensors, keeps)


def _scales(path: str, heads: int) -> list[Tensor]:
    return [vector(f"{path}softmax_scaling.{name}", _A, heads, _COLUMN) for name in _SCALES]


_SCALES = ("scale", "bias")


def _large4_outer(facts: Facts, _family: Family) -> list[Tensor]:
    """One learned factor for each frequency of the rotation."""
    frequencies = -(-facts.integer("qk_rope_head_dim", low=0) // 2)
    return [Tensor("rotary_emb.alpha", _OTHER, (frequencies,))]


MISTRAL_LARGE4 = Family(
    kinds=_large4_kinds, attention=_large4_attention, positions=_large4_outer, moe=INDEXED_MOE,
)  # fmt: skip

_SWA = {
    "num_attention_heads": 64, "q_lora_rank": 1024, "kv_lora_rank": 1024, "head_dim": 256,
    "qk_nope_head_dim": 192, "v_head_dim": 128,
}  # fmt: skip
"""What the class gives sliding layers where no ``swa_`` key says otherwise."""


def _dots3_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """Two layers and then each fourth read everything, which ``use_dsa`` turns into an index."""
    slides = facts.flag("use_sliding_window", default=True)
    stated = facts.words("layer_types") or tuple(
        SLIDING if slides and i > 1 and i % 4 != 1 else INDEXED for i in range(layers)
    )
    kinds = tuple(RENAMED.get(kind, kind) for kind in stated)
    if len(kinds) != layers or not set(kinds) <= {FULL, INDEXED, SLIDING}:
        wanted = tr(
            "full, indexed or sliding attention for each of the {layers} layers is needed"
        ).format(layers=layers)
        raise facts.bad("layer_types", kinds, wanted)
    if not facts.has("use_dsa") and facts.has("per_layer_config"):
        return kinds
    whole = INDEXED if facts.flag("use_dsa", default=True) else FULL
    return tuple(kind if kind == SLIDING else whole for kind in kinds)


def _dots3_sliding(facts: Facts, bias: bool) -> Latent:  # noqa: FBT001 - passed on
    """Sizes of the sliding layers: ``swa_`` keys, or, as the class writes them out, a layer's own.

    Written out, only what differs from the other layers is stated.
    """
    layers = facts.raw("per_layer_config")
    if layers is None:
        own = {key: facts.integer("swa_" + key, default) for key, default in _SWA.items()}
        rope = facts.integer("swa_qk_rope_head_dim", own["head_dim"] - own["qk_nope_head_dim"], 0)
    else:
        entries = list(layers.values()) if is_mapping(layers) else []
        first = entries[0] if entries and is_mapping(entries[0]) else {}
        written = Facts({**facts.stated, **first}, facts.model_type, facts.defaults, facts.path)
        own = {key: written.integer(key) for key in _SWA}
        rope = written.integer("qk_rope_head_dim", low=0)
    facts.settle("swa_num_key_value_heads")
    return Latent(
        hidden=facts.integer("hidden_size"),
        heads=own["num_attention_heads"],
        q_rank=own["q_lora_rank"],
        kv_rank=own["kv_lora_rank"],
        nope=own["qk_nope_head_dim"],
        rope=rope,
        v_width=own["v_head_dim"],
        bias=bias,
    )


def _dots3_attention(facts: Facts, _family: Family, kind: str) -> Mixed:
    """Latent attention with a norm of the rotated key and one gate a head."""
    bias = facts.says(AB)
    latent = _dots3_sliding(facts, bias) if kind == SLIDING else latent_of(facts, bias=bias)
    tensors = [
        *latent.tensors(_PATH),
        *norm(_PATH + "k_rope_only_layernorm", latent.rope),
        *matrix(_PATH + "g_proj", _A, (latent.heads, latent.hidden), _COLUMN),
    ]
    if kind == INDEXED:
        width = facts.integer("index_head_dim")
        keeps = replace(latent.spec(), index_head_dim=width, index_dtype="float32")
        return Mixed([*tensors, *indexer(facts, latent.q_rank)], keeps)
    window = facts.integer("sliding_window", facts.integer("sliding_window_size", 512))
    return Mixed(tensors, latent.spec(window if kind == SLIDING else 0))


def _dots3_shared(facts: Facts) -> int:
    """Shared experts have a width of their own."""
    own = facts.count("shared_experts_intermediate_size")
    own = facts.integer("moe_shared_expert_intermediate_size", own, 0)
    return facts.integer("n_shared_experts") * own


DOTS3_NOTE = Family(
    pattern=_dots3_pattern, reads_layer_types=False, attention=_dots3_attention,
    mixers=dict.fromkeys((FULL, INDEXED, SLIDING), _dots3_attention),
    feed_pattern=patterns.dense_then(1),
    moe=Moe(experts="n_routed_experts", shared="mlp.shared_experts", shared_width=_dots3_shared),
)  # fmt: skip


def _glm5_delta(facts: Facts, family: Family, _kind: str) -> Mixed:
    inner = facts.sub("linear_attn_config") or Facts({})
    facts.settle("linear_lower_bound")
    return delta_attention(
        facts,
        family,
        inner.integer("num_heads", facts.integer("linear_num_heads")),
        inner.integer("head_dim", facts.integer("linear_head_dim")),
        inner.integer("short_conv_kernel_size", facts.integer("linear_conv_kernel_dim")),
        low_rank="fg",
    )


def _glm5_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    """The indexer selects pools of tokens: beside its key it keeps a gate and a mark of each."""
    mixed = indexed(facts, family, kind)
    if kind == SHARED_INDEX or mixed.attention is None:
        return mixed
    width = facts.integer("index_head_dim")
    path = _PATH + "indexer.index_kpool_compress_"
    tensors = [
        *mixed.tensors,
        Tensor(path + "ape", _A, (facts.integer("index_kpool"), width)),
        Tensor(path + "gate", _A, (width, facts.integer("hidden_size"))),
    ]
    return Mixed(tensors, replace(mixed.attention, index_head_dim=2 * width + 1))


def _glm5_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Each fourth layer attends; whether it has an indexer of its own is a list beside."""
    layers = facts.integer("num_hidden_layers")
    kinds = facts.words("layer_types")
    if kinds is None:
        kinds = tuple(LINEAR if i % 4 != 3 else INDEXED for i in range(layers))
    kinds = tuple(RENAMED.get(kind, kind) for kind in kinds)
    if len(kinds) != layers or not set(kinds) <= {LINEAR, FULL, INDEXED}:
        wanted = tr("linear or indexed attention for each of the {layers} layers is needed").format(
            layers=layers
        )
        raise facts.bad("layer_types", kinds, wanted)
    shared = shares_index(facts, layers)
    attends = [SHARED_INDEX if shares else INDEXED for shares in shared]
    mixers = [LINEAR if kind == LINEAR else attends[i] for i, kind in enumerate(kinds)]
    return tuple(zip(mixers, patterns.dense_then(3)(facts, layers), strict=True))


def _glm5_extra(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    streams = facts.integer("hc_mult")
    return _connections(facts, (2 + streams) * streams, 3)


_GLM5_MIXERS: dict[str, MixerRule] = {
    LINEAR: _glm5_delta, INDEXED: _glm5_attention, SHARED_INDEX: _glm5_attention,
}  # fmt: skip
GLM5_NEXT = Family(
    kinds=_glm5_kinds, mixers=_GLM5_MIXERS, q_bias=AB, layer_extra=_glm5_extra, moe=DEEPSEEK_MOE,
)  # fmt: skip

FAMILIES = {
    "axk2": AXK2, "dots3_note_text": DOTS3_NOTE, "glm5_next_text": GLM5_NEXT, "hy_v4": HY_V4,
    "hy_v4_vl_text": HY_V4, "mistral_large4_text": MISTRAL_LARGE4,
}  # fmt: skip
