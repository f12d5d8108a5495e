"""Sizings made of plain numbers in GiB, so that a picture or a report can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

from engine.architecture.model import Model
from engine.architecture.spec import ArchitectureSpec, Direction, Doubt, ModuleClass, Subject
from engine.budget.model import Budget, RankBudget, Region, RegionBudget, SequenceState
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, Estimate, exactly
from engine.fit.verdict import Fit, Verdict
from engine.sizing import Sizing
from engine.units import GIB

RTX_4090_TOTAL = 25_757_220_864
"""23.99 GiB."""


def gib(size: float) -> int:
    """Bytes in ``size`` GiB."""
    return round(size * GIB)


def estimate(
    likely: float, low: float | None = None, high: float | None = None, basis: Basis = Basis.EXACT
) -> Estimate:
    """An estimate from GiB."""
    lower = likely if low is None else low
    upper = likely if high is None else high
    return Estimate(gib(lower), gib(likely), gib(upper), basis, "hand-made for a test")


def card(
    name: str = "RTX 4090",
    total_bytes: int = RTX_4090_TOTAL,
    allocatable: float = 23.64,
    kind: DeviceKind = DeviceKind.DISCRETE,
    vendor: Vendor = Vendor.NVIDIA,
) -> Device:
    """A device with a load line at ``allocatable`` GiB."""
    return Device(
        name=name,
        vendor=vendor,
        kind=kind,
        label="24 GB",
        total_bytes=total_bytes,
        allocatable=exactly(gib(allocatable), Basis.MEASURED, "a test's card"),
        source="a test's card",
    )


# likely, low, high in GiB; basis; least in GiB; how
VLLM_8B: dict[Region, tuple[Estimate, float | None, str]] = {
    Region.WEIGHTS: (
        exactly(gib(14.99), Basis.READ, "the file headers"),
        14.96,
        "Tensor sizes in the file header, plus buffers",
    ),
    Region.KV_CACHE: (estimate(5.32, 4.12, 5.89), 4.00, "Rest of 0.92 × 23.64"),
    Region.RECURRENT_STATE: (exactly(0, Basis.EXACT, "config"), None, "This model keeps none"),
    Region.ACTIVATIONS: (
        estimate(0.60, 0.45, 0.75, Basis.FITTED),
        0.05,
        "2,048 tokens a step, 256 sampled rows",
    ),
    Region.CUDA_GRAPHS: (
        estimate(0.70, 0.28, 1.75, Basis.FITTED),
        0,
        "51 capture sizes, fitted to 38 logs",
    ),
    Region.RUNTIME: (
        estimate(0.50, 0.38, 0.63, Basis.FITTED),
        0.36,
        "CUDA context 0.36, workspaces 0.14",
    ),
    Region.ALLOCATOR: (
        estimate(0.31, 0.00, 0.78, Basis.FITTED),
        0,
        "2 % of weights and activations",
    ),
    Region.HEADROOM: (estimate(0.81, basis=Basis.SETTING), 0, "1 − 0.92, less the above"),
    Region.FOREIGN: (
        estimate(0.41, basis=Basis.MEASURED),
        0.41,
        "Xorg, gnome-shell, Firefox",
    ),
}


def rank_budget(
    number: int = 0,
    regions: dict[Region, tuple[Estimate, float | None, str]] | None = None,
    device: Device | None = None,
    needed: float = 4.0,
    *,
    has_pool: bool = True,
    uuid: str = "GPU-0",
) -> RankBudget:
    """One rank's budget."""
    filled = VLLM_8B if regions is None else regions
    return RankBudget(
        rank=number,
        slot=Slot(device or card(), filled[Region.FOREIGN][0], uuid),
        regions={
            region: RegionBudget(region, size, None if least is None else gib(least), note)
            for region, (size, least, note) in filled.items()
        },
        needed=estimate(needed),
        has_pool=has_pool,
    )


def model(parameters: int = 8_030_261_248, name: str = "meta-llama/Llama-3.1-8B-Instruct") -> Model:
    """A model with nothing but a size and a name."""
    spec = ArchitectureSpec(
        model_type="llama",
        layers=(),
        outer=(),
        mtp=(),
        hidden_size=4096,
        vocab_size=128256,
        max_position_embeddings=131072,
        dtype="bfloat16",
        tie_word_embeddings=False,
        weight_format="bf16",
        stated_parameters={ModuleClass.OTHER: parameters},
    )
    return Model(name, "0e9e39f249a16976918f6564b8830bc894c89659", "bundled catalogue", spec)


def sizing(
    *ranks: RankBudget,
    verdict: Verdict | None = None,
    deployment: Deployment | None = None,
    is_here: bool = True,
    bytes_per_token: int = 131_072,
) -> Sizing:
    """A sizing around ``ranks``; the verdict of the worked example unless given."""
    made = ranks or (rank_budget(),)
    host = Slot(card("RAM", gib(64), 62.7, DeviceKind.HOST, Vendor.CPU), estimate(4.0))
    machine = Machine("this computer", tuple(r.slot for r in made), host, is_here)
    plan = deployment or Deployment(
        runtime="vllm",
        runtime_version="0.33.0",
        weight_format="bf16",
        kv_cache_dtype="bf16",
        max_model_len=8192,
        concurrency=4,
        gpu_memory_utilization=0.92,
    )
    budget = Budget(
        model=model(),
        deployment=plan,
        machine=machine,
        ranks=made,
        sequence_state=SequenceState(
            architecture_bytes_per_sequence=gib(1),
            reserved_bytes_per_sequence=gib(1),
            bytes_per_token=bytes_per_token,
            pool_bytes=made[0].regions[Region.KV_CACHE].estimate.likely_bytes,
            num_blocks=2723,
            block_size=16,
            bytes_per_block=2_097_152,
            pool_tokens=43568,
            max_concurrency=5.32,
            formula="2 × 32 layers × 8 heads × 128 × 2 B = 131,072",
        ),
        assumptions=("KV cache dtype: the model's own, bf16.",),
    )
    fits = Verdict(
        fit=Fit.FITS,
        margin_bytes=gib(1.32),
        worst_margin_bytes=gib(0.12),
        binding_rank=0,
        binding_region=Region.KV_CACHE,
        headline="Fits, with 1.3 GiB to spare",
        detail="vLLM reserves 5.3 GiB of KV cache; 4 × 8,192 tokens need 4.0 GiB.",
    )
    return Sizing(budget, verdict or fits)


def over_the_line() -> Sizing:
    """The worked example with 2 × 32,768 tokens: 8.00 GiB needed of a pool of 5.32."""
    verdict = Verdict(
        fit=Fit.DOES_NOT_FIT,
        margin_bytes=-gib(2.68),
        worst_margin_bytes=-gib(3.88),
        binding_rank=0,
        binding_region=Region.KV_CACHE,
        headline="Doesn’t fit: 2.7 GiB over, because of the KV cache",
        detail="2 × 32,768 tokens need 8.0 GiB of KV cache; vLLM has 5.3 GiB left. "
        "It starts, but the second request waits.",
    )
    plan = Deployment(runtime="vllm", runtime_version="0.33.0", max_model_len=32768, concurrency=2)
    return sizing(rank_budget(needed=8.0), verdict=verdict, deployment=plan)


def unified() -> Sizing:
    """llama.cpp on an M4 Pro 48 GB: no pool, thin regions far below the load line."""
    device = card("M4 Pro 48 GB", gib(48), 37.44, DeviceKind.UNIFIED, Vendor.APPLE)
    regions = dict(VLLM_8B)
    zero = exactly(0, Basis.EXACT, "rule")
    regions |= {
        Region.WEIGHTS: (estimate(11.27), 11.27, "GGUF tensor table, all layers on the GPU"),
        Region.KV_CACHE: (
            estimate(0.77),
            0.77,
            "4 × 8,192 tokens in 12 layers, a 128 window in 12",
        ),
        Region.ACTIVATIONS: (estimate(0.41, 0.36, 0.44), 0.18, "Compute buffer for 512 tokens"),
        Region.CUDA_GRAPHS: (zero, None, "Metal has none"),
        Region.RUNTIME: (estimate(0.20, 0.14, 0.30), 0.10, "Metal device and pipelines"),
        Region.ALLOCATOR: (zero, None, "llama.cpp allocates once"),
        Region.HEADROOM: (zero, 0, "Nothing set aside"),
        Region.FOREIGN: (estimate(1.20, basis=Basis.MEASURED), 1.20, "Window server and apps"),
    }
    rank = rank_budget(regions=regions, device=device, needed=0.77, has_pool=False)
    verdict = replace(
        sizing().verdict, margin_bytes=gib(23.59), headline="Fits, with 23.6 GiB to spare"
    )
    plan = Deployment(runtime="llama.cpp", max_model_len=8192, concurrency=4)
    return sizing(rank, verdict=verdict, deployment=plan)


def many_ranks(count: int = 4, *names: str) -> Sizing:
    """A model over ``count`` cards as large as an L40S, of ``names`` in turn; rank 0 is fullest."""
    ranks: list[RankBudget] = []
    for number in range(count):
        first = number == 0
        regions = dict(VLLM_8B)
        regions |= {
            Region.WEIGHTS: (estimate(16.92), 16.90, "Even: 64 heads divide by 4"),
            Region.KV_CACHE: (estimate(21.31), 20.00, "2 of 8 KV heads each"),
            Region.ACTIVATIONS: (estimate(0.86 if first else 0.74), 0.11, "Rank 0 gathers"),
            Region.CUDA_GRAPHS: (estimate(0.82), 0, ""),
            Region.RUNTIME: (estimate(1.50), 0.45, "CUDA context 0.45, NCCL 0.75"),
            Region.ALLOCATOR: (estimate(0.35), 0, ""),
            Region.HEADROOM: (estimate(2.18 if first else 2.86), 0, "What the others leave"),
            Region.FOREIGN: (estimate(0.58 if first else 0.02), 0.58, "Xorg and a browser"),
        }
        name = names[number % len(names)] if names else "L40S"
        device = card(name, gib(44.99), 44.52)
        ranks.append(rank_budget(number, regions, device, needed=20.0, uuid=f"GPU-{number}"))
    plan = Deployment(
        runtime="vllm", max_model_len=32768, concurrency=8, tensor_parallel_size=count
    )
    return sizing(*ranks, deployment=plan)


def beside_host() -> Sizing:
    """A card, and a little of the host's RAM beside it, as llama.cpp plans."""
    host = card("host RAM", gib(64), 60.0, DeviceKind.HOST, Vendor.CPU)
    zero = exactly(0, Basis.EXACT, "rule")
    regions: dict[Region, tuple[Estimate, float | None, str]] = dict.fromkeys(
        Region, (zero, None, "")
    )
    regions[Region.RUNTIME] = (estimate(0.63), None, "")
    beside = rank_budget(1, regions, host, needed=0, has_pool=False, uuid="host")
    return sizing(rank_budget(), beside)


def weights_over_the_line() -> Sizing:
    """Weights alone are twice what the card has."""
    regions = dict(VLLM_8B)
    regions[Region.WEIGHTS] = (estimate(52.0), 52.0, "Tensor sizes in the file header")
    regions[Region.KV_CACHE] = (estimate(0), 4.0, "Nothing is left")
    verdict = replace(sizing().verdict, fit=Fit.DOES_NOT_FIT, margin_bytes=-gib(31.0))
    return sizing(rank_budget(regions=regions), verdict=verdict)


def unknown_cache() -> Sizing:
    """Only the weights are known: a lower bound."""
    regions = dict(VLLM_8B)
    regions[Region.KV_CACHE] = (estimate(0, basis=Basis.BOUND), None, "not understood")
    made = sizing(rank_budget(regions=regions, needed=0, has_pool=False))
    return doubted(made, Subject.SEQUENCE_STATE, Direction.LOWER)


def doubted(made: Sizing, subject: Subject, direction: Direction) -> Sizing:
    """``made`` with a doubt about one of its figures."""
    doubt = Doubt(subject, "A part is not understood.", direction)
    return replace(made, budget=replace(made.budget, doubts=(doubt,)))
