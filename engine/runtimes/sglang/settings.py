"""A deployment with SGLang's defaults filled in, and what was assumed on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import attention_kinds
from engine.budget.weights import AS_STORED
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.weights import FORMATS
from engine.runtimes import foreign
from engine.runtimes.checks import check_numbers, check_positions, check_splits, working_sizes
from engine.runtimes.sglang import fraction, rules
from engine.runtimes.sglang.drafting import check_draft
from engine.runtimes.sglang.graphs import prefill_steps
from engine.runtimes.sglang.kernels import attention_backend, page_tokens, share_factor
from engine.runtimes.sglang.kv_dtypes import kv_dtype
from engine.runtimes.sglang.parallel import Parallel, parallel
from engine.runtimes.sglang.vision import has_tower, tower
from engine.units import MIB
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.runtimes.sglang.rules import Version

_NO_CONTEXT_STATED = 2048
_WHOLE_PROMPTS = -1
_NO_DRAFT = tr_later(
    "speculative_tokens: the config states no prediction layers; the "
    "memory of a draft model is not counted."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The deployment with every default in, and what the arithmetic needs of it."""

    deployment: Deployment
    version: Version
    version_is_stated: bool
    parallel: Parallel
    context: int
    chunk: int
    """``chunked_prefill_size``; -1 where prompts are read whole."""
    decode_max_bs: int
    """Largest batch with a graph; 0 where there are none."""
    prefill_buckets: int
    """Prefill steps with graphs; 0 where there are none."""
    fraction: float
    page: int
    backend: str
    """Kernels that read the cache: ``fa3``, ``flashinfer``, ``trtllm``, ``triton``, ``aiter``."""
    kv_dtype: str
    dtype: str
    """Of activations."""
    element_bytes: int
    vendor: Vendor
    """Of the devices."""
    shares_host: bool
    """Whether SGLang reads the host's memory as the device's own."""
    radix: bool
    """Whether caches of finished requests are kept."""
    vision_mib: int
    """Kept out of the pool for images."""
    drafts: int
    """Tokens that one step verifies; 0 without speculation."""
    drafts_itself: bool
    """Whether the model's own prediction blocks draft, if it has any."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


def settle(model: Model, deployment: Deployment, machine: Machine) -> Settings:
    """Check the deployment and fill its gaps as SGLang would.

    Raises:
        DeploymentError: the deployment is impossible; names the field to correct.
    """
    spec = model.spec
    check_numbers(deployment)
    version = rules.parse_version(deployment.runtime_version)
    assumed: list[str] = []
    if _splits_attention(spec, version):
        dp = deployment.tensor_parallel_size
        deployment = deployment.with_(enable_dp_attention=True, data_parallel_size=dp)
        assumed.append(
            tr("SGLang {runtime_version} splits this attention by data.").format(
                runtime_version=deployment.runtime_version
            )
        )
    split = parallel(deployment, machine)
    # Attention that is split by data is cut into fewer parts than the rest.
    check_splits(spec, deployment.with_(tensor_parallel_size=split.attention_tp))
    check_positions(spec, deployment)
    _check_format(model, deployment)
    check_draft(deployment, split.attention_tp)
    assumed += split.assumptions
    warned = foreign.warnings(deployment, "sglang") + _unused_devices(spec, deployment, machine)
    drafts_itself = _drafts_itself(spec, deployment, warned)
    _name_version(deployment, version, assumed, warned)
    context = _context(spec, deployment, assumed)
    device = machine.slots[0].device
    device_mib = min(slot.device.total_bytes for slot in machine.slots) / MIB
    chunk, batch = _steps(deployment, version, device_mib, assumed)
    dtype = _activation_dtype(spec, deployment)
    backend = attention_backend(spec, device, version, split.attention_tp)
    buckets = 0
    is_cuda = device.vendor is Vendor.NVIDIA
    if is_cuda and not deployment.enforce_eager:
        buckets = prefill_steps(spec, deployment, version, split, chunk, backend)
    load = fraction.Load(
        version=version,
        device_mib=device_mib,
        tensor_parallel_size=deployment.tensor_parallel_size,
        pipeline_parallel_size=deployment.pipeline_parallel_size,
        data_parallel_attention=split.attention_dp,
        chunked_prefill_size=chunk,
        # Before 0.5.15 the reserve counts graphs that are turned off.
        decode_max_bs=batch if not deployment.enforce_eager or version < (0, 5, 15) else 0,
        prefill_buckets=buckets,
        is_latent=is_latent(spec),
        drafts=deployment.speculative_tokens > 0,
        is_cuda=is_cuda,
        is_intel=device.vendor is Vendor.INTEL,
    )
    share = _share(model, deployment, load, assumed)
    reduced = share_factor(backend, context, version)
    if reduced < 1:
        assumed.append(
            tr("mem_fraction_static × {reduced}, which AITER’s long contexts take.").format(
                reduced=reduced
            )
        )
        share *= reduced
    found = kv_dtype(model, deployment.kv_cache_dtype, dtype, version, device, assumed)
    radix = deployment.enable_prefix_caching is not False
    # SGLang sets this after the sizes of its graphs and its share.
    deployment = _with_requests(spec, deployment, assumed)
    requests = deployment.max_running_requests or batch * split.attention_dp
    captured = min(batch, max(requests // split.attention_dp, 1))
    return Settings(
        deployment=deployment.with_(
            runtime_version=deployment.runtime_version or rules.NEWEST,
            max_model_len=context,
            mem_fraction_static=share,
            chunked_prefill_size=chunk,
            enable_dp_attention=split.attention_dp > 1,
            enable_prefix_caching=radix,
            cuda_graph_max_bs=batch,
        ),
        version=version,
        version_is_stated=deployment.runtime_version is not None,
        parallel=split,
        context=context,
        chunk=chunk,
        decode_max_bs=0 if deployment.enforce_eager else captured,
        prefill_buckets=buckets,
        fraction=share,
        page=deployment.page_size or page_tokens(spec, backend, device, version),
        backend=backend,
        kv_dtype=found,
        dtype=dtype,
        element_bytes=element_bytes(dtype),
        vendor=device.vendor,
        shares_host=is_cuda and device.kind is DeviceKind.UNIFIED and version >= rules.HOST_READ,
        radix=radix,
        vision_mib=rules.VISION_CACHE_MIB.at(version) if has_tower(spec) else 0,
        drafts=deployment.speculative_tokens + 1 if deployment.speculative_tokens else 0,
        drafts_itself=drafts_itself,
        assumptions=tuple(assumed),
        warnings=tuple(warned),
    )


def is_latent(spec: ArchitectureSpec) -> bool:
    """Whether its full layers keep latent vectors (MLA)."""
    return any(a.kind is AttentionKind.LATENT for a in attention_kinds(spec))


def _has_index(spec: ArchitectureSpec) -> bool:
    return is_latent(spec) and any(a.index_head_dim for a in attention_kinds(spec))


def _splits_attention(spec: ArchitectureSpec, version: Version) -> bool:
    first, stop = rules.INDEX_SPLITS_ATTENTION
    return first <= version < stop and _has_index(spec)


def _unused_devices(spec: ArchitectureSpec, deployment: Deployment, machine: Machine) -> list[str]:
    there = len(machine.slots)
    if there < 2 or deployment.ranks * deployment.data_parallel_size > 1:
        return []
    most = max((n for n in working_sizes(spec, there)), default=1)
    return (
        [
            tr("1 of {there} devices is used; --tp {most} spreads the model.").format(
                there=there, most=most
            )
        ]
        if most > 1
        else []
    )


def _name_version(
    deployment: Deployment, version: Version, assumed: list[str], warned: list[str]
) -> None:
    if deployment.runtime_version is None:
        assumed.append(
            tr("SGLang {newest}, the newest version whose rules are known.").format(
                newest=rules.NEWEST
            )
        )
    elif version > rules.parse_version(rules.NEWEST):
        text = tr("SGLang {runtime_version} is newer than {newest}").format(
            runtime_version=deployment.runtime_version, newest=rules.NEWEST
        )
        warned.append(tr("{text}, whose rules are used.").format(text=text))


def _with_requests(
    spec: ArchitectureSpec, deployment: Deployment, assumed: list[str]
) -> Deployment:
    """With the requests at once that SGLang sets for some models, and beside drafts."""
    has_entries = any(a.compression for a in attention_kinds(spec))
    if deployment.max_running_requests is not None:
        return deployment
    if not has_entries and not deployment.speculative_tokens:
        return deployment
    most = rules.ENTRY_REQUESTS if has_entries else rules.DRAFTED_REQUESTS
    why = tr("for this model") if has_entries else tr("beside drafts")
    assumed.append(
        tr("max_running_requests {most}, SGLang's default {why}.").format(most=most, why=why)
    )
    return deployment.with_(max_running_requests=most)


def _drafts_itself(spec: ArchitectureSpec, deployment: Deployment, warned: list[str]) -> bool:
    found = deployment.speculative_tokens > 0 and deployment.draft_model is None
    if found and not (spec.mtp or spec.uncounted_mtp):
        warned.append(tr(_NO_DRAFT))
    return found


def _check_format(model: Model, deployment: Deployment) -> None:
    name = deployment.weight_format
    if model.is_gguf and name == AS_STORED:
        message = tr(
            "How SGLang lays out the weights of a GGUF file is not known here; take llama.cpp, or "
            "another weight format."
        )
        raise DeploymentError(message, field="runtime")
    if name != AS_STORED and (name not in FORMATS or name.startswith("mlx")):
        choices = ", ".join(n for n in FORMATS if not n.startswith("mlx"))
        message = tr("SGLang doesn't load weights as {name}; it loads {choices}.").format(
            name=name, choices=choices
        )
        raise DeploymentError(message, field="weight_format")


def _context(spec: ArchitectureSpec, deployment: Deployment, assumed: list[str]) -> int:
    most, asked = spec.max_position_embeddings, deployment.max_model_len
    if asked is None:
        context = most or _NO_CONTEXT_STATED
        origin = tr("the length in the model's config") if most else tr("the config states none")
        assumed.append(
            tr("max_model_len {context}, SGLang's default: {origin}.").format(
                context=grouped(context), origin=origin
            )
        )
        return context
    return asked


def _steps(
    deployment: Deployment, version: Version, device_mib: float, assumed: list[str]
) -> tuple[int, int]:
    asked = deployment.max_running_requests
    default = fraction.default_step(version, device_mib, deployment.tensor_parallel_size, asked)
    chunk, batch = deployment.chunked_prefill_size, deployment.cuda_graph_max_bs
    if chunk is None:
        chunk = default.chunked_prefill_size
        assumed.append(
            tr("chunked_prefill_size {chunk}, SGLang's default for this device.").format(
                chunk=grouped(chunk)
            )
        )
    if batch is None:
        batch = default.decode_max_bs
        if not deployment.enforce_eager:
            assumed.append(
                tr("cuda_graph_max_bs {batch}, SGLang's default for this device.").format(
                    batch=grouped(batch)
                )
            )
    return chunk if chunk > 0 else _WHOLE_PROMPTS, batch


def _share(model: Model, deployment: Deployment, load: fraction.Load, assumed: list[str]) -> float:
    share = deployment.mem_fraction_static
    if _has_index(model.spec):
        share = rules.INDEX_SHARE.at(load.version) or share
    if share is not None:
        return share
    share = fraction.fraction(load)
    if share <= 0:
        message = tr(
            "chunked_prefill_size {chunked_prefill_size} leaves no "
            "memory of this device for weights and pool; take a smaller "
            "one, or give mem_fraction_static."
        ).format(chunked_prefill_size=grouped(load.chunked_prefill_size))
        raise DeploymentError(message, field="chunked_prefill_size")
    why = tr("SGLang's default for this device, step and number of ranks")
    if has_tower(model.spec):
        share *= fraction.of_multimodal(load.version, tower(model))
        why += tr(", less for images")
    if deployment.kv_pool_bytes is None:
        assumed.append(
            tr("mem_fraction_static {share}, {why}.").format(
                share=figures(format(share, ".3g")), why=why
            )
        )
    return share


def _activation_dtype(spec: ArchitectureSpec, deployment: Deployment) -> str:
    chosen = FORMATS.get(deployment.weight_format)
    if chosen is not None and chosen.dtype:
        return chosen.dtype
    stated = canonical(spec.dtype) or "bfloat16"
    return "bfloat16" if element_bytes(stated) != 2 else stated
