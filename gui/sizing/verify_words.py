"""What the verification says at each moment, ready to show and to copy. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass, Subject
from engine.contract.verify import outcome, remark
from engine.errors import VerifyError
from engine.text import printable
from engine.words import tr, tr_later
from gui.kit import format as fmt
from gui.kit.messages import details, sentence
from gui.sizing.markdown import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.verify.meta import Verification

HEADINGS = (
    tr_later("Module class"),
    tr_later("Counted here"),
    tr_later("Built"),
    tr_later("Difference"),
)
INSTALL = "pip install torch transformers"
_CLASSES = {
    ModuleClass.EMBEDDING: tr_later("Embedding"),
    ModuleClass.LM_HEAD: tr_later("LM head"),
    ModuleClass.ATTENTION: tr_later("Attention"),
    ModuleClass.MLP: tr_later("MLP"),
    ModuleClass.EXPERTS: tr_later("Experts"),
    ModuleClass.SHARED_EXPERTS: tr_later("Shared experts"),
    ModuleClass.ROUTER: tr_later("Router"),
    ModuleClass.NORM: tr_later("Norm"),
    ModuleClass.VISION: tr_later("Vision"),
    ModuleClass.AUDIO: tr_later("Audio"),
    ModuleClass.MTP: tr_later("MTP"),
    ModuleClass.OTHER: tr_later("Other"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One class of modules, or all of them."""

    label: str
    ours: str
    built: str
    difference: str
    differs: bool = False
    """Whether the difference is one of the counts, and not of what a class is."""
    is_total: bool = False

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The texts, left to right."""
        return self.label, self.ours, self.built, self.difference


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the panel shows at one moment."""

    title: str
    color: str
    picture: str
    headline: str
    detail: str
    rows: tuple[Row, ...]
    doubts: tuple[str, ...] = ()
    """Why our own count is a bound, one sentence each."""
    python: str = ""
    """The Python that builds."""
    copied: str = ""
    copy_label: str = ""
    is_busy: bool = False


def looking(model: Model, python: str) -> Shown:
    """Before a Python is found; ``python`` was chosen, or is empty."""
    ours = model.spec.parameters_by_class()
    where = tr("In the Pythons of this computer.")
    if python:
        where = tr("In {python}.").format(python=printable(python))
    return Shown(
        title=tr("Verify {model}").format(model=_title(model)),
        color="accent",
        picture="search",
        headline=tr("Looking for PyTorch and transformers…"),
        detail=where,
        rows=_rows(ours, None),
        doubts=_doubts(tuple(d.reason for d in model.spec.doubts if d.subject is Subject.WEIGHTS)),
        copy_label=tr("Copy table"),
        is_busy=True,
    )


def building(before: Shown, python: str) -> Shown:
    """While ``python`` builds."""
    return replace(
        before,
        picture="activity",
        headline=tr("Building the model without weights…"),
        detail=tr("Importing PyTorch and transformers alone takes some seconds."),
        python=printable(python),
    )


def verified(before: Shown, found: Verification) -> Shown:
    """Both counts side by side."""
    built = tr("Built as {name} by transformers {transformers} and torch {torch}. {remark}").format(
        name=found.model_class,
        transformers=found.transformers,
        torch=found.torch,
        remark=remark(found),
    )
    shown = replace(
        before,
        color="fits" if found.agrees else "over",
        picture="check" if found.agrees else "triangle-alert",
        headline=outcome(found),
        detail=printable(built.rstrip()),
        rows=_rows(found.ours, found.built),
        doubts=_doubts(found.doubts),
        copy_label=tr("Copy table"),
        is_busy=False,
    )
    return replace(shown, copied=_markdown(shown, found.model))


def trouble(before: Shown, error: BaseException, python: str) -> Shown:
    """It could not be built; ``python`` was chosen, or is empty."""
    shown = replace(
        before,
        color="tight",
        picture="triangle-alert",
        headline=tr("The model could not be built."),
        detail=sentence(error),
        copied=details(error),
        copy_label=tr("Copy details"),
        is_busy=False,
    )
    if not isinstance(error, VerifyError) or error.field != "python":
        return shown
    shown = replace(shown, copied=INSTALL, copy_label=tr("Copy command"))
    if python:
        return replace(shown, headline=tr("This Python cannot build it."))
    return replace(
        shown,
        headline=tr("PyTorch and transformers are needed for this."),
        detail=tr("No Python found here has both: {command}, then choose that Python.").format(
            command=INSTALL
        ),
    )


def _rows(
    ours: Mapping[ModuleClass, int], built: Mapping[ModuleClass, int] | None
) -> tuple[Row, ...]:
    sides = (ours, built or {})
    total = _row(tr("All"), sum(ours.values()), None if built is None else sum(built.values()))
    rows = [
        _row(
            tr(_CLASSES[module]),
            ours.get(module, 0),
            None if built is None else built.get(module, 0),
        )
        for module in ModuleClass
        if any(side.get(module) for side in sides)
    ]
    if not total.differs:
        rows = [replace(row, differs=False) for row in rows]
    return (*rows, replace(total, is_total=True))


def _row(label: str, ours: int, built: int | None) -> Row:
    if built is None:
        return Row(label, fmt.count(ours), fmt.DASH, fmt.DASH)
    apart = ours - built
    sign = "+" if apart > 0 else ""
    return Row(label, fmt.count(ours), fmt.count(built), sign + fmt.count(apart), bool(apart))


def _doubts(reasons: tuple[str, ...]) -> tuple[str, ...]:
    text = tr("Counted here is a bound: {reason}.")
    return tuple(text.format(reason=printable(tr(r)).rstrip(".")) for r in reasons)


def _title(model: Model) -> str:
    return printable(model.id.rsplit("/", 1)[-1], 200)


def _markdown(shown: Shown, model: str) -> str:
    lines = [
        f"**{shown.headline}**",
        "",
        f"{escaped(printable(model))}. {escaped(shown.detail)}",
        "",
    ]
    lines += [f"| {' | '.join(tr(heading) for heading in HEADINGS)} |", "|---|---:|---:|---:|"]
    lines += [f"| {' | '.join(row.cells)} |" for row in shown.rows]
    if shown.doubts:
        lines += ["", *(escaped(doubt) for doubt in shown.doubts)]
    return "\n".join(lines) + "\n"
