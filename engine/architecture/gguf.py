"""A GGUF file to the same architecture that a ``config.json`` gives.

Weights come from the tensor table alone, so they are exact for every architecture; the sequence
state comes from the metadata, and is a bound where the architecture's pattern is not known.

Source:
    llama.cpp ``gguf-py/gguf/constants.py`` for keys and tensor names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.architecture import gguf_checks as checks
from engine.architecture.gguf_names import GGUF_MTP, place, role_of
from engine.architecture.model import GgufTensor, Model, StoredWeights
from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    Direction,
    Doubt,
    LayerSpec,
    ModuleClass,
    MoeSpec,
    StateSpec,
    Subject,
    Tensor,
)
from engine.architecture.stored import Packing, collect
from engine.config.facts import Facts
from engine.errors import UnknownArchitectureError
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.architecture.spec import Sharding
    from engine.source.raw import HeaderTensor, RawModel

FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4",
    40: "Q1_0", 41: "Q2_0",
}  # fmt: skip
"""``general.file_type`` -> the mix."""
# Full attention in every layer, and metadata that says all there is to say about the state.
_FULL = frozenset(
    """
    llama qwen2 qwen2moe qwen3 qwen3moe qwen3vl qwen2vl gemma phi2 phi3 phimoe gpt2 gptneox falcon
    bloom mpt starcoder starcoder2 stablelm command-r olmo olmo2 olmoe internlm2 baichuan chatglm
    glm4 glm4moe minicpm granite granitemoe deepseek deepseek2 exaone smollm3 seed_oss ernie4_5
    ernie4_5-moe hunyuan-dense hunyuan-moe orion xverse arcee dots1 nemotron minicpm3 mistral3
    bailingmoe bailingmoe2 minimax-m2 apertus llada codeshell qwen plm grok dbrx refact mamba mamba2
    qwen3next qwen35 qwen35moe granitehybrid falcon-h1 nemotron_h nemotron_h_moe lfm2 lfm2moe jamba
    """.split()  # noqa: SIM905 - a list of words is easier to read as words
)
# Period of the pattern: every n-th layer is full, the others slide.
_PERIODS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4, "exaone4": 4, "olmo3": 4}
_CHUNKED = {"llama4": (4, 8_192)}
_MOST_LAYERS = 4_096

Window = tuple[AttentionKind, int]
"""Kind of attention and the tokens it keeps; 0 for all."""


def gguf_model(raw: RawModel) -> Model:
    """The model in a GGUF file.

    Raises:
        ConfigError: a metadata value is of the wrong type or absurd.
        HeaderError: the tensor table lacks blocks that the metadata states.
        UnknownArchitectureError: the metadata has no dimensions.
    """
    architecture = raw.gguf_metadata.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        message = tr(
            "{id} does not name its architecture; its GGUF metadata is incomplete."
        ).format(id=raw.id)
        raise UnknownArchitectureError(message, field="general.architecture")
    facts = _facts(raw.gguf_metadata, architecture)
    blocks = facts.integer("block_count")
    if blocks > _MOST_LAYERS:
        raise facts.bad(
            "block_count",
            blocks,
            tr("at most {most_layers} blocks are possible").format(most_layers=_MOST_LAYERS),
        )
    checks.check_ranges(facts)
    count = max(blocks - facts.count("nextn_predict_layers"), 1)
    checks.require_blocks(raw, count)
    spec = _spec(raw, facts, architecture, count)
    tensors = tuple(GgufTensor(t.name, t.dtype, t.shape, t.size_bytes) for t in raw.tensors)
    stored = _stored(raw, count, spec.weight_format)
    return Model(raw.id, raw.revision, raw.source, spec, stored, tensors, dict(raw.gguf_metadata))


def _facts(metadata: Mapping[str, object], architecture: str) -> Facts:
    prefix = architecture + "."
    stated = {k.removeprefix(prefix): v for k, v in metadata.items() if k.startswith(prefix)}
    return Facts(stated, architecture, None, architecture)


def _label(raw: RawModel) -> str:
    """The mix by the file's own word, else the type most bytes have."""
    number = raw.gguf_metadata.get("general.file_type")
    if isinstance(number, int) and number in FILE_TYPES:
        return FILE_TYPES[number]
    sizes: dict[str, int] = {}
    for tensor in raw.tensors:
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.size_bytes
    return max(sizes, key=sizes.__getitem__, default="mixed")


def _stored(raw: RawModel, layers: int, label: str) -> StoredWeights | None:
    if not raw.tensors:
        return None
    placed = ((place(t, layers), t, role_of(t.name)) for t in raw.tensors)
    groups = collect(placed, Packing())
    return StoredWeights(groups, label, raw.tensors_source or tr("tensor table"), raw.file_bytes)


def _spec(raw: RawModel, facts: Facts, architecture: str, count: int) -> ArchitectureSpec:
    by_layer: list[list[Tensor]] = [[] for _ in range(count)]
    outer: list[Tensor] = []
    mtp: list[Tensor] = []
    for tensor in raw.tensors:
        layer, module, sharding, _dtype = place(tensor, count)
        found = _tensor(tensor, module, sharding)
        if found is None:
            continue
        if module is GGUF_MTP:
            mtp.append(found)
        elif layer is None or layer >= count:
            outer.append(found)
        else:
            by_layer[layer].append(found)
    hidden = facts.integer("embedding_length")
    doubts: list[Doubt] = []
    layers = _layers(facts, architecture, by_layer, doubts)
    names = {tensor.name for tensor in outer}
    label = _label(raw)
    if checks.has_two_stacks(raw):
        reason = tr(
            "{architecture} has an encoder: what its cross-attention keeps is not counted"
        ).format(architecture=architecture)
        doubts.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.LOWER))
    return ArchitectureSpec(
        model_type=architecture,
        layers=layers,
        outer=tuple(outer),
        mtp=tuple(mtp),
        hidden_size=hidden,
        vocab_size=_vocabulary(raw, facts),
        max_position_embeddings=facts.optional("context_length"),
        dtype="bfloat16" if label == "BF16" else "float16",
        tie_word_embeddings="lm_head.weight" not in names,
        weight_format=label,
        doubts=tuple(doubts),
        origins=dict(facts.origins),
    )


def _tensor(tensor: HeaderTensor, module: ModuleClass, sharding: Sharding) -> Tensor | None:
    role = role_of(tensor.name)
    if role.holds == "other":
        return None
    shape = tuple(reversed(tensor.shape))
    copies = 1
    if module is ModuleClass.EXPERTS and len(shape) > 1:
        copies, shape = shape[0], shape[1:]
    is_linear = tensor.name.endswith(".weight") and len(shape) == 2 and module not in (
        ModuleClass.EMBEDDING, ModuleClass.NORM,
    )  # fmt: skip
    return Tensor(role.role, module, shape, copies, sharding, linear=is_linear)


def _vocabulary(raw: RawModel, facts: Facts) -> int:
    for tensor in raw.tensors:
        if tensor.name == "token_embd.weight" and len(tensor.shape) > 1:
            return tensor.shape[1]
    return facts.count("vocab_size")


def _per_layer(facts: Facts, key: str, count: int, default: int) -> Sequence[int]:
    """A value per layer: metadata gives one for all, or a list."""
    if isinstance(facts.raw(key), list | tuple):
        values = facts.integers(key) or ()
        if len(values) < count:
            raise facts.bad(
                key,
                values,
                tr("one entry for each of the {count} blocks is needed").format(count=count),
            )
        return values[:count]
    return (facts.count(key) or default,) * count


def _layers(
    facts: Facts, architecture: str, by_layer: list[list[Tensor]], doubts: list[Doubt]
) -> tuple[LayerSpec, ...]:
    count = len(by_layer)
    heads = _per_layer(facts, "attention.head_count", count, 0)
    kv_heads = _per_layer(facts, "attention.head_count_kv", count, 0)
    if "attention.head_count_kv" not in facts.stated:
        kv_heads = heads
    windows = _windows(facts, architecture, by_layer, doubts)
    shared_from = count - min(facts.count("attention.shared_kv_layers"), count)
    experts = facts.count("expert_count")
    made: dict[object, LayerSpec] = {}
    found: list[LayerSpec] = []
    for index, tensors in enumerate(by_layer):
        names = {t.name for t in tensors}
        attention = None
        # Without a tensor table every block is taken to attend.
        attends = not tensors or any(_ATTENDS.search(name) for name in names)
        if any(_KEEPS.search(name) for name in names):
            checks.require_heads(facts)
        if attends and kv_heads[index]:
            attention = _attention(
                facts, heads[index], kv_heads[index], windows[index], kept=index < shared_from
            )
        state = _state(facts, names)
        moe = _moe(facts, tensors) if experts else None
        width = max((t.shape[0] for t in tensors if "mlp.up_proj" in t.name), default=0)
        key = (tuple(tensors), attention, state)
        layer = made.get(key)
        if layer is None:
            gated = any("gate_proj" in name or "gate_up" in name for name in names) or bool(moe)
            layer = LayerSpec(tuple(tensors), attention, state, moe, width, gated)
            made[key] = layer
        found.append(layer)
    bare = sum(layer.attention is None and layer.state is None for layer in found)
    if bare and not _is_known(architecture):
        reason = tr(
            "not modelled: what {bare} of the {count} layers of {architecture} keep is not counted"
        ).format(bare=bare, count=count, architecture=architecture)
        if bare == count:
            doubts.clear()  # no attention is assumed where none was found
        doubts.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.LOWER))
    if any(layer.state for layer in found):
        reason = tr("its recurrent layers keep a state that is read from the metadata as a bound")
        doubts.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.UPPER))
    return tuple(found)


_KEEPS = re.compile(r"attn\.(qkv_proj|k_proj|v_proj|kv_b_proj)\b")
_ATTENDS = re.compile(r"attn\.(q_proj|qkv_proj|k_proj|q_b_proj|kv_b_proj|o_proj)")


def _attention(
    facts: Facts, heads: int, kv_heads: int, window: Window, *, kept: bool
) -> AttentionSpec:
    if not heads or heads % kv_heads:
        wanted = tr("a divisor of attention.head_count ({heads}) is needed").format(heads=heads)
        raise facts.bad("attention.head_count_kv", kv_heads, wanted)
    default = max(facts.integer("embedding_length") // heads, 1)
    width = facts.integer("attention.key_length", default)
    v_width = facts.integer("attention.value_length", width)
    rank = facts.count("attention.kv_lora_rank")
    if rank:
        rope = facts.integer("rope.dimension_count")
        whole = facts.integer("attention.key_length_mla", width)
        v_mla = facts.integer("attention.value_length_mla", v_width)
        if whole <= rope:
            raise facts.bad(
                "attention.key_length_mla",
                whole,
                tr("more than {rope} is needed").format(rope=rope),
            )
        return AttentionSpec(
            AttentionKind.LATENT, heads, heads, whole, v_mla,
            q_lora_rank=facts.count("attention.q_lora_rank"), kv_lora_rank=rank,
            qk_nope_head_dim=whole - rope, qk_rope_head_dim=rope, keeps_cache=kept,
        )  # fmt: skip
    kind, tokens = window
    if kind is AttentionKind.SLIDING:
        width = facts.integer("attention.key_length_swa", width)
        v_width = facts.integer("attention.value_length_swa", v_width)
    return AttentionSpec(kind, heads, kv_heads, width, v_width, tokens, keeps_cache=kept)


def _windows(
    facts: Facts, architecture: str, by_layer: list[list[Tensor]], doubts: list[Doubt]
) -> list[Window]:
    count = len(by_layer)
    names = {tensor.name for tensors in by_layer for tensor in tensors}
    full: Window = (AttentionKind.FULL, 0)
    if architecture in _CHUNKED:
        period, chunk = _CHUNKED[architecture]
        chunk = facts.integer("attention.sliding_window", chunk)
        chunked: Window = (AttentionKind.CHUNKED, chunk)
        return [chunked if (i + 1) % period else full for i in range(count)]
    window = facts.count("attention.sliding_window")
    if architecture == "gemma2" and not window:
        window = 4_096
    key = "attention.sliding_window_pattern"
    stated = facts.raw(key)
    sliding: Window = (AttentionKind.SLIDING, window)
    if window and isinstance(stated, list | tuple):
        flags = (facts.items(key) or ())[:count]
        if len(flags) == count:
            return [sliding if flag else full for flag in flags]
    period = stated if isinstance(stated, int) and stated > 0 else _PERIODS.get(architecture, 0)
    if window and period:
        return [sliding if (i + 1) % period else full for i in range(count)]
    if not _is_known(architecture):
        reason = tr(
            "the GGUF architecture {architecture} is not known: full attention is assumed"
        ).format(architecture=architecture)
        doubts.append(Doubt(Subject.SEQUENCE_STATE, reason, checks.direction_by_names(names)))
    return [full] * count


def _is_known(architecture: str) -> bool:
    return architecture in _FULL or architecture in _PERIODS or architecture in _CHUNKED


def _state(facts: Facts, names: Iterable[str]) -> StateSpec | None:
    kernel = facts.count("ssm.conv_kernel")
    if kernel and any("ssm_" in name for name in names):
        inner, states = facts.integer("ssm.inner_size"), facts.integer("ssm.state_size")
        groups = facts.count("ssm.group_count")
        heads = facts.count("ssm.time_step_rank")
        return StateSpec("mamba", inner + 2 * groups * states, kernel, inner * states, heads)
    if any("shortconv" in name for name in names):
        kernel = facts.integer("shortconv.l_cache")
        return StateSpec("short_conv", facts.integer("embedding_length"), kernel, 0, 0)
    return None


def _moe(facts: Facts, tensors: list[Tensor]) -> MoeSpec | None:
    experts = [t for t in tensors if t.module is ModuleClass.EXPERTS and "down" in t.name]
    if not experts:
        return None
    shared = [t for t in tensors if t.module is ModuleClass.SHARED_EXPERTS and "down" in t.name]
    active = facts.integer("expert_used_count", 1)
    width = experts[0].shape[-1]
    if active > experts[0].copies:
        wanted = tr("there are only {copies} experts").format(copies=experts[0].copies)
        raise facts.bad("expert_used_count", active, wanted)
    return MoeSpec(experts[0].copies, active, width, shared[0].shape[-1] if shared else 0)
