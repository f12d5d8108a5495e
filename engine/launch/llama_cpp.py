"""How llama-server is started.

Source:
    ``common_params_parse`` and ``--help`` of b5456, b5772, b7710, b8352, b8672, b9538, b10566,
    b11063 and b11549, called in the libraries of those builds; between two of them a new row is
    written from the later one on. ``-fa`` without a value: until #15434 (b6325).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.launch.dialect import Dialect, Heard, Spoken, harmless, stated
from engine.launch.flags import MEBIBYTES, NUMBERS, TEXT, Codec, Flag, choice
from engine.runtimes import foreign
from engine.runtimes.llama_cpp.builds import Build, build_of
from engine.runtimes.llama_cpp.settings import chosen_cells
from engine.runtimes.loading import loaded
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.launch.dialect import Asked
    from engine.launch.flags import Version

_AUTO, _ALL = -1, -2
_LAYER_WORDS = {"auto": _AUTO, "all": _ALL}
_LAYERS = Codec(
    lambda value: {_AUTO: "auto", _ALL: "all"}.get(value, str(value)),
    lambda text: _LAYER_WORDS[text] if text in _LAYER_WORDS else int(text),
)
_COUNTED_LAYERS = Codec(lambda value: str(value) if value >= 0 else None, int)
_SWITCH = choice(
    {"on": "on", "off": "off", "auto": "auto", True: "on", False: "off"},
    {"1": "on", "0": "off", "true": "on", "false": "off", "enabled": "on", "disabled": "off"},
)
_LOADING = choice(
    {False: "none", True: "mmap"},
    {"auto": True, "mlock": True, "mmap+mlock": True, "dio": False},
)
_VALUED_FLASH, _LOADS_BY_MODE = (6325,), (10566,)

FLAGS = (
    Flag("model", ("-m", "--model"), TEXT),
    Flag("repository", ("-hf", "-hfr", "--hf-repo"), TEXT),
    Flag("file", ("-hff", "--hf-file"), TEXT),
    Flag("cells", ("-c", "--ctx-size")),
    Flag("n_parallel", ("-np", "--parallel")),
    Flag("kv_unified", ("-kvu", "--kv-unified"), None, since=(7710,)),
    Flag(
        "kv_unified", ("-no-kvu", "--no-kv-unified"), None, means=False, since=(8352,),
    ),
    Flag("n_gpu_layers", ("-ngl", "--gpu-layers", "--n-gpu-layers"), _LAYERS, since=(7710,)),
    Flag("n_gpu_layers", ("-ngl",), _COUNTED_LAYERS, until=(7710,)),
    Flag("n_cpu_moe", ("-ncmoe", "--n-cpu-moe"), since=(7710,)),
    Flag("split_mode", ("-sm", "--split-mode"), TEXT),
    Flag("tensor_split", ("-ts", "--tensor-split"), NUMBERS),
    Flag("cache_type_k", ("-ctk", "--cache-type-k"), TEXT),
    Flag("cache_type_v", ("-ctv", "--cache-type-v"), TEXT),
    Flag("flash_attn", ("-fa", "--flash-attn"), _SWITCH, since=_VALUED_FLASH),
    Flag("flash_attn", ("-fa",), None, means="on", until=_VALUED_FLASH),
    Flag("swa_full", ("--swa-full",), None, since=(5456,)),
    Flag("n_batch", ("-b", "--batch-size")),
    Flag("n_ubatch", ("-ub", "--ubatch-size")),
    Flag("mmap", ("-lm", "--load-mode"), _LOADING, since=_LOADS_BY_MODE),
    Flag("mmap", ("--no-mmap",), None, means=False, opposite=("--mmap",), until=_LOADS_BY_MODE),
    Flag(
        "repack", ("-nr", "--no-repack"), None, means=False, opposite=("--repack",),
        since=(7710,),
    ),
    Flag(
        "offload_kqv", ("-nkvo", "--no-kv-offload"), None, means=False,
        opposite=("-kvo", "--kv-offload"),
    ),
    Flag(
        "op_offload", ("--no-op-offload",), None, means=False, opposite=("--op-offload",),
        since=(5456,),
    ),
    Flag("cache_ram_bytes", ("-cram", "--cache-ram"), MEBIBYTES, since=(6730,)),
    Flag("language_model_only", ("--no-mmproj",), None, since=(5456,)),
    Flag("spec_type", ("--spec-type",), TEXT, since=(9538,)),
    Flag(
        "speculative_tokens",
        ("--spec-draft-n-max", "--draft-max", "--draft", "--draft-n"), since=(9538,),
    ),
    Flag("draft", ("-md", "--model-draft", "--spec-draft-model"), TEXT),
)  # fmt: skip
_HARMLESS = harmless(
    "--host --port -a --alias -t --threads -tb --threads-batch --temp --top-p --top-k "
    "--min-p --repeat-penalty -s --seed --api-key --chat-template --chat-template-file -n "
    "--predict --n-predict --reasoning-format --reasoning-budget --slot-save-path "
    "--chat-template-kwargs --presence-penalty -to --timeout --threads-http -p --prompt "
    "--cache-reuse",
    "--jinja --no-jinja --metrics --slots --no-slots --no-webui --webui -cb --cont-batching "
    "--no-warmup --offline -v --verbose --props --context-shift --no-context-shift -i -cnv "
    "-no-cnv --log-disable",
)
_DRAFT_TYPE = "draft-mtp"


def version(text: str | None) -> Version:
    """The build as the table's releases.

    Raises:
        DeploymentError: it is no build.
    """
    return (build_of(text).number,)


def speak(asked: Asked) -> Spoken:
    """The plan in llama-server's settings."""
    drafted = asked.plan.speculative_tokens
    plan = foreign.without(asked.plan, "llama.cpp").with_(speculative_tokens=drafted)
    spoken = Spoken(stated(plan))
    where, spoken.model = _source(asked, spoken)
    spoken.values = {where: spoken.model, **spoken.values}
    spoken.drop("concurrency", "max_model_len", "n_ctx", "n_parallel", "kv_unified", "backend")
    spoken.values |= context(plan, asked.version)
    slots, cells = spoken.values.get("n_parallel", 1), spoken.values.get("cells")
    if slots > 1 and cells:
        spoken.remarks.append(
            tr("-c is the context of all {slots} slots together, {count} tokens.").format(
                slots=slots, count=grouped(cells)
            )
        )
    _say_cache(plan, spoken)
    _say_rest(plan, spoken, asked.version)
    return spoken


def context(plan: Deployment, release: Version) -> dict[str, Any]:
    """Context of all slots together, slots, and whether they share one cache."""
    build = Build(release[0])
    stated_build = plan.with_(runtime_version=build.name)
    found: dict[str, Any] = {}
    cells = chosen_cells(stated_build)
    if plan.n_ctx == 0 and plan.max_model_len is None:
        cells = 0
    if cells is not None and (plan.n_ctx is not None or plan.max_model_len is not None):
        found["cells"] = cells
    slots = plan.n_parallel
    apart = plan.kv_unified is False
    if slots is None and (plan.concurrency > build.default_slots or apart):
        # Slots that llama-server chooses by itself share one cache, whatever else is said.
        slots = max(plan.concurrency, build.default_slots)
    if slots is not None:
        found["n_parallel"] = slots
    if plan.kv_unified is True or (apart and build.number >= 8352):
        found["kv_unified"] = plan.kv_unified
    return found


def _source(asked: Asked, spoken: Spoken) -> tuple[str, str]:
    """Setting and value that name the file: the model's own, or one that is still to be made."""
    model, name = asked.model, spoken.values.pop("weight_format", "auto")
    if model.is_gguf and name == "auto":
        if asked.path or model.stored is None or model.revision is None:
            return "model", asked.name
        return "repository", f"{model.id}:{model.stored.format_label}"
    mix = loaded(model, asked.plan.runtime).name if name == "auto" else name
    file = named(model.id, mix)
    spoken.remarks.append(
        tr(
            "{file} stands for your {mix} file of {model}: convert_hf_to_gguf.py and "
            "llama-quantize make one, or take a published one with -hf."
        ).format(file=file, mix=mix, model=model.id)
    )
    return "model", file


def named(model: str, mix: str) -> str:
    """A name for the GGUF file of ``model`` in ``mix``."""
    return f"{model.rsplit('/', 1)[-1].removesuffix('.gguf')}-{mix}.gguf"


def _say_cache(plan: Deployment, spoken: Spoken) -> None:
    """One type for keys and values, unless they differ."""
    both = spoken.values.pop("kv_cache_dtype", None)
    if both is not None:
        word = _CACHE_WORDS.get(both, both)
        spoken.values["cache_type_k"] = plan.cache_type_k or word
        spoken.values["cache_type_v"] = plan.cache_type_v or word


_CACHE_WORDS = {"fp16": "f16", "float16": "f16", "bfloat16": "bf16", "fp32": "f32"}


def _say_rest(plan: Deployment, spoken: Spoken, release: Version) -> None:
    values = spoken.values
    if plan.flash_attn in ("off", False) and release < _VALUED_FLASH:
        spoken.drop("flash_attn")  # Off is what such a build does where nothing is said.
    if plan.flash_attn == "auto" and release >= _VALUED_FLASH:
        spoken.drop("flash_attn")
    if plan.n_gpu_layers == _AUTO and release < (7710,):
        spoken.drop("n_gpu_layers")
    if plan.draft_model is not None:
        values.pop("draft_model")
        values["draft"] = named(plan.draft_model.id, "GGUF")
    elif plan.speculative_tokens:
        values["spec_type"] = _DRAFT_TYPE
    if values.pop("n_outputs_max", None) is not None:
        spoken.remarks.append(
            tr("n_outputs_max {count}: llama-server sets it by its slots, no flag does.").format(
                count=plan.n_outputs_max
            )
        )


def hear(values: dict[str, Any], _positionals: tuple[str, ...]) -> Heard:
    """A command's settings as a plan."""
    model = values.pop("model", "")
    repository, file = values.pop("repository", ""), values.pop("file", "")
    if repository and not model:
        model = f"{repository.partition(':')[0]}:{file}" if file else repository
    draft = values.pop("draft", "")
    values.pop("spec_type", None)
    return Heard(heard_context(values), str(model), str(draft))


def heard_context(values: dict[str, Any]) -> dict[str, Any]:
    """``values`` with context and slots as the plan has them, for each request where that is exact.

    What is left as a total could not be changed by the plan's own context any more.
    """
    cells, slots = values.pop("cells", None), values.get("n_parallel")
    if slots is not None and slots < 1:
        values.pop("n_parallel")
        slots = None
    if slots is not None:
        values["concurrency"] = slots
    shared = slots is None or values.get("kv_unified") is True
    each = 1 if slots is None else slots
    if cells and cells % each == 0 and not (shared and slots):
        values["max_model_len"] = cells // each
    elif cells is not None:
        values["n_ctx"] = cells
    return values


DIALECT = Dialect(
    runtime="llama.cpp",
    program=("llama-server",),
    flags=FLAGS,
    version=version,
    speak=speak,
    hear=hear,
    harmless=_HARMLESS,
)
