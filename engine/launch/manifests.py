"""Commands out of YAML: Compose files, Kubernetes manifests, and files for Ray Serve LLM.

Nothing of a file is run, fetched or looked up: a variable that it doesn't set stays as it stands.

Source:
    Compose specification (``services``); Kubernetes API (``PodSpec``, ``$(NAME)`` in arguments);
    kubernetes-sigs/lws ``docs/reference/leaderworkerset.v1.md``; Ray ``LLMConfig`` and the
    ``serveConfigV2`` of a RayService.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from engine.errors import UsageError
from engine.launch import unwrap
from engine.launch.unwrap import Bare
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_HEAD = re.compile(r"^(?:apiVersion|kind|services|applications|llm_configs):", re.MULTILINE)
_FIRST = re.compile(
    r"(?:apiVersion|kind|items|metadata|name|version|services|applications|llm_configs"
    r"|proxy_location|http_options|x-[\w-]+|volumes|networks):"
)
"""What such a file starts with, behind remarks."""
_HEREDOC = re.compile(
    r"\s*(?:\$ )?(?:kubectl|oc|cat)\b[^\n]*<<-?[ ]?['\"]?(\w+)['\"]?[^\n]*\n"
    r"(.*?)^[ \t]*\1[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_DEEPEST = 64
"""Levels of brackets; the time that PyYAML takes grows with the square of them."""
_LONGEST_VALUE = 1_000
"""A variable that stands many times in a line would else fill the memory."""
_LONGEST_LINE = 20_000
_MOST_ALIASES = 16
"""Merged into one another, more of them could grow without bound."""
_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915")
_OF_KUBERNETES = re.compile(r"\$\((\w+)\)")
_OF_COMPOSE = re.compile(r"\$(?:\{(\w+)(?:(:?[-?+])([^}]*))?\}|(\w+)|(\$))")


def looks_like_one(text: str) -> bool:
    """Whether ``text`` starts as a file that can be read here, or hands one to ``kubectl``."""
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith(("#", "---"))), "")
    is_file = bool(_FIRST.match(first)) and bool(_HEAD.search(text))
    return is_file or bool(_HEREDOC.match(text))


def commands(text: str) -> list[Bare] | None:
    """The commands of all containers in ``text``; None where it is no such file.

    Raises:
        UsageError: it is one, and can't be read.
    """
    if not looks_like_one(text):
        return None
    handed = _HEREDOC.match(text)
    found = [
        bare
        for document in _documents(handed[2] if handed else text)
        for bare in _of_document(_mapping(document))
    ]
    return [bare for bare in found if bare.words or bare.image]


def _documents(text: str) -> list[object]:
    import yaml  # noqa: PLC0415 - seldom needed, and slow

    if _depth(text) > _DEEPEST:
        raise UsageError(_unreadable(), field="command")
    try:
        # Only a star begins one; looking closer takes as long as reading.
        if text.count("*") <= _MOST_ALIASES or _aliases(text) <= _MOST_ALIASES:
            return list(yaml.safe_load_all(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        message = tr("This YAML can’t be read: line {line} breaks off.").format(line=line)
        raise UsageError(message, field="command") from error
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError) as error:
        # PyYAML looks into a time that is none without asking whether it is one.
        raise UsageError(_unreadable(), field="command") from error
    message = tr("This YAML refers to itself more than {count} times: write it out.").format(
        count=_MOST_ALIASES
    )
    raise UsageError(message, field="command")


def _unreadable() -> str:
    return tr("This YAML can’t be read: it is nested too deep, or holds odd characters.")


def _depth(text: str) -> int:
    depth = deepest = 0
    for sign in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if sign in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _aliases(text: str) -> int:
    import yaml  # noqa: PLC0415 - see _documents

    tokens = cast("Iterator[object]", yaml.scan(text))  # pyright: ignore[reportUnknownMemberType]
    return sum(isinstance(token, yaml.AliasToken) for token in tokens)


def _of_document(document: Mapping[str, Any]) -> Iterator[Bare]:
    if "services" in document:
        for service in _mapping(document["services"]).values():
            yield from _of_service(_mapping(service))
    elif "items" in document:
        for item in _list(document["items"]):
            yield from _of_kubernetes(_mapping(item))
    elif "kind" in document:
        yield from _of_kubernetes(document)
    elif "llm_configs" in document:
        yield from _of_ray(document)
    else:
        for application in _list(document.get("applications")):
            yield from _of_ray(_mapping(_mapping(application).get("args")))


# --- Compose


def _of_service(service: Mapping[str, Any]) -> Iterator[Bare]:
    environment = _environment(service.get("environment"))

    def said(text: str) -> str:
        return _OF_COMPOSE.sub(lambda found: _of_compose(found, environment), text)

    entry, command = (_words(service.get(key), said) for key in ("entrypoint", "command"))
    environment = {name: said(value) for name, value in environment.items()}
    image = said(_text(service.get("image")))
    devices = _of_reservations(service)
    mounts = [said(_text(volume)) for volume in _list(service.get("volumes"))]
    for bare in _container(entry, command, image):
        yield replace(
            bare, environment=environment | bare.environment, devices=devices,
            mounts=unwrap.mounted(mounts),
        )  # fmt: skip


def _of_compose(found: re.Match[str], environment: Mapping[str, str]) -> str:
    if found[5]:
        return "$"
    known = environment.get(found[1] or found[4])
    if known is not None and "$" not in known and len(known) <= _LONGEST_VALUE:
        return known
    return found[3] if found[2] in (":-", "-") else found[0]


def _of_reservations(service: Mapping[str, Any]) -> int | None:
    node: Any = service
    for key in ("deploy", "resources", "reservations"):
        node = _mapping(node).get(key)
    listed = _list(_mapping(node).get("devices")) or _list(service.get("gpus"))
    counts = [_of_device(_mapping(device)) for device in listed]
    return sum(count for count in counts if count is not None) or None


def _of_device(device: Mapping[str, Any]) -> int | None:
    return len(_list(device.get("device_ids"))) or _whole(device.get("count"))


# --- Kubernetes


def _of_kubernetes(document: Mapping[str, Any]) -> Iterator[Bare]:
    spec = _mapping(document.get("spec"))
    match document.get("kind"):
        case "RayService":
            for inner in _documents(_text(spec.get("serveConfigV2"))):
                yield from _of_document(_mapping(inner))
        case "LeaderWorkerSet":
            template = _mapping(spec.get("leaderWorkerTemplate"))
            size = _whole(template.get("size")) or 1
            for key in ("leaderTemplate", "workerTemplate"):
                pod = _mapping(_mapping(template.get(key)).get("spec"))
                yield from _of_pod(pod, size)
        case _:
            inner = _mapping(_mapping(spec.get("template")).get("spec"))
            yield from _of_pod(inner or spec)


def _of_pod(pod: Mapping[str, Any], size: int = 1) -> Iterator[Bare]:
    for item in _list(pod.get("containers")):
        container = _mapping(item)
        environment = _environment(container.get("env"))
        known = {"LWS_GROUP_SIZE": str(size)} | environment

        def said(text: str, known: Mapping[str, str] = known) -> str:
            plain = _OF_KUBERNETES.sub(lambda found: _of_pods(found, known), text)
            return plain.replace("$$(", "$(")

        entry, arguments = (_words(container.get(key), said) for key in ("command", "args"))
        resources = _mapping(container.get("resources"))
        asked = _mapping(resources.get("requests")) | _mapping(resources.get("limits"))
        devices = next((n for name in _RESOURCES if (n := _whole(asked.get(name)))), None)
        for bare in _container(entry, arguments, _text(container.get("image"))):
            yield replace(
                bare, environment=environment | bare.environment, devices=devices, nodes=size
            )


def _of_pods(found: re.Match[str], environment: Mapping[str, str]) -> str:
    value = environment.get(found[1], found[0])
    return value if len(value) <= _LONGEST_VALUE else found[0]


# --- Ray Serve


def _of_ray(arguments: Mapping[str, Any]) -> Iterator[Bare]:
    for item in _list(arguments.get("llm_configs")):
        config = _mapping(item)
        loading = _mapping(config.get("model_loading_config"))
        source = loading.get("model_source")
        model = source if isinstance(source, str) else _text(loading.get("model_id"))
        flags = [
            word
            for name, value in _mapping(config.get("engine_kwargs")).items()
            for word in _flag(name, value)
        ]
        bundles = _list(_mapping(config.get("placement_group_config")).get("bundles"))
        devices = sum(_whole(_mapping(bundle).get("GPU")) or 0 for bundle in bundles)
        variables = _environment(_mapping(config.get("runtime_env")).get("env_vars"))
        yield Bare(["vllm", "serve", model, *flags], variables, devices=devices or None)


def _flag(name: str, value: object) -> list[str]:
    """An argument of vLLM's engine as the flag of its command, which has the same name."""
    word = name.replace("_", "-")
    match value:
        case None:
            return []
        case bool():
            return [f"--{word}" if value else f"--no-{word}"]
        case str() | int() | float():
            return [f"--{word}", _text(value)]
        case _:
            return [f"--{word}", _json(name, value)]


def _json(name: str, value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        message = tr("{name} holds what no command could.").format(name=printable(name, 40))
        raise UsageError(message, field="command") from error


# --- what all have in common


def _container(entry: list[str] | None, words: list[str] | None, image: str) -> list[Bare]:
    """The commands of a container: of its shell's line, or the words for its entry."""
    said = [*(entry or ()), *(words or ())]
    return unwrap.opened(Bare(said, image=image, is_entry=entry is not None))


def _words(value: object, said: Callable[[str], str]) -> list[str] | None:
    """A command as it is written: a list of words, or one line."""
    if value is None:
        return None
    if isinstance(value, str):
        line = said(value)
        if len(line) > _LONGEST_LINE:
            raise UsageError(tr("This is too long to be a command."), field="command")
        return [word for part in unwrap.split(line) for word in part]
    return [said(_text(item)) for item in _list(value)]


def _environment(value: object) -> dict[str, str]:
    """Variables as a mapping, as ``NAME=value`` words, or as Kubernetes lists them."""
    if isinstance(value, dict):
        return {
            str(name): _text(said)
            for name, said in cast("dict[object, object]", value).items()
            if said is not None
        }
    found: dict[str, str] = {}
    for item in _list(value):
        if isinstance(item, dict):
            pair = cast("dict[str, object]", item)
            if "value" in pair:
                found[_text(pair.get("name"))] = _text(pair["value"])
        else:
            name, has_value, said = _text(item).partition("=")
            if has_value:
                found[name] = said
    return found


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    try:
        return str(value)
    except ValueError:  # A whole number of thousands of digits.
        return ""


def _whole(value: object) -> int | None:
    """A count, as a number or in quotes."""
    text = _text(value)
    return int(text) if re.fullmatch(r"\d{1,4}", text) else None
