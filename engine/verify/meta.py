"""The parameters that transformers itself gives a config, beside ours."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, cast

import resources
from engine.architecture.naming import named, pattern_of
from engine.architecture.spec import ModuleClass, Subject
from engine.errors import VerifyError
from engine.verify.interpreter import find
from engine.verify.process import started
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.cancel import CancelToken

_STEP_SECONDS = 0.2
_LONGEST_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Verification:
    """What was built, and what we had said."""

    model: str
    model_class: str
    """Class of transformers that was built: ``LlamaForCausalLM``."""
    transformers: str
    torch: str
    built: Mapping[ModuleClass, int]
    """Parameters per class by the names of the tensors, a shared tensor once."""
    ours: Mapping[ModuleClass, int]
    doubts: tuple[str, ...]
    """Why our weights are a bound, if they are."""

    @property
    def built_parameters(self) -> int:
        """All that was built."""
        return sum(self.built.values())

    @property
    def our_parameters(self) -> int:
        """All that we count."""
        return sum(self.ours.values())

    @property
    def agrees(self) -> bool:
        """Whether the totals are equal."""
        return self.built_parameters == self.our_parameters


def verify(model: Model, token: CancelToken, python: str | None = None) -> Verification:
    """Build ``model`` on the meta device, in a process of its own, and count.

    Nothing is downloaded, no weights are made, and no code of the repository is run.

    Args:
        model: a model that was read from a config.
        token: asks for the end; the process is then stopped.
        python: a Python with torch and transformers; looked for where it is not named.

    Raises:
        VerifyError: there is no such Python, no class for this config, or it cannot be built.
        JobCancelledError: the token was cancelled.
    """
    if model.config is None:
        message = tr("{id} has no config.json to build a model from: name one that has.").format(
            id=model.id
        )
        raise VerifyError(message)
    if model.spec.draft:
        message = tr("{id} is a draft model, which transformers has no class for.").format(
            id=model.id
        )
        raise VerifyError(message)
    answer = _run(find(token, python), json.dumps(dict(model.config)), token)
    if "error" in answer:
        raise VerifyError(_why(answer))
    ours = model.spec.parameters_by_class()
    return Verification(
        model=model.id,
        model_class=str(answer.get("class")),
        transformers=str(answer.get("transformers")),
        torch=str(answer.get("torch")),
        built=_by_class(answer.get("tensors"), ours),
        ours=ours,
        doubts=tuple(d.reason for d in model.spec.doubts if d.subject is Subject.WEIGHTS),
    )


def _run(python: str, config: str, token: CancelToken) -> Mapping[str, object]:
    script = resources.path("scripts", "parameters_on_meta.py")
    try:
        with started([python, str(script)], subprocess.PIPE) as process:
            output = _talk(process, config, token)
    except OSError as error:
        message = tr("{python} cannot be started: {value}.").format(
            python=python, value=error.strerror or error
        )
        raise VerifyError(message, field="python") from error
    try:
        found: object = json.loads(output)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = tr("{python} gave no answer: it may have run out of memory.").format(
            python=python
        )
        raise VerifyError(message)
    return cast("dict[str, object]", found)


def _talk(process: subprocess.Popen[str], config: str, token: CancelToken) -> str:
    """Give the config and wait for the answer, looking at the token between steps."""
    given: str | None = config
    waited = 0.0
    while True:
        try:
            output, _ = process.communicate(given, timeout=_STEP_SECONDS)
        except subprocess.TimeoutExpired:
            given = None
            waited += _STEP_SECONDS
            token.raise_if_cancelled()
            if waited > _LONGEST_SECONDS:
                message = tr("The model was not built within {longest_seconds} minutes.").format(
                    longest_seconds=_LONGEST_SECONDS // 60
                )
                raise VerifyError(message) from None
            continue
        return output


def _why(answer: Mapping[str, object]) -> str:
    named_type = str(answer.get("named") or "")
    if answer.get("error") == "no_class":
        what = (
            tr("model_type {named_type!r}").format(named_type=named_type[:80])
            if named_type
            else tr("a config without model_type")
        )
        return tr(
            "transformers {get} has no class for {what}; code from a repository is never run."
        ).format(get=answer.get("transformers"), what=what)
    return tr("transformers could not build it: {rstrip}.").format(rstrip=named_type.rstrip("."))


def _by_class(tensors: object, ours: Mapping[ModuleClass, int]) -> dict[ModuleClass, int]:
    sums: Counter[ModuleClass] = Counter()
    classes: dict[str, ModuleClass] = {}
    for name, shape in cast("list[tuple[str, list[int]]]", tensors or []):
        pattern = pattern_of(name)
        if pattern not in classes:
            classes[pattern] = named(pattern).module
        sums[classes[pattern]] += prod(shape)
    # What a projector projects does not follow from its name.
    if ModuleClass.AUDIO in ours and ModuleClass.VISION not in ours:
        sums[ModuleClass.AUDIO] += sums.pop(ModuleClass.VISION, 0)
    return dict(sums)
