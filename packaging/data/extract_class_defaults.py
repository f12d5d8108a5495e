"""Extract the class defaults that matter for sizing from the installed transformers.

Published configs leave out every key that equals the default of its class, so a reader
without the defaults guesses wrong. This writes ``resources/data/class_defaults.json``:

    {"transformers": "5.24.0",
     "types": {model_type: {"d": {key: default}, "a": {alias: key}, "s": {sub-config: model_type},
                            "o": {sub-config: {key: value where the sub-config is left out}},
                            "m": [sub-config to which that applies where it is stated in part],
                            "n": [number that the class has and that is None by default],
                            "f": [sub-config whose class is fixed, whatever type it states]}}}

Defaults are the declared ones, before a class fills in what it derives (the KV heads from the
heads, say); the derivation belongs to the reader, since it depends on the stated values.
Defaults of None and False are left out: absent means the same; only the names of the numbers among
them are kept. A sub-config whose class states no type is named after its place:
``mpt.attn_config``.

Beside it, ``config_fields.json`` lists the names of all fields of all classes.

    python packaging/data/extract_class_defaults.py
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Keys that say nothing about the number of parameters or the sequence state.
IRRELEVANT = re.compile(
    r"dropout|pdrop|drop_rate|droppath|_token_id|_token_index|loss|initializer|init_|_std$|eps$"
    r"|epsilon|theta|scal(e|ing)_?(attn|emb|factor)|_act(ivation)?$|act(ivation)?_(fn|func)"
    r"|^mask_|jitter|_cost$|coef|label|return_dict|output_|^architectures|transformers_version"
    r"|use_cache|summary_|problem_type|tie_encoder|gradient|temperature|sampling|pretraining"
    r"|_alpha$|_gamma$|weight$|thresh|multiplier$|time_step_(min|max|floor|limit)|softcap|norm_topk"
    r"|scoring|topk_method|rope_parameters|^dtype$|chunk_size_feed|norm_type|kernels?$|mapby|interleave"
    r"|image_(mean|std)|processor|_mode$|strategy|^bos_|^eos_|^pad_|^sep_|cutoff|limit$|xavier|codebook"
    r"|quantizer|diversity|contrastive|apply_spec|ctc_|fusion|fpn|neck_|anchor|denois|bbox|detection"
)
# Names that the above would take, of keys that do decide a shape.
RELEVANT = re.compile(
    r"^output_(dim|channels|proj_dims|embedding_size|num_channels)$|_output_(dim|channels)$"
    r"|codebooks?(_dim|_size|_vocab_size)?$|^num_(semantic_)?quantizers$|^conv_kernel$|^tdnn_kernel$"
    r"|^(channel|depthwise|ffn)_multiplier$|^(up|down)sampling_(ratios|rate|factor|kernel_size)$"
    r"|^subsampling_|^scale_factor$|^(fusion|neck|fpn)_(hidden_sizes?|out_channels|feature_size)$"
    r"|^(intra_)?bottleneck_\w+$|^tie_codebooks_embeddings$"
)
LONGEST_LIST = 128
LONGEST_TEXT = 40


def matters(name: str) -> bool:
    """Whether the key ``name`` may decide a shape or a state."""
    return bool(RELEVANT.search(name)) or not IRRELEVANT.search(name)


def plain(value: object) -> bool:
    """Whether ``value`` can be kept: a number, a flag, a short word or a short list of those."""
    if isinstance(value, list | tuple):
        return 0 < len(value) <= LONGEST_LIST and all(plain(item) for item in value)
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return isinstance(value, bool | int) and value is not False


def declared(config_class: Any) -> dict[str, object]:
    """The declared defaults of ``config_class`` that are worth keeping."""
    found: dict[str, object] = {}
    for field in dataclasses.fields(config_class):
        value = field.default
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        if value is dataclasses.MISSING or not matters(field.name):
            continue
        if plain(value):
            found[field.name] = value
    return found


def unset(config_class: Any) -> list[str]:
    """The numbers of ``config_class`` that are None by default."""
    return [
        field.name
        for field in dataclasses.fields(config_class)
        if field.default is None and "int" in str(field.type) and matters(field.name)
    ]


def subs(config_class: Any, model_type: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What ``config_class`` says of its sub-configs, by the names in the table.

    Second, the classes that state no type of their own, by the name they get here.
    """
    if not config_class.sub_configs:
        return {}, {}
    try:
        instance = config_class()
    except Exception as error:  # noqa: BLE001 - a class that cannot be built has no sub-configs
        print(f"{config_class.__name__}: {str(error)[:80]}", file=sys.stderr)
        return {}, {}
    nameless: dict[str, Any] = {}
    found: dict[str, Any] = {"s": {}, "o": {}, "m": [], "f": []}
    for name, fixed in config_class.sub_configs.items():
        sub = getattr(instance, name, None)
        spec = config_class.sub_configs_defaults.get(name)
        if sub is None and not (spec and spec.optional):
            continue
        if fixed.__name__ != "AutoConfig":
            found["f"].append(name)
        if sub is None:
            found["s"][name] = spec.model_type
            continue
        found["s"][name] = sub.model_type or f"{model_type}.{name}"
        if not sub.model_type:
            nameless[found["s"][name]] = type(sub)
        own = spec.init_kwargs if spec else {}
        given = differing(sub, own)
        if given:
            found["o"][name] = given
        stated = {"model_type": sub.model_type} if sub.model_type else {}
        with contextlib.suppress(Exception):
            partly = differing(getattr(config_class(**{name: stated}), name), {})
            if any(own.get(key) == value for key, value in partly.items()):
                found["m"].append(name)
    return found, nameless


def differing(sub: Any, given: dict[str, object]) -> dict[str, object]:
    """What ``sub`` has that its class does not declare; of what is declared None, only ``given``.

    Only numbers and flags, and words of ``given`` that are no fields (a pattern of layers): what a
    class derives (lists of layers) is the reader's business.
    """
    own = {f.name: f.default for f in dataclasses.fields(type(sub))}
    words = {
        key: value
        for key, value in given.items()
        if key not in {*own, "model_type"} and isinstance(value, str)
    }
    # Through the dictionary: attributes that vary by layer refuse to be read as one value.
    return words | {
        key: vars(sub)[key]
        for key, default in own.items()
        if (default is not None or key in given)
        and matters(key)
        and isinstance(vars(sub).get(key), bool | int)
        and vars(sub)[key] != default
    }


def extract() -> dict[str, object]:
    """The whole table."""
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.filterwarnings("ignore")
    import transformers
    from transformers.models.auto.configuration_auto import (
        CONFIG_MAPPING,
    )

    types: dict[str, dict[str, object]] = {}
    waiting: dict[str, Any] = {name: CONFIG_MAPPING[name] for name in sorted(CONFIG_MAPPING)}
    while waiting:
        model_type, config_class = waiting.popitem()
        aliases = {
            alias: key for alias, key in config_class.attribute_map.items() if matters(alias)
        }
        below, nameless = subs(config_class, model_type)
        waiting |= nameless
        own = {"d": declared(config_class), "a": aliases, "n": unset(config_class)}
        entry = {**own, **below}
        types[model_type] = {name: part for name, part in entry.items() if part}
    return {"transformers": transformers.__version__, "types": types}


def all_fields() -> list[str]:
    """The names of all fields of all config classes, by any spelling."""
    from transformers.models.auto.configuration_auto import (
        CONFIG_MAPPING,
    )

    names: set[str] = set()
    for name in CONFIG_MAPPING:
        config_class = CONFIG_MAPPING[name]
        names |= {field.name for field in dataclasses.fields(config_class)}
        names |= set(config_class.attribute_map)
    return sorted(name for name in names if not name.startswith("_"))


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "resources" / "data" / "class_defaults.json"
    )
    out: Path = parser.parse_args().out
    table = extract()
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    out.write_text(text + "\n", encoding="utf-8")
    print(f"{out}: {len(text)} bytes")
    fields = out.with_name("config_fields.json")
    fields.write_text(json.dumps(all_fields(), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
