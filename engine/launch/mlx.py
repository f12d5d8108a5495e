"""How mlx-lm is started: its server, or ``mlx_lm.generate`` where only that has a setting.

Source:
    ``mlx_lm/server.py`` and ``mlx_lm/generate.py`` of 0.22.1, 0.26.3, 0.28.4, 0.31.3 and 0.32.2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.launch.dialect import Dialect, Heard, Spoken, harmless, stated
from engine.launch.flags import TEXT, Codec, Flag
from engine.runtimes import foreign
from engine.runtimes.loading import stored_format
from engine.runtimes.mlx import rules
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.launch.dialect import Asked
    from engine.launch.flags import Version

SERVER, GENERATE = ("mlx_lm.server",), ("mlx_lm.generate",)
_QUANTISES, _BATCHES = (0, 32, 2), (0, 31, 3)
_BITS = Codec(lambda value: str(int(value)), float)
_CONVERTED = re.compile(r"mlx-(\d)bit(?:-g(\d+))?")

FLAGS = (
    Flag("model", ("--model",), TEXT),
    Flag("decode_concurrency", ("--decode-concurrency",), since=_BATCHES),
    Flag("prefill_step_size", ("--prefill-step-size",), since=_QUANTISES),
    Flag("step_of_server", ("--prefill-step-size",), since=_BATCHES),
    Flag("kv_bits", ("--kv-bits",), _BITS),
    Flag("kv_group_size", ("--kv-group-size",)),
    Flag("quantized_kv_start", ("--quantized-kv-start",)),
    Flag("max_kv_size", ("--max-kv-size",)),
    Flag("max_tokens", ("--max-tokens",)),
)
_HARMLESS = harmless(
    "--host --port --temp --top-p --top-k --min-p --log-level --prompt -p --chat-template "
    "--seed --system-prompt --allowed-origins",
    "--trust-remote-code --use-default-chat-template",
)
_OF_GENERATE = frozenset({"max_kv_size"})
_OF_THE_CACHE = frozenset({"kv_bits", "kv_group_size", "quantized_kv_start"})


def generates(values: dict[str, Any], version: Version) -> bool:
    """Whether only ``mlx_lm.generate`` of this release takes what is stated."""
    if version < _QUANTISES and not _OF_THE_CACHE.isdisjoint(values):
        return True
    return not _OF_GENERATE.isdisjoint(values)


def speak(asked: Asked) -> Spoken:
    """The plan in mlx-lm's settings."""
    plan = foreign.without(asked.plan, "mlx")
    spoken = Spoken(stated(plan), asked.name)
    name = spoken.values.pop("weight_format", "auto")
    if name not in ("auto", stored_format(asked.model)):
        spoken.model = f"{asked.model.id.rsplit('/', 1)[-1]}-{name}"
        spoken.remarks.append(_conversion(asked, name, spoken.model))
    spoken.values = {"model": spoken.model, **spoken.values}
    length = spoken.values.pop("max_model_len", None)
    if length is not None:
        spoken.remarks.append(
            tr("mlx-lm has no limit of the context: {count} tokens is what is planned for.").format(
                count=grouped(length)
            )
        )
    spoken.drop("prompt_len", "kv_cache_dtype")
    requests = spoken.values.pop("concurrency", None)
    in_server = not generates(spoken.values, asked.version)
    if in_server and "prefill_step_size" in spoken.values and asked.version >= _BATCHES:
        # The server took it earlier than the other program.
        spoken.values["step_of_server"] = spoken.values.pop("prefill_step_size")
    if requests and in_server and "kv_bits" in spoken.values:
        spoken.remarks.append(
            tr(
                "With --kv-bits mlx_lm.server takes one request at a time, {count} are planned for."
            ).format(count=requests)
        )
    elif requests and in_server:
        spoken.values["decode_concurrency"] = requests
    elif requests:
        spoken.remarks.append(
            tr("mlx_lm.generate takes one prompt, {count} are planned for.").format(count=requests)
        )
    if plan.ranks > 1:
        spoken.drop("tensor_parallel_size", "pipeline_parallel_size")
        spoken.remarks.append(
            tr("Over {count} machines it is started by mlx.launch, with a hosts file.").format(
                count=plan.ranks
            )
        )
    return spoken


def _conversion(asked: Asked, name: str, folder: str) -> str:
    start = f"mlx_lm.convert --hf-path {asked.name} --mlx-path {folder}"
    found = _CONVERTED.fullmatch(name)
    if found is None:
        return tr("{folder} stands for your {format} files of {model}.").format(
            folder=folder, format=name, model=asked.model.id
        )
    group = f" --q-group-size {found[2]}" if found[2] else ""
    return tr("First make {folder}: {command}").format(
        folder=folder, command=f"{start} -q --q-bits {found[1]}{group}"
    )


def hear(values: dict[str, Any], _positionals: tuple[str, ...]) -> Heard:
    """A command's settings as a plan."""
    values.pop("max_tokens", None)
    requests = values.pop("decode_concurrency", None)
    if requests:
        values["concurrency"] = requests
    return Heard(values, str(values.pop("model", "")))


DIALECT = Dialect(
    runtime="mlx",
    program=SERVER,
    flags=FLAGS,
    version=rules.parse_version,
    speak=speak,
    hear=hear,
    harmless=_HARMLESS,
)
