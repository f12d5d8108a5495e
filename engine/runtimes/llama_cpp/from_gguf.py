"""The llama.cpp shape of a GGUF file, from its metadata and tensor table.

Rules per architecture are those of ``llama-model.cpp`` (``load_hparams``) at b11434.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from engine.architecture.spec import Direction, Doubt, Subject
from engine.errors import ConfigError
from engine.formats.mix_rules import MixFacts
from engine.formats.mixes import requantised
from engine.runtimes.llama_cpp.shape import Block, CacheKind, Mla, Moe, Shape, Ssm
from engine.runtimes.llama_cpp.weights import FileTensor, split_name, weigh
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.architecture.model import GgufTensor, Model

_WINDOW_PATTERNS = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "cohere2": 4,
    "llama4": 4,
    "gpt-oss": 2,
    "exaone4": 4,
    "olmo2": 4,
}
"""Every n-th layer attends to everything, the others to the window."""
_WINDOW_DEFAULTS = {"llama4": 8192, "gemma2": 4096}
_NO_WINDOW = frozenset({"phi3", "llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe"})
"""llama.cpp ignores ``sliding_window`` there."""
_NO_CACHE = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "neo-bert", "modern-bert"}
    | {"gemma-embedding", "wavtokenizer-dec", "dream", "llada", "llada-moe"}
)
"""Encoders and diffusion models: llama.cpp makes no memory for them."""
_MEASURED = frozenset(
    {"llama", "qwen2", "qwen3", "qwen3moe", "qwen3next", "qwen35", "qwen35moe", "gemma2", "gemma3"}
    | {"gemma3n", "gemma4", "phi3", "gpt-oss", "deepseek2", "granitehybrid", "falcon-h1"}
    | {"nemotron_h", "mamba2", "command-r", "cohere2", "glm4moe", "lfm2", "llama4", "olmo2"}
    | {"smollm3", "minimax-m2"}
)
"""Architectures whose buffers were compared with measured runs."""
_DELTA_NETS = ("qwen3next", "qwen35")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Typed reads of ``<architecture>.<key>``."""

    values: Mapping[str, object]
    architecture: str

    def number(self, key: str, default: int = 0) -> int:
        """A whole number; of a list, its largest entry."""
        return max(self.numbers(key, 1, default), default=default)

    def numbers(self, key: str, count: int, default: int = 0) -> list[int]:
        """One number per layer: a list as it is, a single number repeated.

        Raises:
            ConfigError: the value is no number, or absurd.
        """
        value = self.values.get(f"{self.architecture}.{key}", default)
        if isinstance(value, int | float):
            return [self._whole(key, value)] * count
        if isinstance(value, list | tuple):
            entries = cast("Sequence[object]", value)
            if len(entries) < count:
                raise self._bad(key, tuple(entries))
            return [self._whole(key, entry) for entry in entries]
        raise self._bad(key, value)

    def _whole(self, key: str, value: object) -> int:
        if not isinstance(value, int | float) or not 0 <= value < 2**40 or int(value) != value:
            raise self._bad(key, value)
        return int(value)

    def _bad(self, key: str, value: object) -> ConfigError:
        name = f"{self.architecture}.{key}"
        message = tr("{name} = {value!r:.60} in the GGUF metadata is not a usable number.").format(
            name=name, value=value
        )
        return ConfigError(message, field=name)


def shape_of(model: Model, mix: str = "") -> Shape:
    """The shape of a model that was read from a GGUF file, as it is or quantised to ``mix``.

    Raises:
        ConfigError: the metadata cannot be a model's.
    """
    architecture = str(model.gguf_metadata.get("general.architecture", ""))
    meta = Metadata(model.gguf_metadata, architecture)
    by_name = {t.name: t for t in model.gguf_tensors}
    in_file = meta.number("block_count")
    count = in_file - meta.number("nextn_predict_layers")
    if not 0 < count <= 4096:
        message = tr("{in_file} blocks in the GGUF metadata cannot be a model's.").format(
            in_file=in_file
        )
        raise ConfigError(message, field=f"{architecture}.block_count")
    embd = meta.number("embedding_length")
    heads = meta.numbers("attention.head_count", count)
    head_dim = meta.number("attention.key_length") or (embd // max(heads) if max(heads) else 0)
    ssm = _ssm(meta, by_name)
    mla = _mla(meta)
    blocks, doubts = _blocks(meta, by_name, count, head_dim, ssm)
    embedding = by_name.get("token_embd.weight")
    return Shape(
        architecture=architecture,
        blocks=blocks,
        blocks_in_file=in_file,
        n_embd=embd,
        n_vocab=embedding.shape[1] if embedding and len(embedding.shape) > 1 else 0,
        n_head=max(heads),
        head_dim=head_dim,
        head_dim_swa=meta.number("attention.key_length_swa", head_dim),
        dense_width=_dense_width(meta, by_name),
        is_gated=_is_gated(by_name, meta),
        moe=_moe(meta, model.gguf_tensors),
        mla=mla,
        ssm=ssm,
        window=_window(meta),
        per_layer_embedding=_per_layer_embedding(meta, by_name, count),
        context_length=meta.number("context_length"),
        weights=weigh(_tensors(model, meta, mix), count),
        file_type=mix or (model.stored.format_label if model.stored else ""),
        doubts=(*doubts, *_unmeasured(model, architecture)),
        is_read=not mix,
    )


def _tensors(model: Model, meta: Metadata, mix: str) -> Iterator[FileTensor]:
    types = {t.name: t.ggml_type for t in model.gguf_tensors}
    if mix:
        facts = MixFacts(
            meta.architecture,
            meta.number("block_count"),
            meta.numbers("attention.head_count", 1)[0],
            meta.numbers("attention.head_count_kv", 1)[0],
            meta.number("expert_count"),
        )
        listed = {t.name: (t.ggml_type, t.shape) for t in model.gguf_tensors}
        types = requantised(mix, listed, facts)
    for tensor in model.gguf_tensors:
        yield FileTensor(*split_name(tensor.name), types[tensor.name], tensor.shape)


def _unmeasured(model: Model, architecture: str) -> tuple[Doubt, ...]:
    """What is not understood of an architecture that no run was measured of."""
    if architecture in _MEASURED:
        return ()
    return model.spec.doubts


def _window(meta: Metadata) -> int:
    if meta.architecture in _NO_WINDOW:
        return 0
    return meta.number("attention.sliding_window", _WINDOW_DEFAULTS.get(meta.architecture, 0))


def _slides(meta: Metadata, count: int) -> tuple[list[bool], tuple[Doubt, ...]]:
    """Which layers keep a window only, and why that may be wrong."""
    key = "attention.sliding_window_pattern"
    if not _window(meta):
        return [False] * count, ()
    stated = meta.values.get(f"{meta.architecture}.{key}")
    if isinstance(stated, list | tuple):
        flags = meta.numbers(key, count)
        return [bool(f) for f in flags[:count]], ()
    period = _WINDOW_PATTERNS.get(meta.architecture) or meta.number(key)
    if period:
        return [i % period < period - 1 for i in range(count)], ()
    reason = tr(
        "llama.cpp's window pattern for the architecture {architecture!r} is not known: "
        "every layer is counted with the full context."
    ).format(architecture=meta.architecture)
    doubt = Doubt(Subject.SEQUENCE_STATE, reason, Direction.UPPER)
    return [False] * count, (doubt,)


def _blocks(
    meta: Metadata, by_name: Mapping[str, GgufTensor], count: int, head_dim: int, ssm: Ssm | None
) -> tuple[tuple[Block, ...], tuple[Doubt, ...]]:
    heads = meta.numbers("attention.head_count", count)
    kv_heads = (
        meta.numbers("attention.head_count_kv", count)
        if f"{meta.architecture}.attention.head_count_kv" in meta.values
        else heads
    )
    v_dim = meta.number("attention.value_length", head_dim)
    swa_k = meta.number("attention.key_length_swa", head_dim)
    swa_v = meta.number("attention.value_length_swa", v_dim)
    slides, doubts = _slides(meta, count)
    has_mla = _mla(meta) is not None
    shared_from = count - meta.number("attention.shared_kv_layers")
    if meta.architecture == "gemma3n":
        shared_from = 20
    conv, state = _states(meta, ssm)
    blocks: list[Block] = []
    for i in range(count):
        recurrent = any(f"blk.{i}.{name}" in by_name for name in _RECURRENT_TENSORS)
        states = (conv, state) if recurrent else (0, 0)
        keeps = i < shared_from and kv_heads[i] and meta.architecture not in _NO_CACHE
        if not keeps or not _attends(by_name, i, recurrent=recurrent):
            blocks.append(Block(CacheKind.NONE, 0, 0, *states))
            continue
        kind = CacheKind.SLIDING if slides[i] else CacheKind.FULL
        k, v = (swa_k, swa_v) if slides[i] else (head_dim, v_dim)
        n = kv_heads[i]
        blocks.append(Block(kind, n * k, 0 if has_mla else n * v, *states))
    return tuple(blocks), doubts


_RECURRENT_TENSORS = ("ssm_conv1d.weight", "shortconv.conv.weight", "ssm_in.weight")


def _attends(by_name: Mapping[str, GgufTensor], i: int, *, recurrent: bool) -> bool:
    if recurrent:
        # A delta net also has attn_qkv; only an output projection makes it attention.
        return f"blk.{i}.attn_output.weight" in by_name
    return any(
        f"blk.{i}.{name}.weight" in by_name
        for name in ("attn_output", "attn_k", "attn_qkv", "attn_kv_a_mqa")
    )


def _ssm(meta: Metadata, by_name: Mapping[str, GgufTensor]) -> Ssm | None:
    if meta.number("shortconv.l_cache"):
        return Ssm("shortconv")
    if not meta.number("ssm.inner_size"):
        return None
    delta = meta.architecture.startswith(_DELTA_NETS) or any(".ssm_beta." in n for n in by_name)
    return Ssm(
        "gated_delta_net" if delta else "mamba2",
        meta.number("ssm.inner_size"),
        meta.number("ssm.state_size"),
        meta.number("ssm.group_count"),
        meta.number("ssm.time_step_rank"),
    )


def _states(meta: Metadata, ssm: Ssm | None) -> tuple[int, int]:
    """Elements of convolution and recurrent state (``llama-hparams.cpp`` n_embd_r, n_embd_s)."""
    if ssm is None:
        return 0, 0
    if ssm.kind == "shortconv":
        return meta.number("embedding_length") * (meta.number("shortconv.l_cache") - 1), 0
    conv = max(meta.number("ssm.conv_kernel") - 1, 0) * ssm.conv_width
    return conv, ssm.state * ssm.inner


def _mla(meta: Metadata) -> Mla | None:
    key_length = meta.number("attention.key_length_mla")
    if not key_length:
        return None
    rank = meta.number("attention.kv_lora_rank")
    rope = meta.number("rope.dimension_count")
    has_q_rank = bool(meta.number("attention.q_lora_rank"))
    value = meta.number("attention.value_length_mla")
    return Mla(rank, rope, max(key_length - rope, 0), has_q_rank, value)


def _dense_width(meta: Metadata, by_name: Mapping[str, GgufTensor]) -> int:
    has_dense = any(n.endswith(".ffn_down.weight") for n in by_name)
    return meta.number("feed_forward_length") if has_dense else 0


def _is_gated(by_name: Mapping[str, GgufTensor], meta: Metadata) -> bool:
    if any(n.endswith(".ffn_gate.weight") for n in by_name):
        return True
    width = meta.number("feed_forward_length")
    ups = [t for n, t in by_name.items() if n.endswith(".ffn_up.weight")]
    return bool(ups) and ups[0].shape[1:] == (2 * width,)


def _moe(meta: Metadata, tensors: Sequence[GgufTensor]) -> Moe | None:
    experts = meta.number("expert_count")
    down = next((t for t in tensors if t.name.endswith(".ffn_down_exps.weight")), None)
    if not experts or down is None:
        return None
    return Moe(experts, meta.number("expert_used_count", 1), down.shape[0])


def _per_layer_embedding(meta: Metadata, by_name: Mapping[str, GgufTensor], count: int) -> int:
    stated = meta.number("embedding_length_per_layer_input")
    table = by_name.get("per_layer_token_embd.weight")
    return stated or (table.shape[0] // count if table else 0)
