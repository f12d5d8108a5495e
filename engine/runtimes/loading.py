"""What a runtime loads where the weight format is left to it: as stored, or converted first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.runtimes.registry import family
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.model import Model

_AS_THEY_ARE = {"bf16": "BF16", "fp16": "F16"}
"""Stored formats whose values the converter copies."""
_KEEPS_MXFP4 = frozenset({"gpt_oss"})
"""Types whose MXFP4 experts the converter copies (``convert_hf_to_gguf.py``)."""
_EXPERTS_KEPT = "MXFP4_MOE"
_FETCHED_SMALL = frozenset({"ollama", "lmstudio"})
"""Programs with a library of GGUF files, whose default is ``_SMALL``."""
_SMALL = "Q4_K_M"


class Loaded(NamedTuple):
    """What ``auto`` comes to."""

    name: str
    """Weight format, or GGUF mix."""
    is_stored: bool = True
    """False where the checkpoint is converted first."""


def stored_format(model: Model) -> str:
    """The name of the format the model is stored in."""
    return model.stored.format_label if model.stored else model.spec.weight_format


def loaded(model: Model, runtime: str) -> Loaded:
    """What ``runtime`` loads of ``model`` where no weight format is chosen.

    vLLM and Transformers load a checkpoint as it is; llama.cpp loads GGUF files, which its
    converter writes in 16 bits from every checkpoint that it reads, MXFP4 experts apart.
    Programs that run llama.cpp fetch files of their library, which is Q4_K_M by default.
    """
    stored = stored_format(model)
    if family(runtime) != "llama.cpp" or model.is_gguf:
        return Loaded(stored)
    if stored == "mxfp4" and model.spec.model_type in _KEEPS_MXFP4:
        return Loaded(_EXPERTS_KEPT, is_stored=False)
    if runtime in _FETCHED_SMALL:
        return Loaded(_SMALL, is_stored=False)
    half = "F16" if model.spec.dtype == "float16" else "BF16"
    return Loaded(half, is_stored=_AS_THEY_ARE.get(stored) == half)


def in_words(found: Loaded, label: str) -> str:
    """``BF16, as stored`` or ``BF16 GGUF, converted``, with ``label`` for the format."""
    return (
        tr("{label}, as stored").format(label=label)
        if found.is_stored
        else tr("{name} GGUF, converted").format(name=found.name)
    )


def conversion(model: Model) -> str:
    """What llama.cpp's ``auto`` assumes of a checkpoint that is no GGUF file."""
    found = loaded(model, "llama.cpp")
    if found.is_stored:
        return tr("Counted as the {name} GGUF that llama.cpp's converter writes.").format(
            name=found.name
        )
    if found.name == _EXPERTS_KEPT:
        return tr(
            "{name}: the converter keeps the experts in MXFP4 as stored; everything else is "
            "counted in Q8_0, as in the GGUF file that llama.cpp's makers publish."
        ).format(name=_EXPERTS_KEPT)
    return tr(
        "llama.cpp doesn't load {stored} as stored: counted as the {name} GGUF that its converter "
        "writes."
    ).format(stored=stored_format(model), name=found.name)
