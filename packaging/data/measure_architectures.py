"""Measure what transformers makes of every language model's config: parameters and caches.

Reads ``tests/evidence/architectures.jsonl``, whose rows state a type, a class and a small base
config, and writes what was measured back into them:

    "parameters"  of the base, on torch's meta device
    "defaults"    of the class's own defaults; null where they cannot be built
    "changes"     [path, value, parameters] of every single change of a number or a flag that the
                  class takes
    "joint"       [{path: value}, parameters] of a few changes together
    "cache"       bytes of all tensors of the cache after 7, 40 and 41 tokens, batch 1, with
                  random weights in its "dtype" (bfloat16, where the class can); an encoder
                  reads 12 tokens

Needs a Python with torch and transformers, which this project has no other use for:

    python packaging/data/measure_architectures.py [--caches] [TYPE ...]
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import multiprocessing
import os
import random
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.queues import Queue

EVIDENCE = Path(__file__).resolve().parents[2] / "tests" / "evidence" / "architectures.jsonl"
LENGTHS, LONG_LENGTHS, SOURCE_TOKENS = (7, 40, 41), (160, 300, 301), 12
LONG = frozenset({"deepseek_v4", "gemma3n_text", "minimax", "qwen4_exp_text", "glm5_next_text"})
"""Types whose cache is no straight line: measured at more lengths."""
MOST_PARAMETERS = 1_200_000_000
SECONDS_A_CLASS = 90
NEVER_CHANGED = re.compile(
    r"token_id|token_index|dropout|_id$|num_labels|output_|return_|use_cache|torchscript|pruned|seed"
    r"|num_beams|initializer|rope|chunk_size_feed|eps$|is_encoder_decoder|is_decoder|add_cross"
    r"|transformers_version"
)
MAY_BE_STATED = re.compile(r"head|size|dim|rank|expert|layers|width|inter")
NO_CONFIG = ("rope_parameters", "rope_scaling", "id2label", "label2id", "quantization_config")
STATES = ("conv1d_state", "recurrent_states", "conv_state", "ssm_state")
CACHES = ("cache", "past_key_values", "cache_params", "state", "past_buckets_states", "mems")


def model_class(named: str, config: Any) -> Any:
    """The class called ``named``, from transformers or from the module of ``config``."""
    import transformers

    found = getattr(transformers, named, None)
    if found is None:
        home = type(config).__module__.replace(".configuration_", ".modeling_")
        found = getattr(importlib.import_module(home), named)
    return found


def built(row: dict[str, Any], config: dict[str, Any], device: str = "meta") -> Any:
    """The model of a row's class with ``config``."""
    import torch
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    settings = CONFIG_MAPPING[row["type"]].from_dict(json.loads(json.dumps(config)))
    with torch.device(device):
        model = model_class(row["class"], settings)(settings)
    model.tie_weights()
    return model


def parameters(model: Any) -> int:
    """Parameters, a shared tensor once."""
    return sum(p.numel() for p in model.parameters())


def leaves(config: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every value of a config with its dotted path."""
    for key, value in config.items():
        if isinstance(value, dict) and key not in NO_CONFIG:
            yield from leaves(value, (*path, key))
        elif not NEVER_CHANGED.search(key):
            yield ".".join((*path, key)), value


def changed(value: object, key: str) -> object:
    """Another value for ``key``; None where it is left alone."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return {0: 1, 1: 2}.get(value, 2 * value)
    return 8 if value is None and MAY_BE_STATED.search(key) else None


def with_change(config: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """``config`` with one value set."""
    result = json.loads(json.dumps(config))
    *parents, key = path.split(".")
    place = result
    for parent in parents:
        place = place.setdefault(parent, {})
    place[key] = value
    return result


def measure_parameters(row: dict[str, Any]) -> dict[str, Any]:
    """The counts of a row."""
    base = row["base"]
    model = built(row, base)
    found: dict[str, Any] = {"parameters": parameters(model), "defaults": None}
    with contextlib.suppress(Exception):
        found["defaults"] = parameters(built(row, {}))
    stop = time.monotonic() + SECONDS_A_CLASS
    changes: list[list[Any]] = []
    for path, value in leaves(json.loads(json.dumps(model.config.to_dict(), default=str))):
        other = changed(value, path.rpartition(".")[2])
        if other is None or time.monotonic() > stop:
            continue
        with contextlib.suppress(Exception):
            changes.append([path, other, parameters(built(row, with_change(base, path, other)))])
    telling = [change for change in changes if change[2] != found["parameters"]]
    joint: list[list[Any]] = []
    chance = random.Random(0)  # noqa: S311 - the same choice every time
    for _ in range(4 if len(telling) > 2 else 0):
        config, chosen = base, chance.sample(telling, min(len(telling), 4))
        for path, value, _count in chosen:
            config = with_change(config, path, value)
        with contextlib.suppress(Exception):
            joint.append([{p: v for p, v, _ in chosen}, parameters(built(row, config))])
    return found | {"changes": changes, "joint": joint}


def tensors_in(held: object, seen: set[int]) -> Iterator[Any]:
    """Every tensor in a cache, a list, a tuple or a mapping, once."""
    import torch

    if isinstance(held, torch.Tensor):
        if id(held) not in seen and held.dim() > 0:
            seen.add(id(held))
            yield held
    elif isinstance(held, dict):
        for value in held.values():
            yield from tensors_in(value, seen)
    elif isinstance(held, list | tuple):
        for value in held:
            yield from tensors_in(value, seen)
    elif type(held).__module__.startswith("transformers") and not hasattr(held, "forward"):
        yield from tensors_in(getattr(held, "__dict__", {}), seen)


def text_model(config: Any) -> Any:
    """The decoder of a multimodal model by itself, from its part of the config."""
    import transformers

    for auto in (transformers.AutoModelForCausalLM, transformers.AutoModel):
        with contextlib.suppress(ValueError):
            return auto.from_config(config)
    home = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
    own = [
        found
        for name, found in vars(home).items()
        if isinstance(found, type)
        and getattr(found, "config_class", None) is type(config)
        and found.__module__ == home.__name__
        and not name.endswith("PreTrainedModel")
    ]
    ends = ("ForCausalLM", "TextModel", "Decoder", "Model")
    own.sort(key=lambda c: next((i for i, end in enumerate(ends) if c.__name__.endswith(end)), 9))
    return own[0](config)


def decoder(row: dict[str, Any], device: str) -> Any:
    """The model whose cache is measured: the row's own, or the text part of a multimodal one."""
    import torch

    whole = built(row, row["base"])
    text = whole.config.get_text_config(decoder=True)
    if text is whole.config or getattr(whole.config, "is_encoder_decoder", False):
        return built(row, row["base"], device)
    with torch.device(device):
        return text_model(text)


def answer_to_source(model: Any, tokens: Any) -> Any:
    """The decoder's answer after an encoder read words; or sound or images, given as its output."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    try:
        source = torch.randint(3, 100, (1, SOURCE_TOKENS))
        return model(input_ids=source, decoder_input_ids=tokens, use_cache=True)
    except (ValueError, TypeError, AttributeError):
        inner = getattr(model.config, "encoder", model.config)
        width = getattr(inner, "d_model", None) or inner.hidden_size
        states = torch.randn(1, SOURCE_TOKENS, width, dtype=model.dtype)
        given = BaseModelOutput(last_hidden_state=states)
        return model(encoder_outputs=given, decoder_input_ids=tokens, use_cache=True)


def measure_cache(row: dict[str, Any]) -> dict[str, Any] | None:
    """Bytes of the cache by the number of tokens; None where the model is too large to run."""
    import torch
    import transformers

    if parameters(decoder(row, "meta")) > MOST_PARAMETERS:
        return None
    dtype = (row.get("cache") or {}).get("dtype", "bfloat16")
    model = decoder(row, "cpu").to(getattr(torch, dtype)).eval()
    reads_source = "decoder_input_ids" in inspect.signature(model.forward).parameters
    lengths = LENGTHS + (LONG_LENGTHS if row["type"] in LONG else ())
    sizes: dict[str, int] = {}
    for length in lengths:
        tokens = torch.randint(3, 100, (1, length))
        with torch.no_grad():
            if reads_source and getattr(model.config, "is_encoder_decoder", False):
                answer = answer_to_source(model, tokens)
            else:
                answer = model(input_ids=tokens, use_cache=True)
            held = [answer.get(key) for key in CACHES if answer.get(key) is not None][:1]
            if not held:
                # Fills a cache that it is given, and returns none.
                held = [transformers.DynamicCache(config=model.config)]
                model(input_ids=tokens, use_cache=True, cache=held[0])
        for module in model.modules():
            held += [v for k in STATES if isinstance(v := getattr(module, k, None), torch.Tensor)]
        found = list(tensors_in(held, set()))
        sizes[str(length)] = sum(t.numel() * t.element_size() for t in found)
    return {"dtype": dtype, "bytes": sizes}


def measured(row: dict[str, Any], answers: Queue[dict[str, Any]], *, only_caches: bool) -> None:
    """Measure ``row`` in a process of its own, silently."""
    found: dict[str, Any] = {}
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        try:
            if not only_caches:
                found = measure_parameters(row)
            found["cache"] = measure_cache(row)
        except Exception as error:  # noqa: BLE001 - goes into the row
            found["failed"] = f"{type(error).__name__}: {error}"[:200]
    answers.put(found)


def main(types: list[str]) -> int:
    """Measure the rows of ``types``, or all."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    import torch
    import transformers
    import transformers.models.llama.modeling_llama

    torch.set_num_threads(1)
    only_caches = "--caches" in types
    types = [name for name in types if name != "--caches"]
    rows = [json.loads(line) for line in EVIDENCE.read_text(encoding="utf-8").splitlines()]
    fork = multiprocessing.get_context("fork")
    for row in rows:
        if types and row["type"] not in types:
            continue
        answers = fork.Queue()
        worker = fork.Process(
            target=measured, args=(row, answers), kwargs={"only_caches": only_caches}
        )
        worker.start()
        row.pop("failed", None)
        row.update(answers.get(timeout=600), transformers=transformers.__version__)
        worker.join()
        print(row["type"], row["class"], row.get("parameters"), row.get("failed", ""), flush=True)
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    EVIDENCE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
