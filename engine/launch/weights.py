"""The weight format of a plan in a server's words: a dtype, a quantiser, or another file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.formats.weights import FORMATS
from engine.launch.flags import choice
from engine.runtimes.loading import stored_format
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.launch.dialect import Asked, Spoken
    from engine.launch.flags import Version

DTYPES = choice(
    {"auto": "auto", "bf16": "bfloat16", "fp16": "float16", "fp32": "float32"},
    {"half": "fp16", "float": "fp32"},
)
"""``--dtype``: what a checkpoint in plain numbers is loaded as."""


def say(asked: Asked, spoken: Spoken, online: Mapping[str, tuple[Version, Version]]) -> None:
    """Put the plan's weight format into ``dtype`` or ``quantization``, or say what file it takes.

    Args:
        asked: the plan.
        spoken: takes the setting.
        online: formats that the runtime makes while it loads -> first release, and first without.
    """
    name = spoken.values.pop("weight_format", None)
    stored = stored_format(asked.model)
    if name is None or name == stored:
        return
    plain = FORMATS[stored].is_plain if stored in FORMATS else False
    if plain and FORMATS[name].is_plain:
        spoken.values["dtype"] = name
    elif plain and _makes(online.get(name), asked.version):
        spoken.values["quantization"] = name
    else:
        spoken.remarks.append(
            tr(
                "The plan counts the weights as {format}, which are not these files: name the "
                "model that holds them."
            ).format(format=FORMATS[name].label)
        )


def _makes(span: tuple[Version, Version] | None, version: Version) -> bool:
    if span is None:
        return False
    since, until = span
    return since <= version and (not until or version < until)


def heard(values: dict[str, object]) -> str | None:
    """The weight format that ``dtype`` and ``quantization`` of a command come to."""
    dtype, quantised = values.pop("dtype", None), values.pop("quantization", None)
    found = quantised or dtype
    return str(found) if found and found != "auto" else None


def of_model(plan: Deployment, model: Model) -> Deployment:
    """``plan`` once its model is known: a checkpoint that is quantised is loaded as it is stored.

    A dtype then decides activations alone, and the name of a quantiser only names what is there.
    """
    stored = stored_format(model)
    name = plan.weight_format
    if name == "auto" or name not in FORMATS or stored not in FORMATS:
        return plan
    if name == stored or not FORMATS[stored].is_plain:
        return plan.with_(weight_format="auto")
    return plan
