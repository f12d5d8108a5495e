"""Why a figure is off, record by record; for the tables of the worst."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.truth.scoring.scores import Score

REASONS: dict[tuple[str, str], str] = {
    ("rapidmlx-card-gpt-oss-20b-mxfp4-q8", "active"): (
        "its file holds all but the experts in 8 bits; the request is of OpenAI's, in 16"
    ),
    ("rapidmlx-card-", "active"): "printed to a tenth of a GB, with the caches of its prompts",
    ("mlxvlm-gemma-4-31b-it-128k-none", "kv"): (
        "printed while the prompt was read, when a window holds the chunk too: 13.3 GB"
    ),
    ("mlxvlm-gemma-4-31b-it-128k-none", "peak"): "mlx-vlm, of an unnamed release",
    ("mlxvlm-qwen3.5-4b-4bit-128k-none", "kv"): "the cache of 125,000 tokens and not of 131,072",
    ("mlxvlm-qwen3.5-4b-4bit-128k-none", "peak"): "mlx-vlm holds the vision tower too",
    ("mlxvlm-gemma4-26b-20k-uniform-8bit", "kv"): (
        "mlx-vlm's own packing; mlx-lm quantises no cache of a model with windows"
    ),
    ("mlx-pr40-mistral7b-before", "peak"): (
        "before March 2025 mask and scores were kept more than once, by how much is not known"
    ),
}
"""(start of a record's name, figure or ``""`` for all) -> why."""
UNEXPLAINED = "not explained yet"


def reason_for(score: Score) -> str:
    """What is known of the miss."""
    # What fits into a pool is as far off as the pool.
    figure = "kv_pool" if score.figure.endswith(" from scratch") else score.figure
    for (record, of), reason in REASONS.items():
        if score.record.startswith(record) and of in ("", score.figure, figure):
            return reason
    return "inside the stated range" if score.is_inside and score.is_region else UNEXPLAINED
