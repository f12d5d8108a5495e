"""Ollama on published logs: what it started llama-server with, and what that allocated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.architecture.model import GgufTensor, Model
from engine.architecture.read import read
from engine.architecture.spec import ArchitectureSpec
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.runtimes.llama_cpp import shape_of
from engine.runtimes.ollama import Ollama, launch
from engine.source.raw import RawModel
from engine.units import GIB, MIB
from tests.helpers.published import model as published

_PRINTED_BYTES = 0.0051 * MIB
"""The log has two decimals of a MiB."""


def _slot(kind: DeviceKind, gib: float, vendor: Vendor, sm_count: int = 0) -> Slot:
    size = round(gib * GIB)
    capacity = exactly(size, Basis.SETTING, "as the log says")
    device = Device("device", vendor, kind, "", size, capacity, sm_count=sm_count)
    return Slot(device, exactly(0, Basis.SETTING, "nothing else"))


def _host(gib: float, *, is_here: bool = False) -> Machine:
    host = _slot(DeviceKind.HOST, gib, Vendor.CPU)
    return Machine("host", (host,), host, is_here=is_here, platform="linux")


def _cards(*gib: float, vendor: Vendor = Vendor.NVIDIA, ram: float = 64) -> Machine:
    cards = tuple(_slot(DeviceKind.DISCRETE, size, vendor, 66) for size in gib)
    return Machine("cards", cards, _slot(DeviceKind.HOST, ram, Vendor.CPU), False, "linux")


def _mac(working_set: float, ram: float) -> Machine:
    gpu = _slot(DeviceKind.UNIFIED, working_set, Vendor.APPLE)
    return Machine("mac", (gpu,), _slot(DeviceKind.HOST, ram, Vendor.CPU), False, "macos")


def _read(config: dict[str, object]) -> Model:
    return read(RawModel("model", "test", config=config))


def _gguf(metadata: dict[str, object], tensors: list[tuple[str, str, tuple[int, ...]]]) -> Model:
    sizes = {"F32": 4, "F16": 2}
    entries: list[GgufTensor] = []
    for name, kind, shape in tensors:
        elements = 1
        for width in shape:
            elements *= width
        entries.append(GgufTensor(name, kind, shape, elements * sizes[kind]))
    bare = ArchitectureSpec(
        model_type="", layers=(), outer=(), mtp=(), hidden_size=0, vocab_size=0,
        max_position_embeddings=None, dtype="float16", tie_word_embeddings=False, weight_format="",
    )  # fmt: skip
    return Model("model", None, "header", bare, None, tuple(entries), metadata)


def _plan(model: Model, machine: Machine, **settings: Any) -> Budget:
    return Ollama().plan(model, Deployment(runtime="ollama", **settings), machine)


MINISTRAL_3B: dict[str, object] = {
    "model_type": "mistral",
    "vocab_size": 131072,
    "hidden_size": 3072,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "sliding_window": None,
    "max_position_embeddings": 262144,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
OPEN_LLAMA_3B: dict[str, object] = {
    "model_type": "llama",
    "vocab_size": 32000,
    "hidden_size": 3200,
    "intermediate_size": 8640,
    "num_hidden_layers": 26,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
}


def _bge_m3() -> Model:
    """XLM-R large for embeddings: 389 tensors, 244 of them F32, as its log counts them."""
    wide, narrow = 4096, 1024
    tensors: list[tuple[str, str, tuple[int, ...]]] = [
        ("token_embd.weight", "F16", (narrow, 250002)),
        ("position_embd.weight", "F32", (narrow, 8192)),
        ("token_types.weight", "F32", (narrow, 1)),
        ("token_embd_norm.weight", "F32", (narrow,)),
        ("token_embd_norm.bias", "F32", (narrow,)),
    ]
    for layer in range(24):
        shapes = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (narrow, narrow))
        shapes |= {"ffn_up": (narrow, wide), "ffn_down": (wide, narrow)}
        for name, shape in shapes.items():
            tensors.append((f"blk.{layer}.{name}.weight", "F16", shape))
            tensors.append((f"blk.{layer}.{name}.bias", "F32", shape[1:]))
        for name in ("attn_output_norm", "layer_output_norm"):
            tensors.append((f"blk.{layer}.{name}.weight", "F32", (narrow,)))
            tensors.append((f"blk.{layer}.{name}.bias", "F32", (narrow,)))
    assert len(tensors) == 389
    return _gguf(
        {
            "general.architecture": "bert",
            "bert.block_count": 24,
            "bert.context_length": 8192,
            "bert.embedding_length": narrow,
            "bert.feed_forward_length": wide,
            "bert.attention.head_count": 16,
            "bert.vocab_size": 250002,
        },
        tensors,
    )


def _whole_heads(layers: int, heads: int) -> Model:
    """A DeepSeek file made before llama.cpp kept the latent vector: keys and values per head."""
    return _gguf(
        {
            "general.architecture": "deepseek2",
            "deepseek2.block_count": layers,
            "deepseek2.context_length": 163840,
            "deepseek2.embedding_length": 2048,
            "deepseek2.attention.head_count": heads,
            "deepseek2.attention.head_count_kv": heads,
            "deepseek2.attention.key_length": 192,
            "deepseek2.attention.value_length": 128,
            "deepseek2.attention.kv_lora_rank": 512,
            "deepseek2.rope.dimension_count": 64,
            "deepseek2.vocab_size": 102400,
        },
        [
            ("token_embd.weight", "F16", (2048, 102400)),
            ("output.weight", "F16", (2048, 102400)),
            *((f"blk.{n}.attn_q.weight", "F16", (2048, heads * 192)) for n in range(layers)),
            *((f"blk.{n}.attn_kv_b.weight", "F16", (512, heads * 256)) for n in range(layers)),
            *((f"blk.{n}.attn_output.weight", "F16", (heads * 128, 2048)) for n in range(layers)),
        ],
    )


@dataclass(frozen=True)
class Launch:
    """One line ``starting llama-server`` of a published log."""

    release: str
    model: Model
    machine: Machine
    flags: dict[str, Any]
    """In the words of the plan: ``-c``, ``-np``, ``-b``, ``--load-mode none``."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


LAUNCHES = {
    # OLLAMA_NUM_PARALLEL 2 on a computer without a usable GPU, 2 September 2026.
    "two slots on the CPU": Launch(
        "0.33.2",
        _read(MINISTRAL_3B),
        _host(6.7),
        {"n_ctx": 8192, "n_parallel": 2, "n_batch": 1024, "n_ubatch": 1024, "mmap": False},
        {"n_parallel": 2},
    ),
    "embeddings beside it": Launch(
        "0.33.2",
        _bge_m3(),
        _host(6.7),
        {"n_ctx": 4096, "n_parallel": 1, "n_batch": 2048, "n_ubatch": 2048, "mmap": False},
        {"n_parallel": 2},
    ),
    # qwen2.5:7b on an H100: the tier is 262,144, the model was trained on 32,768.
    "cut to the trained length": Launch(
        "0.34.2",
        published("Qwen2.5-7B"),
        _cards(79.1),
        {"n_ctx": 32768, "n_parallel": 1, "n_batch": 1024, "n_ubatch": 1024, "mmap": True},
    ),
    # qwen3:8b with num_ctx 262,144 on a Mac with less memory free than the estimate.
    "a part on a Mac's GPU": Launch(
        "0.31.1",
        published("Qwen3-8B"),
        _mac(11.84, 8),
        {"n_ctx": 40960, "n_parallel": 1, "n_batch": 512, "n_ubatch": 512, "mmap": False},
        {"max_model_len": 262144},
    ),
    # deepseek-coder-v2:16b-lite on a card of 16 GB.
    "a short context": Launch(
        "0.32.13",
        _whole_heads(27, 16),
        _cards(15.47),
        {"n_ctx": 2048, "n_parallel": 1, "n_batch": 512, "n_ubatch": 512, "mmap": True},
        {"max_model_len": 2048},
    ),
}


@pytest.mark.parametrize("case", LAUNCHES)
def test_that_llama_server_is_started_with_the_flags_of_the_log(case: str) -> None:
    launched = LAUNCHES[case]
    settled = _plan(launched.model, launched.machine, **launched.settings).deployment
    assert {name: getattr(settled, name) for name in launched.flags} == launched.flags


@pytest.mark.parametrize(
    ("total_gib", "context"),
    [
        # "vram-based default context" lines of releases 0.19 to 0.34.
        (0, 4096), (4.0, 4096), (8.0, 4096), (11.8, 4096), (11.9, 4096), (17.8, 4096),
        (22.0, 4096), (23.4, 32768), (23.5, 32768), (102.2, 262144),
    ],
)  # fmt: skip
def test_that_the_default_context_is_that_of_the_log(total_gib: float, context: int) -> None:
    machine = _cards(total_gib) if total_gib else _host(32)
    assert launch.default_context(launch.gpus(machine), 0) == context


def test_that_the_estimate_is_the_one_that_the_log_states() -> None:
    # 0.32.13 at 2,048 tokens: predicted 11.5 GiB of a file of 11.0 GiB; our file here is a stub.
    shape = shape_of(_whole_heads(27, 16), "auto")
    cache = launch.predicted_bytes(shape, 2048) - shape.weights.size_bytes
    assert f"{11.04 + cache / GIB:.1f}" == "11.5"
    assert cache == 2 * 27 * 16 * 128 * 2048 * 2


def test_that_two_slots_on_the_cpu_hold_what_was_printed() -> None:
    # Ministral 3 3B Q4_K_M under 0.33.2: CPU 635.54 and repacked 1,404.00 MiB of weights.
    budget = _plan(_read(MINISTRAL_3B), _host(6.7), n_parallel=2)
    buffers = budget.llama_cpp
    assert buffers is not None
    assert buffers.model_buffers["CPU"] == pytest.approx(2039.54 * MIB, abs=2 * _PRINTED_BYTES)
    assert buffers.kv_buffers["CPU"] == 832 * MIB
    assert buffers.output_buffer == MIB
    work = budget.ranks[0].regions[Region.ACTIVATIONS].estimate
    assert work.low_bytes <= (168.03 + 1.0) * MIB <= work.high_bytes


def test_that_an_embedding_model_holds_what_was_printed() -> None:
    # 0.33.2 on the CPU: 1,097 MiB and no cache. An older one on CUDA: 577.22 and 520.30 MiB.
    (rank,) = _plan(_bge_m3(), _host(6.7)).ranks
    assert rank.regions[Region.WEIGHTS].estimate.likely_bytes // MIB == 1097
    assert rank.regions[Region.KV_CACHE].estimate.likely_bytes == 0
    buffers = _plan(_bge_m3(), _cards(24)).llama_cpp
    assert buffers is not None
    assert buffers.model_buffers["CUDA0"] == pytest.approx(577.22 * MIB, abs=_PRINTED_BYTES)
    assert buffers.model_buffers["CPU"] == pytest.approx(520.30 * MIB, abs=_PRINTED_BYTES)


@pytest.mark.parametrize(("context", "mib"), [(2048, 540), (4096, 1080), (8192, 2160)])
def test_that_a_file_without_the_latent_form_keeps_whole_heads(context: int, mib: int) -> None:
    # deepseek-coder-v2:16b-lite under 0.32.13.
    budget = _plan(_whole_heads(27, 16), _cards(15.47), max_model_len=context)
    assert budget.llama_cpp is not None
    assert budget.llama_cpp.kv_buffers == {"CUDA0": mib * MIB}


def test_that_eight_gpus_share_the_caches_of_whole_layers() -> None:
    # DeepSeek 671B of early 2025 on eight Instincts: 5,120 MiB on six, then 4,480 and 3,840.
    # The last GPU holds the output layer as well, so 62 units are spread.
    budget = _plan(
        _whole_heads(61, 128), _cards(*[64] * 8, vendor=Vendor.AMD), n_ctx=8192, n_parallel=1,
        sched_spread=True, tensor_split=(1,) * 8, runtime_version="0.5.11",
    )  # fmt: skip
    assert budget.llama_cpp is not None
    held = list(budget.llama_cpp.kv_buffers.values())
    assert sum(held) == 39_040 * MIB
    assert sorted(held, reverse=True) == [5120 * MIB] * 6 + [4480 * MIB, 3840 * MIB]


def test_that_an_older_release_has_sure_weights_and_caches_and_a_bound_beside_them() -> None:
    # A 3B of 26 layers in Q4_0 under 0.1.30 on a 7900 XTX: 1,832.60, 54.93 and 650.00 MiB.
    budget = _plan(
        _read(OPEN_LLAMA_3B), _cards(23.98, vendor=Vendor.AMD), max_model_len=2048,
        weight_format="Q4_0", runtime_version="0.1.30",
    )  # fmt: skip
    buffers = budget.llama_cpp
    assert buffers is not None
    assert buffers.model_buffers["ROCm0"] == pytest.approx(1832.60 * MIB, abs=_PRINTED_BYTES)
    assert buffers.model_buffers["CPU"] == pytest.approx(54.93 * MIB, abs=_PRINTED_BYTES)
    assert buffers.kv_buffers == {"ROCm0": 650 * MIB}
    work = budget.ranks[0].regions[Region.ACTIVATIONS].estimate
    assert work.basis is Basis.BOUND
    assert budget.ranks[0].regions[Region.KV_CACHE].estimate.basis is Basis.EXACT
    assert judge(budget).fit is Fit.UNKNOWN
