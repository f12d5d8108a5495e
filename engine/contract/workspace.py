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
from engine.contract.workspace_values import (
    MAX_TEXT,
    choice_of,
    given_or,
    number_of,
    object_of,
    plain_origin,
    read_draft,
    read_origin,
    refuse_others,
    text_of,
    wrong,
)
from engine.deployment.spec import Deployment
from engine.errors import PlimsollError, UsageError, WorkspaceError
from engine.seen.load_driver import Load
from engine.source import files
from engine.source.bounded_json import parse_object
from engine.source.by_hand import Measures, by_hand
from engine.source.origin import Located, Named, Origin, Pasted
from engine.source.recall import refuse_elsewhere
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
    gpu = asked.gpu if _is_kept(lambda: text_of({"gpu": asked.gpu}, "gpu", "")) else None
    ram = {"host_total_bytes": asked.host_total_bytes}
    has_ram = bool(gpu) and _is_kept(lambda: number_of(ram, "host_total_bytes", ""))
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
    is_kept = isinstance(origin, Pasted) or _is_kept(lambda: read_origin(plain_origin(origin), ""))
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
        refuse_others(kept, {"schema", *_OF_A_PLAN, "compared", "unit", "tab", "load"}, "")
        compared = _plans(kept.get("compared"), "compared", MOST_COMPARED)
        return Workspace(
            plan=_read_asked({k: kept.get(k) for k in _OF_A_PLAN}, ""),
            compared=tuple(_read_asked(p, f"compared[{n}].") for n, p in enumerate(compared)),
            unit=UnitSystem(choice_of(kept.get("unit"), "unit", [u.value for u in UnitSystem])),
            tab=text_of(kept, "tab", ""),
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
    kept: dict[str, object] = {"model": plain_origin(asked.model), "plan": _settings(asked)}
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
        raise wrong(where, tr("a list of at most {most} plans").format(most=most))
    return [object_of(plan, f"{where}[{n}]") for n, plan in enumerate(found)]


def _read_asked(kept: Mapping[str, object], where: str) -> Asked:
    refuse_others(kept, set(_OF_A_PLAN), where)
    machine = object_of(given_or(kept, "machine", {}), f"{where}machine")
    refuse_others(machine, {"gpu", "baseline", "host_total_bytes"}, f"{where}machine.")
    base = given_or(machine, "baseline", _BASELINES[0])
    others = _plans(kept.get("with"), f"{where}with", MOST_BESIDE)
    ram = number_of(machine, "host_total_bytes", f"{where}machine.")
    if ram is not None and not machine.get("gpu"):
        words = tr("left out where gpu names no machine: this computer's RAM is measured")
        raise wrong(f"{where}machine.host_total_bytes", words)
    return replace(
        _read_neighbour({key: kept.get(key) for key in _OF_A_NEIGHBOUR}, where),
        gpu=text_of(machine, "gpu", f"{where}machine.") or None,
        host_total_bytes=ram,
        emptied=choice_of(base, f"{where}machine.baseline", _BASELINES) == _BASELINES[1],
        beside=tuple(_read_neighbour(o, f"{where}with[{n}].") for n, o in enumerate(others)),
    )


def _read_neighbour(kept: Mapping[str, object], where: str) -> Asked:
    refuse_others(kept, set(_OF_A_NEIGHBOUR), where)
    stated = dict(object_of(kept.get("plan"), f"{where}plan"))
    misplaced = sorted(_NOT_HERE & set(stated))
    if misplaced:
        raise wrong(f"{where}plan", tr("settings alone, without {key}").format(key=misplaced[0]))
    draft = stated.pop("draft_model", None)
    try:
        deployment = _deployment(stated)
    except PlimsollError as error:
        raise WorkspaceError(error.message, field=f"{where}plan.{error.field}") from error
    assumed = given_or(kept, "context_assumed", False)  # noqa: FBT003 - what it is by default
    if not isinstance(assumed, bool):
        raise wrong(f"{where}context_assumed", tr("true or false"))
    return Asked(
        model=read_origin(kept.get("model"), f"{where}model"),
        deployment=deployment,
        draft=read_draft(draft, f"{where}plan.draft_model"),
        context_assumed=assumed,
    )


def _read_load(value: object) -> Load | None:
    if value is None:
        return None
    kept = object_of(value, "load")
    refuse_others(kept, {field.name for field in fields(Load)}, "load.")
    for name, given in kept.items():
        kinds = _KINDS_OF_LOAD.get(name, (int,))
        if type(given) not in kinds:
            wanted = tr("true or false") if bool in kinds else tr("a number")
            raise wrong(f"load.{name}", wanted)
    try:
        return Load(**cast("dict[str, Any]", kept))
    except UsageError as error:
        raise WorkspaceError(error.message, field=f"load.{error.field}") from error
