"""The worked example of the first second: a well-known model that this computer can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.read import read
from engine.contract.desk import default_runtime
from engine.errors import PlimsollError, SourceError
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.source import catalogue
from engine.words import tr
from gui.sizing.plan import first_plan

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.devices.device import Machine
    from engine.source.raw import RawModel

CANDIDATES = (
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen2.5-32B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-8B",
    "microsoft/Phi-4-mini-instruct",
    "Qwen/Qwen2.5-3B",
    "Qwen/Qwen3-1.7B",
    "Qwen/Qwen3-0.6B",
)
"""From large to small; the first one of the catalogue that fits is shown."""


def fetch(here: Machine, token: CancelToken) -> RawModel:
    """The example for ``here``.

    Raises:
        SourceError: the catalogue holds none of the candidates.
    """
    last: RawModel | None = None
    for name in CANDIDATES:
        token.raise_if_cancelled()
        entry = catalogue.find(name)
        if entry is None:
            continue
        last = catalogue.raw(entry)
        model = read(last)
        plan = first_plan(default_runtime(model, here))
        try:
            if size(model, plan.deployment, here).verdict.fit is Fit.FITS:
                return last
        except PlimsollError:
            continue
    if last is None:
        message = tr("The bundled catalogue holds no example: open a model's config.json instead.")
        raise SourceError(message)
    return last
