"""Catalogue entries whose dimensions come from the Hub's table instead of a published config.

A model enters only when the dimensions, through our own reader, give exactly the total that the
Hub publishes; where a repository is closed, the dimensions of an open one with the same
architecture and the same exact total stand for it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from engine.architecture.read import specify
from engine.architecture.spec import Subject
from engine.errors import PlimsollError
from engine.source.catalogue import unfold

if TYPE_CHECKING:
    from collections.abc import Iterator

ORGANISATIONS = frozenset(
    """
    meta-llama google mistralai Qwen microsoft deepseek-ai openai ibm-granite allenai tiiuae nvidia
    HuggingFaceTB CohereLabs CohereForAI zai-org 01-ai internlm LGAI-EXAONE bigcode stabilityai
    EleutherAI facebook bigscience openai-community TinyLlama NousResearch upstage arcee-ai baidu
    tencent ByteDance-Seed HuggingFaceH4 teknium cognitivecomputations lmsys codellama Salesforce
    AI-MO swiss-ai kakaocorp sarvamai utter-project ServiceNow-AI
    """.split()  # noqa: SIM905 - a list of words is easier to read as words
)
# Types whose layers follow from the dimensions alone (no window that the table leaves out).
PLAIN_TYPES = frozenset(
    """
    llama qwen2 qwen3 qwen3_moe mixtral gpt_oss gemma gemma2 granite olmo olmo2 gpt2 gpt_neox opt
    bloom stablelm cohere phi smollm3 seed_oss glm4 mistral exaone internlm2 olmoe arcee nemotron
    ernie4_5 helium apertus
    """.split()  # noqa: SIM905 - a list of words is easier to read as words
)
# The table gives 4,096 for closed repositories. From the model cards.
CONTEXTS = (
    ("Llama-3.1", 131_072), ("Llama-3.2", 131_072), ("Llama-3.3", 131_072),
    ("Meta-Llama-3-", 8_192), ("Llama-2-", 4_096), ("CodeLlama-", 16_384), ("gemma-2-", 8_192),
    ("gemma-2b", 8_192), ("gemma-7b", 8_192), ("gemma-1.1", 8_192), ("codegemma", 8_192),
    ("c4ai-command-r-v01", 131_072), ("Mixtral-8x22B", 65_536), ("Mixtral-8x7B", 32_768),
)  # fmt: skip
PROVEN_GATED = ("meta-llama/", "google/gemma", "google/codegemma")
FALLBACK_CONTEXT = 4_096
NAMES_LEFT_OUT = (
    "gguf",
    "awq",
    "gptq",
    "fp8",
    "int4",
    "int8",
    "4bit",
    "8bit",
    "mlx",
    "nvfp4",
    "onnx",
)


def _dimensions(row: dict[str, Any]) -> dict[str, Any] | None:
    wanted = ("num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size")
    if any(not row.get(key) for key in wanted) or not row.get("moe_intermediate_size"):
        return None
    config: dict[str, Any] = {key: row[key] for key in wanted}
    config["model_type"] = row["architecture"]
    config["num_key_value_heads"] = row.get("num_key_value_heads") or row["num_attention_heads"]
    if row.get("head_dim"):
        config["head_dim"] = row["head_dim"]
    width = row["moe_intermediate_size"]
    if row.get("is_moe"):
        key = (
            "num_local_experts" if row["architecture"] in ("mixtral", "gpt_oss") else "num_experts"
        )
        config[key] = row["num_experts"]
        config["num_experts_per_tok"] = row["active_experts"]
    inside = row["architecture"] == "qwen3_moe"
    config["moe_intermediate_size" if inside else "intermediate_size"] = width
    if row["architecture"] in ("mistral", "mixtral"):
        config["sliding_window"] = 4_096 if row["name"].endswith("7B-v0.1") else None
    return config


def _confirmed(config: dict[str, Any], total: int) -> dict[str, Any] | None:
    for tied in (False, True):
        candidate = {**config, "tie_word_embeddings": tied}
        try:
            spec = specify(candidate)
        except PlimsollError:
            return None
        if spec.parameters == total and not any(d.subject is Subject.WEIGHTS for d in spec.doubts):
            return candidate
    return None


def _context(row: dict[str, Any]) -> int | None:
    for part, length in CONTEXTS:
        if part in row["name"]:
            return length
    length = row.get("context_length")
    closed = not row.get("config_readable_anonymously")
    return None if closed and length == FALLBACK_CONTEXT else length


def _siblings(
    hub: dict[str, dict[str, Any]], models: list[dict[str, Any]]
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Confirmed configs by architecture and exact total."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for model in models:
        config = unfold(model["config"])
        config.pop("quantization_config", None)
        found[model["model_type"], model["parameters"]].append(config)
    for row in hub.values():
        if row["architecture"] not in PLAIN_TYPES or row.get("parameters_rounded"):
            continue
        config = _dimensions(row)
        confirmed = _confirmed(config, row["parameters_raw"]) if config else None
        if confirmed:
            found[row["architecture"], row["parameters_raw"]].append(confirmed)
    return found


def _facts(
    row: dict[str, Any], siblings: dict[tuple[str, int], list[dict[str, Any]]]
) -> tuple[dict[str, Any], str] | None:
    """The row's own dimensions, or those of a model that is the same to the last parameter."""
    own = _dimensions(row)
    config = _confirmed(own, row["parameters_raw"]) if own else None
    if config is not None:
        return config, "dimensions from the Hub's table; equals the total on the Hub"
    same = siblings.get((row["architecture"], row["parameters_raw"]))
    if not same:
        return None
    config = dict(same[0])
    if row["architecture"] in ("mistral", "mixtral"):
        config["sliding_window"] = 4_096 if row["name"].endswith("7B-v0.1") else None
    how = "dimensions of a model with the same architecture and total; equals it on the Hub"
    return config, how


def _is_wanted(name: str, row: dict[str, Any]) -> bool:
    return (
        name.partition("/")[0] in ORGANISATIONS
        and not any(part in name.lower() for part in NAMES_LEFT_OUT)
        and row["architecture"] in PLAIN_TYPES
        and not row.get("parameters_rounded")
    )


# Published in MXFP4 at every size: only the experts.
GPT_OSS_QUANTISATION = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
}


def hub_models(
    hub: dict[str, dict[str, Any]], models: list[dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(id, facts, how it was verified) of further well-known models."""
    siblings = _siblings(hub, models)
    for name, row in hub.items():
        found = _facts(row, siblings) if _is_wanted(name, row) else None
        length = _context(row)
        if found is None or length is None:
            continue
        config, how = found
        for key in ("max_position_embeddings", "architectures", "rope_scaling", "n_positions"):
            config.pop(key, None)
        config["max_position_embeddings"] = length
        if row["architecture"] == "gpt_oss":
            config["quantization_config"] = GPT_OSS_QUANTISATION
        if name.startswith(PROVEN_GATED) and not row.get("config_readable_anonymously"):
            row["gated"] = True
        yield name, config, how
