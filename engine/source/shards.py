"""Which files of a folder or repository make up one model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from engine.errors import HeaderError
from engine.source import gguf
from engine.source.bounded_json import parse_object
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sized

    from engine.source.raw import HeaderTensor

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
SHARD = re.compile(r"-(?P<part>\d{5})-of-(?P<parts>\d{5})\.safetensors$")
_FOREIGN = ("adapter_", "optimizer", "training_")
"""Files that may lie beside a model's weights: adapters, training state."""
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
MAX_SHARDS = 4096
MAX_TENSORS = 1_000_000
"""Of one model; the largest published ones have some 150,000."""


def is_weights(name: str) -> bool:
    """Whether ``name`` says that safetensors weights of the model itself are meant."""
    return name == INDEX or (name.endswith(".safetensors") and not name.startswith(_FOREIGN))


def is_adapter(names: Collection[str]) -> bool:
    """Whether files of these names are an adapter, and not a model that has one beside it."""
    models = (name for name in gguf_models(names) if "lora" not in name.lower())
    return ADAPTER_CONFIG in names and not any(map(is_weights, names)) and not any(models)


def parse_index(data: bytes) -> dict[str, str]:
    """Tensor name -> file name, from ``model.safetensors.index.json``.

    Raises:
        HeaderError: not an index, or one that points outside its folder.
    """
    weight_map = parse_object(data, INDEX, HeaderError).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise HeaderError(tr("{index} has no weight_map.").format(index=INDEX), field="weight_map")
    entries = cast("dict[str, object]", weight_map)
    for name in set(map(str, entries.values())):
        if not name.endswith(".safetensors") or re.search(r"[\\/:\0]", name):
            raise HeaderError(
                tr("{index} points to {name!r}.").format(index=INDEX, name=name[:80]),
                field="weight_map",
            )
    if not all(isinstance(value, str) for value in entries.values()):
        raise HeaderError(
            tr("{index} has a weight_map with something else than names.").format(index=INDEX)
        )
    if len(set(entries.values())) > MAX_SHARDS:
        raise HeaderError(
            tr("{index} names more than {max_shards} files.").format(
                index=INDEX, max_shards=grouped(MAX_SHARDS)
            )
        )
    return cast("dict[str, str]", weight_map)


def wanted(names: Iterable[str], index: Mapping[str, str] | None) -> tuple[str, ...]:
    """Weight files that make up the model; some may be missing from ``names``.

    Raises:
        HeaderError: several files, and nothing says which belong together.
    """
    if index is not None:
        return tuple(sorted(set(index.values())))
    # ``consolidated…`` is a second copy in another layout, so the names of ``model…`` go first.
    files = sorted(
        (n for n in names if is_weights(n)), key=lambda n: (not n.startswith("model"), n)
    )
    if SINGLE in files:
        return (SINGLE,)
    series = [n for n in files if SHARD.search(n)]
    if series:
        match = SHARD.search(series[0])
        parts = int(match["parts"]) if match else 0
        if not 0 < parts <= MAX_SHARDS:
            raise HeaderError(
                tr("{series} claims to be one of {parts} files.").format(
                    series=series[0], parts=grouped(parts)
                )
            )
        stem = SHARD.sub("", series[0])
        return tuple(f"{stem}-{n:05d}-of-{parts:05d}.safetensors" for n in range(1, parts + 1))
    if len(files) != 1:
        raise HeaderError(
            tr(
                "{names} …: nothing says which of {files} weight files belong "
                "together; open one of them."
            ).format(names=", ".join(files[:3]), files=len(files))
        )
    return (files[0],)


def joined(
    tables: Mapping[str, tuple[HeaderTensor, ...]], index: Mapping[str, str] | None
) -> tuple[HeaderTensor, ...]:
    """Tensors of all files, each name once.

    Raises:
        HeaderError: a name in two files, or an index that the headers contradict.
    """
    home: dict[str, str] = {}
    for file, table in tables.items():
        for tensor in table:
            if tensor.name in home:
                raise HeaderError(
                    tr("{name!r} is in {home} and in {file}.").format(
                        name=tensor.name[:80], home=home[tensor.name], file=file
                    ),
                    field=tensor.name,
                )
            home[tensor.name] = file
    for name, file in (index or {}).items():
        if home.get(name) != file:
            raise HeaderError(
                tr("{index} says that {file} holds {name!r}, but it doesn't.").format(
                    index=INDEX, file=file, name=name[:80]
                )
            )
    return tuple(tensor for table in tables.values() for tensor in table)


def gguf_models(names: Iterable[str]) -> tuple[str, ...]:
    """GGUF models among ``names``: of a split one its first part, projectors left out."""
    found = (n for n in names if n.lower().endswith(".gguf") and not is_projector(n))
    return tuple(dict.fromkeys(gguf.parts_of(n)[0] for n in found))


def matching(models: Iterable[str], quantisation: str) -> tuple[str, ...]:
    """Those of ``models`` (paths) that carry the name of ``quantisation``, whatever its case."""
    name = re.escape(quantisation)
    pattern = re.compile(rf"(?:^|[-._/]){name}(?:[-./]|$)", re.IGNORECASE)
    return tuple(model for model in models if pattern.search(model))


def is_projector(name: str) -> bool:
    """Whether a GGUF file is the vision or audio part that goes with a model."""
    return "mmproj" in name.rsplit("/", 1)[-1].lower()


def bounded(tables: Mapping[str, Sized]) -> None:
    """Stop reading shard after shard of a model that cannot be one.

    Raises:
        HeaderError: there are more tensors than ``MAX_TENSORS``.
    """
    if sum(map(len, tables.values())) > MAX_TENSORS:
        raise HeaderError(
            tr("The files hold more than {max_tensors} tensors; no model does.").format(
                max_tensors=grouped(MAX_TENSORS)
            )
        )


def header_count(files: int) -> str:
    """Phrase for the evidence line."""
    return (
        tr("headers of {files} safetensors files").format(files=files)
        if files > 1
        else tr("safetensors header")
    )
