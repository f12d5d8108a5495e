"""From a pasted command to the plan it starts, and what of it was not understood."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from engine.deployment.spec import Deployment
from engine.errors import DeploymentError, PlimsollError, UsageError
from engine.launch import dialects, manifests, modelfile, ollama, python_lines, unwrap
from engine.launch.flags import Parsed, Stray, parse
from engine.redaction import MASK, asks_for_secret, without_secrets
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from engine.launch.dialect import Dialect, Heard
    from engine.launch.modelfile import Modelfile
    from engine.launch.unwrap import Bare

_IMAGES = (
    ("vllm", "vllm/vllm-openai"),
    ("vllm", "rocm/vllm"),
    ("sglang", "lmsysorg/sglang"),
    ("llama.cpp", "ggml-org/llama.cpp"),
    ("llama.cpp", "ggerganov/llama.cpp"),
    ("ollama", "ollama/ollama"),
)
_MODULES = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "sglang.launch_server": "sglang",
    "mlx_lm.server": "mlx",
    "mlx_lm.generate": "mlx",
    "mlx_lm": "mlx",
}
_PROGRAMS = {
    "llama-server": "llama.cpp",
    "llama-cli": "llama.cpp",
    "llama-bench": "",
    "mlx_lm.server": "mlx",
    "mlx_lm.generate": "mlx",
    "mlx_lm.chat": "mlx",
}
_TWO_WORDS = {
    ("vllm", "serve"): "vllm",
    ("sglang", "serve"): "sglang",
    ("mlx_lm", "server"): "mlx",
    ("mlx_lm", "generate"): "mlx",
    ("ollama", "serve"): "ollama",
    ("ollama", "run"): "ollama",
    ("ollama", "create"): "",
}
_TAG = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:\.post\d+)?)")
_BUILD = re.compile(r"b(\d{3,7})\b")
MOST_CHARACTERS = 20_000
"""A longer text is no command."""
_USER = re.compile(r"(?<=://)[^/@\s]{1,300}@")
_STARTS = (
    "vllm ", "llama-server", "llama-cli", "sglang ", "mlx_lm", "ollama serve", "docker run",
    "podman run", "python -m ", "python3 -m ", "CUDA_VISIBLE_DEVICES=", "FROM ", "ray start",
)  # fmt: skip

_ALONGSIDE = frozenset({
    "cd", "source", "mkdir", "pip", "pip3", "docker", "podman", "ollama", "hf", "huggingface-cli",
    "ray",
})  # fmt: skip
"""What one runs before a start command, in one go with it."""


@dataclass(frozen=True, slots=True)
class Understood:
    """What a command says."""

    runtime: str
    model: str
    """Name or path of the model, as it stood; empty where the command names none."""
    draft: str
    """The model that drafts tokens; empty for none."""
    deployment: Deployment
    devices: int | None
    """How many devices it is given, where it says so."""
    strays: tuple[str, ...]
    """What was not understood, as it stood."""
    harmless: tuple[str, ...]
    """Flags that change no memory."""
    notes: tuple[str, ...] = ()
    """What was understood and can't be planned, a sentence each."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person has to know of the command, one sentence each."""
        told = tr("The command’s {word} isn’t understood, and counts for nothing here.")
        return (*(told.format(word=word) for word in self.strays), *self.notes)

    @property
    def stated(self) -> dict[str, Any]:
        """Settings that the command gives, as a request has them."""
        default = Deployment()
        names = (n for n in Deployment.__slots__ if n not in ("runtime", "draft_model"))
        found = {n: getattr(self.deployment, n) for n in names}
        return {"runtime": self.runtime} | {
            n: v for n, v in found.items() if v != getattr(default, n)
        }


def looks_like_one(text: str) -> bool:
    """Whether ``text`` is meant as a command: it starts as one that can be read."""
    start = text[:MOST_CHARACTERS]
    is_command = unwrap.without_prompts(start).lstrip().startswith(_STARTS)
    return is_command or manifests.looks_like_one(start)


def is_one(text: str) -> bool:
    """Whether ``text`` is a command and nothing else, over however many lines.

    A log may begin with the command that was run; lines that are none follow it there.
    """
    if len(text) > MOST_CHARACTERS:
        return False
    if modelfile.heard(text) is not None:
        return True
    try:
        listed = manifests.commands(text)
        if listed is not None:
            return any(_runtime(bare) for bare in listed)
        found = [bare for bare in unwrap.commands(text) if bare.words]
    except UsageError:
        return False
    alongside = [unwrap.name(bare.words[0]) in _ALONGSIDE for bare in found]
    starts = [bool(_runtime(bare)) for bare in found]
    return any(starts) and all(map(any, zip(starts, alongside, strict=True)))


def read(text: str) -> Understood:
    """The plan of the first command in ``text`` that starts a model.

    Raises:
        UsageError: nothing in it starts a model, or a value in it is none.
        DeploymentError: the release it names is none.
    """
    if len(text) > MOST_CHARACTERS:
        raise UsageError(tr("This is too long to be a command."), field="command")
    python = python_lines.heard(text)
    if python is not None:
        return _made("transformers", python, (), Parsed({}, (), (), ()), None, None)
    file = modelfile.heard(text)
    if file is not None:
        return _of_file(file)
    listed = manifests.commands(text)
    found = unwrap.commands(text) if listed is None else listed
    has_cluster = any(bare.words[:2] == ["ray", "start"] for bare in found)
    for at, bare in enumerate(found):
        runtime = _runtime(bare)
        if runtime:
            understood = _read(runtime, bare, found)
            told: list[str] = []
            if has_cluster:
                told.append(tr("ray start only joins the nodes, and counts for nothing here."))
            if any(_is_other(understood, rest) for rest in found[at + 1 :]):
                told.append(tr("It starts other models too, which count for nothing here."))
            return replace(understood, notes=(*understood.notes, *told))
    message = tr(
        "Nothing here starts a model: paste a command such as vllm serve, llama-server or docker "
        "run, or a file for Compose, Kubernetes or Ray Serve."
    )
    raise UsageError(message, field="command")


def _is_other(first: Understood, bare: Bare) -> bool:
    """Whether ``bare`` starts something else than ``first``, and not the same on another node."""
    runtime = _runtime(bare)
    if not runtime or runtime == "ollama":
        return False  # Ollama's server and its model are two commands of one plan.
    try:
        found = _read(runtime, bare, [])
    except PlimsollError:
        return True
    return (found.model, found.deployment) != (first.model, first.deployment)


def _runtime(bare: Bare) -> str:
    """The runtime that a command starts, its words left with flags alone; empty for none."""
    words = bare.words
    first = unwrap.name(words[0]) if words else ""
    runs_own = not bare.is_entry and first not in _ALONGSIDE
    of_image = next((r for r, image in _IMAGES if runs_own and image in bare.image), "")
    if re.fullmatch(r"python[\d.]*", first) and words[1:2] == ["-m"] and len(words) > 2:
        runtime = _MODULES.get(words[2], "")
        skipped = 4 if words[2] == "mlx_lm" else 3
    elif len(words) > 1 and (first, words[1]) in _TWO_WORDS:
        runtime, skipped = _TWO_WORDS[first, words[1]], 2
    elif first in _PROGRAMS:
        runtime, skipped = _PROGRAMS[first], 1
    else:
        runtime, skipped = of_image, 0
    bare.words = words[skipped:]
    return runtime


def _read(runtime: str, bare: Bare, others: list[Bare]) -> Understood:
    dialect = dialects.of(runtime)
    if dialect is None:
        raise UsageError(tr("This runtime is started by no command."), field="command")
    if runtime == "ollama":
        _gather(bare, others)
    parsed = parse(dialect.flags, bare.words, dialect.harmless, dashes=dialect.dashes)
    values = dict(parsed.values)
    rows = {name: flag for flag in dialect.environment for name in flag.names}
    for name, value in bare.environment.items():
        flag = rows.get(name)
        if flag is not None and flag.codec is not None and flag.setting not in values:
            try:
                values[flag.setting] = flag.codec.read(value)
            except ValueError as error:
                message = tr("{name}={value} is no value that is taken there.").format(
                    name=name, value=printable(value, 40)
                )
                raise UsageError(message, field=name) from error
    heard = dialect.hear(values, parsed.positionals)
    left = () if heard.model in parsed.positionals[:1] else parsed.positionals
    heard = replace(heard, model=_outside(heard.model, bare), draft=_outside(heard.draft, bare))
    devices = bare.devices and bare.devices * _nodes(bare)
    return _made(runtime, heard, left, parsed, devices, _version(dialect, bare))


def _outside(path: str, bare: Bare) -> str:
    """Where a path in a container lies outside it."""
    for inside, outside in bare.mounts.items():
        if path == inside or path.startswith(f"{inside}/"):
            return str(PurePosixPath(outside) / path.removeprefix(inside).lstrip("/"))
    return path


def _nodes(bare: Bare) -> int:
    """How many nodes the command is one of, each with as many devices."""
    for word, following in pairwise([*bare.words, ""]):
        name, has_value, value = word.partition("=")
        said = value if has_value else following
        if name == "--nnodes" and said.isdecimal() and int(said[:4]):
            return int(said[:4])
    return bare.nodes


def _gather(bare: Bare, others: list[Bare]) -> None:
    """Ollama's server has the variables, another command the model."""
    for other in others:
        if other is bare:
            continue
        bare.environment |= other.environment
        if other.words[:2] == ["ollama", "run"]:
            bare.words += other.words[2:]


def _version(dialect: Dialect, bare: Bare) -> str | None:
    """The release that an image's tag names; None where it names none."""
    tag = bare.image.rpartition(":")[2] if ":" in bare.image else ""
    pattern = _BUILD if dialect.runtime == "llama.cpp" else _TAG
    found = pattern.search(tag)
    if found is None:
        return None
    text = found[0] if dialect.runtime == "llama.cpp" else found[1]
    try:
        dialect.version(text)
    except DeploymentError:
        return None
    return text


def _made(
    runtime: str,
    heard: Heard,
    left: tuple[str, ...],
    parsed: Parsed,
    devices: int | None,
    version: str | None,
) -> Understood:
    default = Deployment()
    fields = {k: v for k, v in heard.changes.items() if v is not None and hasattr(default, k)}
    lost = tuple(f"{k} {v}" for k, v in heard.changes.items() if not hasattr(default, k))
    deployment = Deployment(runtime=runtime, runtime_version=version).with_(**fields)
    return Understood(
        runtime=runtime,
        model=_USER.sub("", heard.model),
        draft=_USER.sub("", heard.draft),
        deployment=deployment,
        devices=devices,
        strays=(*map(_stray, parsed.strays), *(_shown(word) for word in (*left, *lost))),
        harmless=parsed.harmless,
        notes=tuple(without_secrets(note) for note in heard.lost),
    )


def _stray(stray: Stray) -> str:
    """As it stood; a value that was quoted is whole here, and is a secret as a whole."""
    hides = asks_for_secret(stray.word) and stray.value
    return _shown(f"{stray.word} {MASK}" if hides else stray.text)


def _shown(text: str) -> str:
    """As it stood, but for a secret that should not have."""
    return printable(without_secrets(text), 120)


def _of_file(file: Modelfile) -> Understood:
    rows = {name: flag for flag in ollama.PARAMETERS for name in flag.names}
    values: dict[str, Any] = {}
    strays: list[Stray] = []
    harmless: list[str] = []
    for name, value in file.parameters:
        flag = rows.get(name)
        if name in ollama.OF_THE_ANSWER:
            harmless.append(name)
        elif flag is None or flag.codec is None:
            strays.append(Stray(f"PARAMETER {name}", value))
        else:
            try:
                values[flag.setting] = flag.codec.read(value)
            except ValueError:
                strays.append(Stray(f"PARAMETER {name}", value, is_value=True))
    heard = ollama.hear(values, (file.source,))
    parsed = Parsed({}, (), tuple(strays), tuple(harmless))
    return _made("ollama", heard, (), parsed, None, None)
