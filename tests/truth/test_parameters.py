"""Parameter counts against transformers on the meta device, and against published totals.

Source:
    ``configs/meta_params.jsonl`` beside the checkout: exact counts by transformers 5.24.0 on
    torch's meta device, one row a published config, grouped by the names of the parameters.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import ArchitectureSpec, Subject
from engine.errors import UnknownArchitectureError
from engine.source import catalogue
from engine.source.raw import RawModel

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CONFIGS = SHARED / "configs"
needs_shared = pytest.mark.skipif(
    not CONFIGS.is_dir(), reason="the published configs are not beside this checkout"
)

# Built from their class's own defaults: transformers takes keys of these files for unknown. Step's
# text model gets the default vocabulary (128,815 instead of 128,896); of the other two it reads
# nothing under ``thinker_config`` and ``decoder_config``, where ours gives the published totals.
DEFAULTS_BUILT = {
    "stepfun-ai/Step-3.7-Flash", "stepfun-ai/Step-3.7-Flash-FP8", "Qwen/Qwen3-ASR-0.6B",
    "microsoft/VibeVoice-1.5B",
}  # fmt: skip
PUBLISHED_TOTALS = {"Qwen/Qwen3-ASR-0.6B": 782_426_112, "microsoft/VibeVoice-1.5B": 2_704_021_985}
# Published where the table of the Hub has no row, or a rounded one.
PUBLISHED = {
    "meta-llama/Llama-2-70b-hf": 68_976_648_192, "LiquidAI/LFM2-700M": 742_489_344,
    "openai/whisper-large-v3": 1_543_490_560, "BAAI/bge-m3": 567_754_752,
    "ibm-granite/granite-4.0-h-micro": 3_191_396_096, "bigcode/starcoder": 15_517_456_384,
    "bigcode/octocoder": 15_517_456_384, "Qwen/Qwen-1_8B-Chat": 1_836_828_672,
    "Qwen/Qwen-72B-Chat": 72_287_920_128, "01-ai/Yi-34B-200K": 34_388_917_248,
    "mistralai/Mistral-7B-v0.3": 7_248_023_552, "Qwen/Qwen3-Reranker-0.6B": 596_049_920,
    "mistralai/Mistral-Nemo-Base-2407": 12_247_782_400,
    "moonshotai/Kimi-Dev-72B": 72_706_203_648,
}  # fmt: skip
WITHOUT_A_TOTAL = {
    "ibm-granite/granite-4.0-h-1b", "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
    "mistralai/Magistral-Small-2509",
}  # fmt: skip
GROUPS = {
    "embedding": "embedding",
    "lm_head": "lm_head",
    "norm": "norm",
    "attention": "attention",
    "mlp_dense": "mlp",
    "experts": "experts",
    "shared_experts": "shared_experts",
    "router": "router",
    "vision": "vision",
    "audio": "audio",
    "other": "other",
}
# The rows are grouped by the spelling of parameter names; where a spelling hides what a tensor
# is, the groups that it confuses are compared as one.
CONFUSED = {
    "nemotron_h": ("attention", "mlp"),
    "kimi_k25": ("vision", "other", "norm"),
    "minicpmv4_6": ("vision", "mlp", "norm"),
    "lfm2_vl": ("embedding", "norm"),
    "voxtral": ("vision", "audio"),
    "gpt2": ("embedding", "other"),
    "gpt_bigcode": ("embedding", "other"),
    "llama": ("lm_head", "other"),
    "mllama": ("attention", "mlp"),
    "bert": ("attention", "mlp", "norm", "other", "embedding", "lm_head"),
    "git": ("attention", "mlp", "norm", "other", "embedding", "vision"),
    "roberta": ("attention", "mlp", "norm", "other", "embedding", "lm_head"),
    "xlm-roberta": ("attention", "mlp", "norm", "other", "embedding", "lm_head"),
    "albert": ("attention", "mlp", "norm", "other", "embedding", "lm_head"),
}
# A default config names no class: for encoders the row's causal class is one of several. MiMo's
# default gives its sliding layers other heads through an attribute that is not written out.
AMBIGUOUS_DEFAULTS = {"bert", "roberta", "xlm-roberta", "camembert", "mimo_v2_flash"}
LEAST_EXACT = 167


def rows(name: str) -> list[dict[str, Any]]:
    text = (CONFIGS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@cache
def counted() -> list[tuple[dict[str, Any], ArchitectureSpec | None]]:
    """Every row that transformers built, with our reading of its config."""
    found: list[tuple[dict[str, Any], ArchitectureSpec | None]] = []
    for row in rows("meta_params.jsonl"):
        if row["status"] != "ok":
            continue
        config = json.loads((CONFIGS / "configs" / row["file"]).read_text(encoding="utf-8"))
        try:
            found.append((row, specify(config)))
        except UnknownArchitectureError:
            found.append((row, None))
    return found


def is_doubted(spec: ArchitectureSpec | None) -> bool:
    return spec is None or any(d.subject is Subject.WEIGHTS for d in spec.doubts)


@needs_shared
def test_that_a_total_is_exact_or_marked_as_doubtful() -> None:
    silent = {
        row["id"]: (spec.parameters, row["params"])
        for row, spec in counted()
        if spec is not None and not is_doubted(spec) and spec.parameters != row["params"]
    }
    assert set(silent) <= DEFAULTS_BUILT, silent
    totals = {row["id"]: spec.parameters for row, spec in counted() if spec is not None}
    assert totals.items() >= PUBLISHED_TOTALS.items()


@needs_shared
def test_that_most_published_configs_are_counted_exactly() -> None:
    exact = sum(
        1 for row, spec in counted() if spec is not None and spec.parameters == row["params"]
    )
    assert exact >= LEAST_EXACT, f"{exact} of {len(counted())} exact"


def merged(sums: dict[str, int], confused: tuple[str, ...]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in sums.items():
        found["+".join(confused) if name in confused else name] += count
    return +found


@needs_shared
def test_that_every_class_of_an_exact_model_is_exact() -> None:
    wrong: dict[str, Any] = {}
    for row, spec in counted():
        if spec is None or is_doubted(spec) or row["id"] in DEFAULTS_BUILT:
            continue
        confused = CONFUSED.get(row["model_type"], ())
        ours = merged({str(k): v for k, v in spec.parameters_by_class().items()}, confused)
        theirs = merged({GROUPS[k]: v for k, v in row["groups"].items()}, confused)
        if ours != theirs:
            wrong[row["id"]] = {
                k: (ours[k], theirs[k]) for k in ours | theirs if ours[k] != theirs[k]
            }
    assert not wrong, wrong


@needs_shared
def test_that_tying_is_read_as_transformers_builds_it() -> None:
    wrong = [
        row["id"]
        for row, spec in counted()
        if spec is not None
        and not is_doubted(spec)
        and row["id"] not in DEFAULTS_BUILT
        and spec.tie_word_embeddings != row["tied_embeddings"]
        and (row["tied_embeddings"] or "lm_head" in row["groups"])
        and not row["model_class"].endswith("ForMaskedLM")
    ]
    assert not wrong


@needs_shared
def test_that_class_defaults_are_filled_in_as_transformers_does() -> None:
    """Each row is the default config of a class, built on the meta device."""
    silent: dict[str, Any] = {}
    exact = 0
    for row in rows("class_defaults.jsonl"):
        if row["status"] != "ok" or row["model_type"] in AMBIGUOUS_DEFAULTS:
            continue
        try:
            spec = specify(row["default_config"] | {"architectures": [row["model_class"]]})
        except UnknownArchitectureError:
            continue
        if spec.parameters == row["params"]:
            exact += not is_doubted(spec)
        elif not is_doubted(spec):
            silent[row["model_type"]] = (spec.parameters, row["params"])
    assert not silent, silent
    assert exact >= 90


@needs_shared
def test_that_the_published_vectors_come_out() -> None:
    vectors = json.loads((SHARED / "memory-model" / "vectors.json").read_text(encoding="utf-8"))
    configs = {
        "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
        "llama-3.1-70b": "meta-llama/Llama-3.3-70B-Instruct",
        "llama-3.2-1b": "meta-llama/Llama-3.2-1B",
        "mixtral-8x7b": "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "qwen2.5-7b": "Qwen/Qwen2.5-7B",
        "qwen3-8b": "Qwen/Qwen3-8B",
        "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
        "gpt-oss-20b": "openai/gpt-oss-20b",
        "gpt-oss-120b": "openai/gpt-oss-120b",
        "deepseek-v3": "deepseek-ai/DeepSeek-V3",
        "qwen3-next-80b-a3b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "gemma-2-9b": "google/gemma-2-9b-it",
    }
    for name, model_id in configs.items():
        entry = catalogue.find(model_id)
        assert entry is not None, model_id
        wanted = vectors["parameters"][name]
        total = wanted.get("params", wanted.get("params_without_mtp"))
        assert read(catalogue.raw(entry)).parameters == total, name


def test_that_every_catalogue_entry_gives_its_own_sums_back() -> None:
    for entry in catalogue.entries():
        model = read(catalogue.raw(entry))
        assert model.parameters == entry.parameters, entry.id
        sums = {str(k): v for k, v in model.spec.parameters_by_class().items() if v}
        assert sums == dict(entry.parameters_by_class), entry.id
        assert model.spec.weight_format == entry.weight_format, entry.id
        assert model.spec.max_position_embeddings == entry.max_position_embeddings, entry.id


def test_that_the_catalogue_is_broad() -> None:
    assert len(catalogue.entries()) >= 150
    assert sum(entry.modality == "text" for entry in catalogue.entries()) >= 100


@needs_shared
def test_that_an_independent_total_confirms_the_catalogue() -> None:
    hub = {row["name"]: row for row in rows("hub_catalogue.jsonl")}
    built = {row["id"]: row.get("params") for row in rows("meta_params.jsonl")}
    index = {row["id"]: row for row in rows("index.jsonl")}
    for entry in catalogue.entries():
        totals = {built.get(entry.id), index.get(entry.id, {}).get("safetensors_total")}
        published = PUBLISHED.get(entry.id) or hub.get(entry.id, {}).get("parameters_raw")
        totals.add(published)
        if entry.parameters in totals or entry.id in WITHOUT_A_TOTAL:
            continue
        # Files hold more than the model: blocks for further tokens, biases that balance experts,
        # masks. What is left beyond the blocks is said, and little.
        origin = hub.get(entry.verified.partition("total of ")[2].partition(";")[0])
        assert " less " in entry.verified or origin["parameters_raw"] == published, entry.id
        further = sum(tensor.elements for tensor in read(catalogue.raw(entry)).spec.mtp)
        rest = min(abs(published - entry.parameters - held) for held in (0, further))
        assert rest < (0.07 if "masks" in entry.verified else 0.01) * published, entry.id


def test_that_a_known_name_with_unknown_fields_is_doubted() -> None:
    entry = catalogue.find("meta-llama/Llama-3.1-8B")
    assert entry is not None
    config = dict(catalogue.raw(entry).config or {}) | {"num_local_experts": 8}
    model = read(RawModel("x", "test", config=config))
    assert [d.subject for d in model.spec.doubts] == [Subject.WEIGHTS]
    assert "num_local_experts" in model.spec.doubts[0].reason
