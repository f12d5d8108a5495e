"""Real configs changed by one key: the answer is right, marked as a bound, or one clear error.

A key that is renamed, nested elsewhere or given another type is one that nobody can read; where
that alters what we count, the answer has to say so. A key that is left out takes the default of
its class, as transformers does; where the class is not known, that too has to be said.

Source:
    the published configs beside the checkout; the mutations are ours.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import ArchitectureSpec, Subject
from engine.budget.sequence_state import architecture_bytes
from engine.config.defaults import class_defaults
from engine.errors import PlimsollError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONFIGS = Path(__file__).resolve().parents[2].parent / "shared" / "configs" / "configs"
pytestmark = pytest.mark.skipif(
    not CONFIGS.is_dir(), reason="the published configs are not beside this checkout"
)
# Neither changes what a config describes: which class and which release wrote it.
NOT_MUTATED = {"architectures", "auto_map", "model_type", "transformers_version"}
ONE_IN = 3
"""Each key is changed in one of so many configs that state it: the whole takes minutes."""
# What the config classes of such checkpoints say by themselves: as many key/value heads as query
# heads, no shared expert, no bias.
SAID_BY_REMOTE_CODE = {"num_key_value_heads", "num_shared_experts", "add_qkv_bias", "qkv_bias"}
# Its absence is said among the assumptions of a plan.
SAID_ELSEWHERE = {"torch_dtype", "dtype"}
# A list of layers is as good as one.
ALSO_A_LIST = {"vision_feature_layer"}
TOKENS = 3_000
Path_ = tuple[str, ...]


@cache
def readable() -> list[tuple[str, dict[str, Any], ArchitectureSpec]]:
    """Configs that are read without a doubt."""
    found: list[tuple[str, dict[str, Any], ArchitectureSpec]] = []
    for path in sorted(CONFIGS.glob("*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        try:
            spec = specify(config)
        except PlimsollError:
            continue
        if not spec.doubts:
            found.append((path.stem, config, spec))
    return found


def keys(config: dict[str, Any]) -> Iterator[Path_]:
    """Every key at the root and one level down, storage left out."""
    for key, value in config.items():
        if key in NOT_MUTATED:
            continue
        if value is None:
            continue
        yield (key,)
        if isinstance(value, dict) and key.endswith("_config") and "quant" not in key:
            yield from ((key, inner) for inner in value if inner not in NOT_MUTATED)


def moved(
    config: dict[str, Any], path: Path_, change: Callable[[dict[str, Any], str], None]
) -> Any:
    """A copy in which ``change`` was made to the object that holds the last key of ``path``."""
    result = dict(config)
    place = result
    for key in path[:-1]:
        place[key] = dict(place[key])
        place = place[key]
    change(place, path[-1])
    return result


def chosen(change: Any) -> Iterator[tuple[str, dict[str, Any], ArchitectureSpec, Path_]]:
    """(name, config, its spec, key) of the changes that are tried."""
    for name, config, spec in readable():
        for path in keys(config):
            if crc32(f"{change.__name__} {name} {path}".encode()) % ONE_IN == 0:
                yield name, config, spec, path


def drop(place: dict[str, Any], key: str) -> None:
    del place[key]


def rename(place: dict[str, Any], key: str) -> None:
    place[f"{key}_x"] = place.pop(key)


def respell(place: dict[str, Any], key: str) -> None:
    place[key[:1].upper() + key[1:]] = place.pop(key)


def nest(place: dict[str, Any], key: str) -> None:
    place["settings"] = {key: place.pop(key)}


def as_text(place: dict[str, Any], key: str) -> None:
    place[key] = json.dumps(place[key])


def as_list(place: dict[str, Any], key: str) -> None:
    place[key] = [place[key], place[key]]


def as_object(place: dict[str, Any], key: str) -> None:
    place[key] = {"value": place[key]}


def as_null(place: dict[str, Any], key: str) -> None:
    place[key] = None


UNREADABLE = (rename, respell, nest, as_text, as_list, as_object)


def figures(spec: ArchitectureSpec) -> dict[Subject, object]:
    return {
        Subject.WEIGHTS: (spec.parameters, sum(t.parameters for t in spec.mtp), spec.weight_format),
        Subject.SEQUENCE_STATE: architecture_bytes(spec, "bf16", TOKENS),
    }


def silent(
    config: dict[str, Any], spec: ArchitectureSpec, path: Path_, change: Any
) -> set[Subject] | None:
    """What changed without a word; None where the answer is an error."""
    try:
        other = specify(moved(config, path, change))
    except PlimsollError as error:
        sentence = error.message
    else:
        before, after = figures(spec), figures(other)
        return {s for s in before if before[s] != after[s] and other.direction(s) is None}
    assert 10 < len(sentence) < 400, (path, sentence)
    return None


@pytest.mark.parametrize("change", UNREADABLE, ids=lambda change: change.__name__)
def test_that_what_cannot_be_read_changes_nothing_in_silence(change: Any) -> None:
    wrong = [
        (name, ".".join(path), sorted(subjects))
        for name, config, spec, path in chosen(change)
        if not (change is as_list and path[-1] in ALSO_A_LIST)
        and (subjects := silent(config, spec, path, change))
    ]
    assert not wrong, (len(wrong), wrong[:20])


def test_that_what_is_left_out_takes_its_class_default_or_is_said_to_be_missing() -> None:
    wrong: list[object] = []
    for name, config, spec, path in chosen(drop):
        if path[-1] in SAID_BY_REMOTE_CODE | SAID_ELSEWHERE:
            continue
        owner: Any = config[path[0]] if len(path) > 1 else config
        types = (owner.get("model_type") or "", spec.model_type)
        if not any(map(class_defaults, types)) and silent(config, spec, path, drop):
            wrong.append((name, ".".join(path)))
    assert not wrong, (len(wrong), wrong[:20])


def test_that_a_null_is_read_or_refused() -> None:
    for _, config, spec, path in chosen(as_null):
        silent(config, spec, path, as_null)
