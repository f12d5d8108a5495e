"""A ``.plimsoll`` file: what was asked, never what came out, so that anybody may open anybody's.

JSON by the published schema ``plimsoll.workspace/1``: the plan in force and the compared ones (each
a model, its settings under the keys of a request, and a machine), the unit, and the open tab. No
budget, no verdict, no token and nothing that was measured. Opening one runs nothing and asks no
server: ``engine.source.recall`` says what is read on this computer and what waits for a
click.

Read as a stranger's: whole or not at all, with one sentence that names the key.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

from engine.contract.fields import ABOUT_THE_ANSWER, ABOUT_THE_DEVICE, ABOUT_THE_TRAFFIC
from engine.contract.request import parse
from engine.deployment.spec import Deployment
from engine.errors import PlimsollError, UsageError, WorkspaceError
from engine.seen.load_driver import Load
from engine.source import files
from engine.source.bounded_json import parse_object
from engine.source.by_hand import Measures, by_hand
from engine.source.origin import Located, Named, Origin, Pasted, named
from engine.source.recall import refuse_elsewhere
from engine.source.reference import HubReference, PathReference
from engine.source.reference import parse as reference
from engine.text import printable
from engine.units import UnitSystem, format_bytes
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SCHEMA = "plimsoll.workspace/1"
SUFFIX = ".plimsoll"
MOST_COMPARED = 6
MOST_BESIDE = 5
MAX_FILE_BYTES = 32 * 2**20
"""A pasted config of the largest size that is read, and room for those of compared plans."""
MAX_TEXT = 4096
"""Characters of a name or path."""
MAX_MEASURE = 2**53
_FAMILY = SCHEMA.partition("/")[0]
_NOT_HERE = ABOUT_THE_DEVICE | ABOUT_THE_ANSWER | {
    *ABOUT_THE_TRAFFIC, "id", "model", "config", "tensors",
}  # fmt: skip
_OF_A_NEIGHBOUR = ("model", "plan", "context_assumed")
_OF_A_PLAN = (*_OF_A_NEIGHBOUR, "machine", "with")
_BASELINES = ("now", "empty")
_KINDS_OF_LOAD: Mapping[str, tuple[type, ...]] = {
    "in_bursts": (bool,),
    "pause_s": (int, float),
    "limit_s": (int, float),
}
"""What is no whole number in a load."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One plan: which model, how it is run, and where."""

    model: Origin | None
    deployment: Deployment
    """Without its draft model, which ``draft`` names."""
    gpu: str | None = None
    """A device, or a list with counts, as a request names it; None is this computer."""
    emptied: bool = False
    """Whether this computer counts as if nothing else ran on it."""
    host_total_bytes: int | None = None
    """RAM of the machine that ``gpu`` names; None where it isn't stated."""
    draft: Named | Located | None = None
    context_assumed: bool = False
    """Whether nobody chose the context, so that it follows the runtime."""
    beside: tuple[Asked, ...] = ()
    """What runs on the same machine, in order of start; these name no machine of their own."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything that one has on the desk."""

    plan: Asked
    compared: tuple[Asked, ...] = ()
    unit: UnitSystem = UnitSystem.BINARY
    tab: str = ""
    """Which page is open; empty for the first."""
    load: Load | None = None
    """What the checklist is to send to a runtime; None for what follows from the plan."""


def written(workspace: Workspace) -> str:
    """The text of its file."""
    return json.dumps(plain(workspace), indent=1) + "\n"


def plain(workspace: Workspace) -> dict[str, object]:
    """The object in its file."""
    return {
        "schema": SCHEMA,
        **_asked(workspace.plan),
        "compared": [_asked(plan) for plan in workspace.compared],
        "unit": workspace.unit.value,
        "tab": workspace.tab or None,
        "load": asdict(workspace.load) if workspace.load else None,
    }


def keepable(asked: Asked) -> Asked:
    """``asked`` without what no file may say: a value far out of range, a name beyond all measure.

    Nothing can be planned with such either; a file that held it could not be read again, with all
    else that it holds.
    """
    gpu = asked.gpu if _is_kept(lambda: _text({"gpu": asked.gpu}, "gpu", "")) else None
    ram = {"host_total_bytes": asked.host_total_bytes}
    has_ram = bool(gpu) and _is_kept(lambda: _number(ram, "host_total_bytes", ""))
    return replace(
        asked,
        model=_keepable(asked.model),
        deployment=_keepable_settings(asked.deployment),
        gpu=gpu,
        host_total_bytes=asked.host_total_bytes if has_ram else None,
        draft=cast("Named | Located | None", _keepable(asked.draft)),
        beside=tuple(keepable(other) for other in asked.beside),
    )


def _keepable(origin: Origin | None) -> Origin | None:
    if isinstance(origin, Measures):
        origin = replace(origin, name=printable(origin.name, MAX_TEXT // 10))
    is_kept = isinstance(origin, Pasted) or _is_kept(lambda: _read_origin(_origin(origin), ""))
    return origin if is_kept else None


def _keepable_settings(deployment: Deployment) -> Deployment:
    default = Deployment(runtime=deployment.runtime)
    for _ in fields(Deployment):
        try:
            _deployment(_stated(deployment))
        except PlimsollError as error:
            name = error.field.partition("[")[0]
            if not hasattr(default, name):
                break
            deployment = deployment.with_(**{name: getattr(default, name)})
        else:
            return deployment
    return default


def _is_kept(read_again: Callable[[], object]) -> bool:
    try:
        read_again()
    except PlimsollError:
        return False
    return True


def read_file(path: Path) -> Workspace:
    """The workspace in ``path``.

    Raises:
        PlimsollError: it cannot be read, or isn't one.
    """
    with files.opened(path) as (file, size_bytes):
        refuse_huge(path.name, size_bytes)
        return read(file.read(MAX_FILE_BYTES), path.name)


def refuse_huge(name: str, size_bytes: int) -> None:
    """Refuse a file that no workspace fills.

    Raises:
        WorkspaceError: it is larger.
    """
    if size_bytes > MAX_FILE_BYTES:
        words = tr("{name} is {size}, far more than any workspace.")
        raise WorkspaceError(words.format(name=name, size=format_bytes(size_bytes)))


def read(data: bytes, name: str) -> Workspace:
    """The workspace in ``data``.

    Args:
        data: the file's contents.
        name: what to call it in messages.

    Raises:
        WorkspaceError: it isn't one, or a newer version's; ``field`` is the key to correct.
    """
    shown = printable(name, 80)
    return from_plain(parse_object(data, shown, WorkspaceError, unique_keys=True), shown)


def from_plain(value: object, name: str) -> Workspace:
    """The workspace in ``value``, as ``plain`` makes it.

    Args:
        value: what JSON said.
        name: what to call it in messages.

    Raises:
        WorkspaceError: it isn't one, or a newer version's; ``field`` is the key to correct.
    """
    shown = printable(name, 80)
    kept = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    _check_schema(kept.get("schema"), shown)
    try:
        _only(kept, {"schema", *_OF_A_PLAN, "compared", "unit", "tab", "load"}, "")
        compared = _plans(kept.get("compared"), "compared", MOST_COMPARED)
        return Workspace(
            plan=_read_asked({k: kept.get(k) for k in _OF_A_PLAN}, ""),
            compared=tuple(_read_asked(p, f"compared[{n}].") for n, p in enumerate(compared)),
            unit=UnitSystem(_choice(kept.get("unit"), "unit", [u.value for u in UnitSystem])),
            tab=_text(kept, "tab", ""),
            load=_read_load(kept.get("load")),
        )
    except WorkspaceError as error:
        raise WorkspaceError(f"{shown}: {error.message}", field=error.field) from None


def as_request(asked: Asked) -> dict[str, object]:
    """The same question as a request of the machine contract.

    Raises:
        PlimsollError: it names no model, or one that isn't read before the user asks.
    """
    machine: dict[str, object] = {"gpu": asked.gpu} if asked.gpu else {}
    if asked.emptied and not asked.gpu:
        machine = {"baseline": _BASELINES[1]}
    if asked.gpu and asked.host_total_bytes:
        machine["host_total_bytes"] = asked.host_total_bytes
    # A request starts first and those with it after; here the plan starts last.
    first, *rest = (*asked.beside, asked)
    others = {"with": [_as_request(other) for other in rest]} if rest else {}
    return {**_as_request(first), **machine, **others}


def _as_request(asked: Asked) -> dict[str, object]:
    model: dict[str, object]
    match asked.model:
        case None:
            raise WorkspaceError(tr("The workspace names no model yet."), field="model")
        case Measures():
            raw = by_hand(asked.model)
            model = {"model": raw.id, "config": raw.config}
        case Located():
            refuse_elsewhere(asked.model.path)
            model = {"model": asked.model.path}
        case _:
            model = {"model": asked.model.text}
    if isinstance(asked.draft, Located):
        refuse_elsewhere(asked.draft.path)
    return model | _settings(asked)


def _asked(asked: Asked) -> dict[str, object]:
    machine: dict[str, object] = {"gpu": asked.gpu, "baseline": _BASELINES[asked.emptied]}
    if asked.host_total_bytes:
        machine["host_total_bytes"] = asked.host_total_bytes
    others = {"with": [_neighbour(other) for other in asked.beside]} if asked.beside else {}
    return {**_neighbour(asked), "machine": machine, **others}


def _neighbour(asked: Asked) -> dict[str, object]:
    kept: dict[str, object] = {"model": _origin(asked.model), "plan": _settings(asked)}
    return kept | ({"context_assumed": True} if asked.context_assumed else {})


def _settings(asked: Asked) -> dict[str, object]:
    """The settings under their keys of a request; what is left to the runtime is left out."""
    match asked.draft:
        case None:
            return _stated(asked.deployment)
        case Named():
            draft = asked.draft.text
        case Located():
            draft = asked.draft.path
    return {**_stated(asked.deployment), "draft_model": draft}


def _stated(deployment: Deployment) -> dict[str, object]:
    stated = {f.name: getattr(deployment, f.name) for f in fields(Deployment)}
    return {k: v for k, v in stated.items() if v is not None and k != "draft_model"}


def _deployment(stated: Mapping[str, object]) -> Deployment:
    return parse({"model": "-", **stated}).deployment


def _origin(origin: Origin | None) -> dict[str, object] | None:
    match origin:
        case None:
            return None
        case Named():
            stated = {"name": origin.name, "revision": origin.revision, "file": origin.file}
        case Located():
            stated = {"path": origin.path, "name": origin.name}
        case Pasted():
            return {"pasted": origin.text}
        case Measures():
            return {"measures": {f.name: getattr(origin, f.name) for f in fields(Measures)}}
    return {key: value for key, value in stated.items() if value}


def _check_schema(schema: object, name: str) -> None:
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.partition("/")[0] == _FAMILY:
        words = tr(
            "{name} was written by another version of Plimsoll ({schema}); this one reads {own}: "
            "update Plimsoll to open it."
        )
        told = words.format(name=name, schema=printable(schema, 40), own=SCHEMA)
        raise WorkspaceError(told, field="schema")
    words = tr("{name} is no workspace of Plimsoll: it has no schema {own}.")
    raise WorkspaceError(words.format(name=name, own=SCHEMA), field="schema")


def _plans(value: object, where: str, most: int) -> list[Mapping[str, object]]:
    found = cast("list[object]", [] if value is None else value)
    if not isinstance(value, list | None) or len(found) > most:
        raise _wrong(where, tr("a list of at most {most} plans").format(most=most))
    return [_object(plan, f"{where}[{n}]") for n, plan in enumerate(found)]


def _read_asked(kept: Mapping[str, object], where: str) -> Asked:
    _only(kept, set(_OF_A_PLAN), where)
    machine = _object(_given(kept, "machine", {}), f"{where}machine")
    _only(machine, {"gpu", "baseline", "host_total_bytes"}, f"{where}machine.")
    base = _given(machine, "baseline", _BASELINES[0])
    others = _plans(kept.get("with"), f"{where}with", MOST_BESIDE)
    ram = _number(machine, "host_total_bytes", f"{where}machine.")
    if ram is not None and not machine.get("gpu"):
        words = tr("left out where gpu names no machine: this computer's RAM is measured")
        raise _wrong(f"{where}machine.host_total_bytes", words)
    return replace(
        _read_neighbour({key: kept.get(key) for key in _OF_A_NEIGHBOUR}, where),
        gpu=_text(machine, "gpu", f"{where}machine.") or None,
        host_total_bytes=ram,
        emptied=_choice(base, f"{where}machine.baseline", _BASELINES) == _BASELINES[1],
        beside=tuple(_read_neighbour(o, f"{where}with[{n}].") for n, o in enumerate(others)),
    )


def _read_neighbour(kept: Mapping[str, object], where: str) -> Asked:
    _only(kept, set(_OF_A_NEIGHBOUR), where)
    stated = dict(_object(kept.get("plan"), f"{where}plan"))
    misplaced = sorted(_NOT_HERE & set(stated))
    if misplaced:
        raise _wrong(f"{where}plan", tr("settings alone, without {key}").format(key=misplaced[0]))
    draft = stated.pop("draft_model", None)
    try:
        deployment = _deployment(stated)
    except PlimsollError as error:
        raise WorkspaceError(error.message, field=f"{where}plan.{error.field}") from error
    assumed = _given(kept, "context_assumed", False)  # noqa: FBT003 - what it is by default
    if not isinstance(assumed, bool):
        raise _wrong(f"{where}context_assumed", tr("true or false"))
    return Asked(
        model=_read_origin(kept.get("model"), f"{where}model"),
        deployment=deployment,
        draft=_read_draft(draft, f"{where}plan.draft_model"),
        context_assumed=assumed,
    )


def _read_load(value: object) -> Load | None:
    if value is None:
        return None
    kept = _object(value, "load")
    _only(kept, {field.name for field in fields(Load)}, "load.")
    for name, given in kept.items():
        kinds = _KINDS_OF_LOAD.get(name, (int,))
        if type(given) not in kinds:
            wanted = tr("true or false") if bool in kinds else tr("a number")
            raise _wrong(f"load.{name}", wanted)
    try:
        return Load(**cast("dict[str, Any]", kept))
    except UsageError as error:
        raise WorkspaceError(error.message, field=f"load.{error.field}") from error


def _read_draft(value: object, where: str) -> Named | Located | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise _wrong(where, tr("the name or path of a model"))
    try:
        meant = reference(value)
        if isinstance(meant, PathReference):
            return Located(meant.path)
        if isinstance(meant, HubReference):
            return named(meant.repo_id, meant.revision, meant.file)
        return named(value)
    except PlimsollError as error:
        raise WorkspaceError(error.message, field=where) from error


def _read_origin(value: object, where: str) -> Origin | None:
    if value is None:
        return None
    kept = _object(value, where)
    if "measures" in kept:
        _only(kept, {"measures"}, f"{where}.")
        return _read_measures(_object(kept["measures"], f"{where}.measures"), f"{where}.measures.")
    if "pasted" in kept:
        _only(kept, {"pasted"}, f"{where}.")
        text = kept["pasted"]
        if not isinstance(text, str) or text.lstrip()[:1] != "{":
            raise _wrong(f"{where}.pasted", tr("the text of a config.json"))
        return Pasted(text)
    if "path" in kept:
        _only(kept, {"path", "name"}, f"{where}.")
        # A file may be called anything; whoever shows the name writes hidden characters out.
        path = _needed(kept, "path", f"{where}.", is_path=True)
        return Located(path, _text(kept, "name", f"{where}.", is_path=True))
    _only(kept, {"name", "revision", "file"}, f"{where}.")
    name = _needed(kept, "name", f"{where}.")
    revision = _text(kept, "revision", f"{where}.") or None
    try:
        return named(name, revision, _text(kept, "file", f"{where}."))
    except PlimsollError as error:
        raise WorkspaceError(error.message, field=where) from error


def _read_measures(kept: Mapping[str, object], where: str) -> Measures:
    optional = ("hidden_size", "vocab_size", "max_position_embeddings")
    needed = ("parameters", "num_hidden_layers", "num_key_value_heads", "head_dim")
    _only(kept, {*optional, *needed, "name"}, where)
    found: dict[str, Any] = {"name": _text(kept, "name", where) or "entered by hand"}
    for key in (*needed, *optional):
        value = _number(kept, key, where, needed=key in needed)
        if value is not None:
            found[key] = value
    return Measures(**found)


def _given(kept: Mapping[str, object], key: str, default: object) -> object:
    value = kept.get(key)
    return default if value is None else value


def _number(
    kept: Mapping[str, object], key: str, where: str, *, needed: bool = False
) -> int | None:
    value = kept.get(key)
    if value is None and not needed:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_MEASURE:
        raise _wrong(f"{where}{key}", tr("a whole number of at least 1"))
    return value


def _needed(kept: Mapping[str, object], key: str, where: str, *, is_path: bool = False) -> str:
    text = _text(kept, key, where, is_path=is_path)
    if not text:
        raise _wrong(f"{where}{key}", tr("given: it says which model is meant"))
    return text


def _text(kept: Mapping[str, object], key: str, where: str, *, is_path: bool = False) -> str:
    """The text under ``key``; empty where there is none. One of a path may hold all but NUL."""
    value = kept.get(key)
    if value is None:
        return ""
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        shown = value.replace("\0", "") if is_path else printable(value, MAX_TEXT)
    else:
        shown = None
    if shown != value or not isinstance(value, str):
        wanted = tr("a text of at most {most} visible characters").format(most=MAX_TEXT)
        raise _wrong(f"{where}{key}", wanted)
    return value


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong(where, tr("an object in braces"))
    return cast("dict[str, object]", value)


def _choice(value: object, where: str, choices: list[str] | tuple[str, ...]) -> str:
    if value not in choices:
        raise _wrong(where, tr("one of {choices}").format(choices=", ".join(choices)))
    return str(value)


def _only(kept: Mapping[str, object], known: set[str], where: str) -> None:
    extra = sorted(set(kept) - known)
    if extra:
        key = printable(extra[0], 80)
        words = tr("a workspace has no key {key}.").format(key=where + key)
        raise WorkspaceError(words, field=where + key)


def _wrong(where: str, wanted: str) -> WorkspaceError:
    words = tr("{key} must be {wanted}.").format(key=where, wanted=wanted)
    return WorkspaceError(words, field=where)
