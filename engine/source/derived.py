"""Relatives of bundled models, known by their names alone where no repository can be read.

``Qwen/Qwen3-14B-AWQ`` or ``RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8`` is a bundled model and a
way to store it: the words at the end of the name say which, and what such a name usually means on
the Hub stands for the config. ``google/gemma-4-12B`` is ``google/gemma-4-12B-it`` before it was
tuned: one architecture. The source says what was not checked.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.source import catalogue
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.source.catalogue import CatalogueEntry
    from engine.source.raw import RawModel

_PLAIN = frozenset({"bf16", "fp16", "fp32"})
_WORDS = frozenset(
    """
    auto autoround awq bnb block dynamic fp8 gptq int4 int8 mlx mxfp4 nvfp4 quant quantized round
    static sym asym unsloth w4a16 w8a16 w8a8 2bit 3bit 4bit 5bit 6bit 8bit g32 g64 g128
    """.split()  # noqa: SIM905 - a list of words is easier to read as words
)
"""Words that say how a copy is stored, and nothing of the model."""
_TRAINED = frozenset({"base", "chat", "hf", "instruct", "it", "pt", "thinking", "2507"})
"""Words that say how a model was trained, and nothing of its layers."""
_SPLIT = re.compile(r"[-_.](?=[^-_.]+$)")
_BITS = re.compile(r"(?:int|w)?(\d)(?:bit|a16|a8)?")
_BLOCK_BY_HABIT = frozenset({"qwen", "deepseek-ai", "minimaxai", "xiaomimimo"})
"""Who means 128 × 128 blocks where a name says only FP8."""
_GROUPS = ("g32", "g64", "g128")
_KEPT_ALONE = ["lm_head", "re:.*mlp.gate$", "re:.*vision.*", "re:.*visual.*"]


def derived(name: str) -> RawModel | None:
    """The bundled model of which ``name`` seems to be a relative; None for every other."""
    organisation, _, rest = name.strip().rpartition("/")
    rest, words = _stripped(rest)
    entry = _plain_entries().get(_key(rest))
    if words:
        entry = entry or _siblings().get(_family(rest), {}).get("")
        stored = _stored(words, organisation.lower())
        said = tr("stored as its name says")
    else:
        # Others give their own models old names: one organisation's are of one family.
        entry = _siblings().get(_family(rest), {}).get(organisation.lower())
        stored, said = {}, tr("the same but for its training, by its name")
    if entry is None or stored is None:
        return None
    plain = catalogue.raw(entry)
    source = tr("{mirrored}{id}; {said}, not checked").format(
        mirrored=catalogue.MIRRORED, id=entry.id, said=said
    )
    return replace(plain, id=name.strip(), source=source, config={**(plain.config or {}), **stored})


def _stripped(name: str) -> tuple[str, tuple[str, ...]]:
    """``name`` without the words at its end that say how it is stored, and these words."""
    words: list[str] = []
    while True:
        parts = _SPLIT.split(name, maxsplit=1)
        if len(parts) == 1 or parts[1].lower() not in _WORDS:
            return name, tuple(words)
        name = parts[0]
        words.insert(0, parts[1].lower())


def _key(name: str) -> str:
    return name.lower().removeprefix("meta-").removesuffix("-bf16")


def _family(name: str) -> str:
    """``name`` without the words that say how a model was trained."""
    return "-".join(word for word in _key(name).split("-") if word not in _TRAINED)


@cache
def _plain_entries() -> dict[str, CatalogueEntry]:
    """Models that are published in plain numbers, by name without the organisation."""
    found: dict[str, CatalogueEntry] = {}
    for entry in catalogue.entries():
        if entry.weight_format in _PLAIN:
            found.setdefault(_key(entry.name), entry)
    return found


@cache
def _siblings() -> dict[str, dict[str, CatalogueEntry]]:
    """Models in plain numbers by family and organisation; the most wanted under ``""`` too."""
    found: dict[str, dict[str, CatalogueEntry]] = {}
    for entry in catalogue.entries():
        if entry.weight_format in _PLAIN:
            same = found.setdefault(_family(entry.name), {})
            same.setdefault(entry.organisation.lower(), entry)
            same.setdefault("", entry)
    return found


def _stored(words: tuple[str, ...], organisation: str) -> dict[str, Any] | None:
    """The quantisation of a config as such a name usually has it; None where it says too little."""
    said = set(words)
    bits = next((int(m[1]) for w in reversed(words) if (m := _BITS.fullmatch(w))), 4)
    group = next((int(w[1:]) for w in words if w in _GROUPS), 0)
    if organisation.startswith("mlx") or "mlx" in said:
        mode = {"mode": "mxfp4"} if "mxfp4" in said else {}
        return {"quantization": {"group_size": group or (32 if mode else 64), "bits": bits, **mode}}
    if said == {"fp8"} and organisation in _BLOCK_BY_HABIT:
        said.add("block")
    return next((how(bits, group or 128) for method, how in _METHODS if method <= said), None)


def _quantised(**stated: Any) -> dict[str, Any]:
    return {"quantization_config": stated}


def _compressed(kind: str, bits: int, strategy: str) -> dict[str, Any]:
    weights: dict[str, Any] = {"num_bits": bits, "type": kind, "strategy": strategy}
    weights |= {"symmetric": True, "group_size": 128 if strategy == "group" else None}
    layout = "pack-quantized" if strategy == "group" else f"{kind}-quantized"
    return _quantised(
        quant_method="compressed-tensors", format=layout, ignore=_KEPT_ALONE,
        config_groups={"group_0": {"targets": ["Linear"], "weights": weights}},
    )  # fmt: skip


def _bitsandbytes(bits: int, _group: int) -> dict[str, Any]:
    four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
    return _quantised(
        quant_method="bitsandbytes", load_in_4bit=bits == 4, load_in_8bit=bits == 8, **four
    )


def _awq(bits: int, group: int) -> dict[str, Any]:
    return _quantised(quant_method="awq", bits=bits, group_size=group, zero_point=True)


def _gptq(bits: int, group: int) -> dict[str, Any]:
    return _quantised(quant_method="gptq", bits=bits, group_size=group, desc_act=False)


def _fp8_block(_bits: int, _group: int) -> dict[str, Any]:
    blocks = {"weight_block_size": [128, 128], "activation_scheme": "dynamic"}
    return _quantised(quant_method="fp8", **blocks)


def _nvfp4(_bits: int, _group: int) -> dict[str, Any]:
    return _quantised(quant_method="modelopt", quant_algo="NVFP4", exclude_modules=["lm_head"])


_METHODS: tuple[tuple[frozenset[str], Callable[[int, int], dict[str, Any]]], ...] = (
    (frozenset({"awq"}), _awq),
    (frozenset({"gptq"}), _gptq),
    (frozenset({"autoround"}), _gptq),
    (frozenset({"bnb"}), _bitsandbytes),
    (frozenset({"fp8", "block"}), _fp8_block),
    (frozenset({"fp8"}), lambda _bits, _group: _compressed("float", 8, "channel")),
    (frozenset({"w8a8"}), lambda _bits, _group: _compressed("int", 8, "channel")),
    (frozenset({"w8a16"}), lambda _bits, _group: _compressed("int", 8, "channel")),
    (frozenset({"int8"}), lambda _bits, _group: _compressed("int", 8, "channel")),
    (frozenset({"w4a16"}), lambda _bits, _group: _compressed("int", 4, "group")),
    (frozenset({"int4"}), lambda _bits, _group: _compressed("int", 4, "group")),
    (frozenset({"nvfp4"}), _nvfp4),
)
"""What a name has to say -> (bits, group size) to the quantisation; the first that is said."""
