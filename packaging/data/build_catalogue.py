"""Build ``resources/data/catalogue.json`` from a folder of published configs and exact totals.

    python packaging/data/build_catalogue.py ../shared/configs

The folder holds ``configs/*.json``, ``index.jsonl`` (id, licence, gating, how the total was
verified), ``meta_params.jsonl`` (exact counts on the meta device) and ``hub_catalogue.jsonl``
(totals, dimensions and downloads on the Hub).

An entry keeps the keys that the reader asks for, and nothing else: the config is read through a
recording mapping. A model enters only when our own count equals an independent one: the meta
device's, or the total that the Hub publishes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from catalogue_hub import hub_models  # noqa: E402 - beside this file; the path is set above
from catalogue_more import twins, written_models  # noqa: E402 - as above

from engine.architecture.read import specify  # noqa: E402
from engine.architecture.spec import ArchitectureSpec, Subject  # noqa: E402
from engine.errors import PlimsollError  # noqa: E402
from engine.source.catalogue import fold, unfold  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

FAILED_SILENTLY = {"microsoft/VibeVoice-1.5B", "Qwen/Qwen3-ASR-0.6B"}
SAME_FIELDS = ("weight_format", "kv_cache_dtype", "dtype", "max_position_embeddings")
MODALITIES = {
    "image-text-to-text": "image-text",
    "any-to-any": "image-text",
    "text-to-speech": "audio-text",
    "feature-extraction": "embedding",
}
QUANTISATION_KEPT = (
    "quant_method", "bits", "group_size", "weight_block_size", "format", "quant_algo",
    "kv_cache_scheme", "kv_cache_quant_algo", "load_in_4bit", "load_in_8bit",
    "bnb_4bit_use_double_quant", "packing_format", "data_type", "activation_scheme", "scale_fmt",
)  # fmt: skip
PATTERN_KEYS = ("modules_to_not_convert", "ignore", "exclude_modules")
LAYER = re.compile(r"(?<=layers\.)\d+(?=\.|\*|$)")


class Recording(dict[str, Any]):
    """A mapping that remembers which of its keys were read."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__({k: Recording(v) if isinstance(v, dict) else v for k, v in values.items()})
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """As a mapping's ``get``; a hit counts as read."""
        if key in self:
            self.read.add(key)
        return super().get(key, default)

    def kept(self) -> dict[str, Any]:
        """The keys that were read, with their values."""
        found: dict[str, Any] = {}
        for key in sorted(self.read & self.keys()):
            value = dict.__getitem__(self, key)
            found[key] = value.kept() if isinstance(value, Recording) else value
        return found


def by_layer(names: list[str]) -> list[Any]:
    """``names`` with those that differ only in the layer number joined."""
    numbers: dict[str, list[int]] = {}
    for name in names:
        match = LAYER.search(name)
        numbers.setdefault(LAYER.sub("#", name, count=1), []).append(int(match[0]) if match else -1)
    found: list[Any] = []
    for pattern, layers in sorted(numbers.items()):
        if layers == [-1]:
            found.append(pattern)
            continue
        ranges: list[list[int]] = []
        for number in sorted(layers):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        found.append({"each": pattern, "over": ranges})
    return found


def compact_quantisation(config: dict[str, Any]) -> dict[str, Any]:
    """What decides the format, with one pattern where all layers have the same."""
    found = {key: config[key] for key in QUANTISATION_KEPT if config.get(key) is not None}
    groups = config.get("config_groups")
    if isinstance(groups, dict) and groups:
        first = next(iter(groups.values()))
        wanted = ("num_bits", "type", "strategy", "group_size", "symmetric", "dynamic")
        found["config_groups"] = {"group_0": {}}
        for part in ("weights", "input_activations"):
            stated = first.get(part) or {}
            kept = {key: stated[key] for key in wanted if stated.get(key) is not None}
            if kept:
                found["config_groups"]["group_0"][part] = kept
    for key in PATTERN_KEYS:
        patterns = config.get(key)
        if isinstance(patterns, list):
            found[key] = by_layer(sorted({p for p in patterns if "norm" not in p}))
    layers = config.get("quantized_layers")
    if isinstance(layers, dict):
        names: dict[str, list[str]] = {}
        for name, how in layers.items():
            # Experts of a layer are stored alike: the first stands for all.
            if ".experts." not in name or re.search(r"experts\.0\.", name):
                names.setdefault(str(how.get("quant_algo")), []).append(name)
        found["quantized_layers"] = {
            "by_name": [
                [item, {"quant_algo": algorithm}]
                for algorithm, listed in sorted(names.items())
                for item in by_layer(sorted(listed))
            ]
        }
    return found


def compact(config: dict[str, Any]) -> dict[str, Any]:
    """The facts of ``config``: what the reader asks for."""
    recording = Recording(config)
    specify(recording)
    facts = recording.kept()
    for owner, source in ((facts, config), *((facts.get(k), config.get(k)) for k in list(facts))):
        if isinstance(owner, dict) and isinstance(source, dict) and "quantization_config" in owner:
            owner["quantization_config"] = compact_quantisation(source["quantization_config"])
    for noise in ("auto_map", "transformers_version"):
        facts.pop(noise, None)
    return fold(facts)


def in_doubt(spec: ArchitectureSpec) -> bool:
    """Whether the weights of ``spec`` are only a bound."""
    return any(doubt.subject is Subject.WEIGHTS for doubt in spec.doubts)


def stored_tensors(spec: ArchitectureSpec) -> list[Any]:
    """What decides the bytes of every layer."""
    return [[(t.name, t.shape, t.copies, t.stored_as) for t in x.tensors] for x in spec.layers]


def same(full: ArchitectureSpec, small: ArchitectureSpec) -> bool:
    """Whether the compact facts describe the same model."""
    return (
        full.parameters_by_class() == small.parameters_by_class()
        and full.attentions == small.attentions
        and full.doubts == small.doubts
        and stored_tensors(full) == stored_tensors(small)
        and all(getattr(full, name) == getattr(small, name) for name in SAME_FIELDS)
    )


def is_gated(hub: dict[str, Any]) -> bool | None:
    """Proven consent, or the opposite where the config could be read without an account."""
    if hub.get("gated"):
        return True
    return False if hub.get("config_readable_anonymously") else None


def entry(
    model_id: str, facts: dict[str, Any], spec: ArchitectureSpec, hub: dict[str, Any], verified: str
) -> dict[str, Any]:
    """One line of the catalogue."""
    sums = {str(k): v for k, v in sorted(spec.parameters_by_class().items()) if v}
    stated = unfold(facts).get("model_type") or spec.model_type
    tag = hub.get("pipeline_tag") or ""
    beside = sums.get("vision", 0)
    modality = MODALITIES.get(tag) or ("image-text" if beside else "text")
    return {
        "id": model_id,
        "model_type": stated,
        "parameters": sum(sums.values()),
        "weight_format": spec.weight_format,
        "max_position_embeddings": spec.max_position_embeddings,
        "modality": "audio-text" if "audio" in sums and not beside else modality,
        "gated": is_gated(hub),
        "licence": hub.get("license"),
        "downloads": hub.get("hf_downloads"),
        "verified": verified,
        "config": facts,
        "parameters_by_class": sums,
    }


def is_mislabelled(model_id: str, spec: ArchitectureSpec) -> bool:
    """Whether a quantised repository's config keeps its quantisation in another file."""
    quantised = re.search(r"NVFP4|FP8|AWQ|GPTQ|INT[48]", model_id, re.IGNORECASE)
    return bool(quantised) and spec.weight_format in ("bf16", "fp16", "fp32")


def published(folder: Path, hub: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries from published configs whose total is confirmed."""
    index = {row["id"]: row for row in rows(folder / "index.jsonl")}
    found: list[dict[str, Any]] = []
    for meta in rows(folder / "meta_params.jsonl"):
        row = index[meta["id"]]
        config = json.loads((folder / "configs" / meta["file"]).read_text(encoding="utf-8"))
        if meta["id"] in FAILED_SILENTLY:
            continue
        try:
            spec = specify(config)
        except PlimsollError as error:
            print(f"left out {meta['id']}: {error}", file=sys.stderr)
            continue
        total = meta.get("params")
        how = "equals the count on the meta device (transformers 5.24.0)"
        if total is None:
            total, how = row.get("safetensors_total"), "equals the total on the Hub"
        # Of a count that is confirmed only the storage can be in doubt, and that is said.
        if spec.parameters != total:
            print(f"left out {meta['id']}: {spec.parameters} against {total}", file=sys.stderr)
            continue
        if is_mislabelled(meta["id"], spec):
            print(f"left out {meta['id']}: its config has no quantisation", file=sys.stderr)
            continue
        facts = compact(config)
        if not same(spec, specify(unfold(facts))):
            print(f"left out {meta['id']}: the facts do not give the model back", file=sys.stderr)
            continue
        if row["verified"] == "exact":
            how += "; equals the total on the Hub"
        known = {**hub.get(meta["id"], {}), "gated": row.get("gated")}
        known["license"] = row.get("license") or known.get("license")
        found.append(entry(meta["id"], facts, spec, known, how))
    return found


def add(
    models: list[dict[str, Any]],
    found: Iterable[tuple[str, dict[str, Any], str]],
    hub: dict[str, dict[str, Any]],
) -> None:
    """Enter what is not there yet, and not in doubt."""
    known = {model["id"].lower() for model in models}
    for model_id, config, how in list(found):
        spec = specify(config)
        if model_id.lower() not in known and not in_doubt(spec):
            known.add(model_id.lower())
            models.append(entry(model_id, fold(config), spec, hub.get(model_id, {}), how))


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Write the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "resources" / "data" / "catalogue.json")
    parser.add_argument(
        "--read", type=date.fromisoformat, required=True, help="day on which the Hub was read"
    )
    arguments = parser.parse_args()
    hub = {row["name"]: row for row in rows(arguments.folder / "hub_catalogue.jsonl")}
    models = published(arguments.folder, hub)
    add(models, hub_models(hub, models), hub)
    add(models, written_models(hub, models), hub)
    add(models, twins(hub, models), hub)
    models.sort(key=lambda model: (-(model["downloads"] or 0), model["id"]))
    source = "published configs; totals checked, see each entry"
    lines = ",\n".join(json.dumps(m, sort_keys=True, separators=(",", ":")) for m in models)
    head = f'"source":{json.dumps(source)},"read":"{arguments.read}"'
    arguments.out.write_text(f'{{{head},"models":[\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{arguments.out}: {len(models)} models, {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
