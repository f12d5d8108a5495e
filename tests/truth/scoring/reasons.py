"""Why a figure is off, record by record; for the tables of the worst."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.truth.scoring.scores import Score

REASONS: dict[tuple[str, str], str] = {
    ("rapidmlx-card-", "active"): "printed to a tenth of a GB, with the caches of its prompts",
    ("mlxvlm-gemma-4-31b-it-128k-none", "kv"): (
        "printed while the prompt was read, when a window holds the chunk too: 13.3 GB"
    ),
    ("mlxvlm-gemma-4-31b-it-128k-none", "peak"): "mlx-vlm, of an unnamed release",
    ("qwen1-1.8b-int", "peak"): (
        "a third copy of keys and values than a step holds, by its size; why is not known"
    ),
    ("tf-octocoder-nf4", "peak"): "its class keeps a mask of 64 MiB, which is no weight",
    ("tf-octocoder-int8", "peak"): "as loading peaked: what quantising holds is not known closer",
    ("qwen3doc-tf-qwen3-", "end"): "what AutoAWQ and FP8 hold beside is fitted, and not known",
    ("cal-m5-c", ""): "a device that was all but full; what the 495 MiB were is not known",
    ("cal-6800-vulkan", ""): "725 and 728 MiB on two cards; what they were is not known",
    ("mlx-pr40-mistral7b-before", "peak"): (
        "before March 2025 mask and scores were kept more than once, by how much is not known"
    ),
    ("ik-044-meta-llama-3-1-8b-instruct", "printed compute buffers"): (
        "its masks found no room below the logits under Vulkan, as they do elsewhere; not known why"
    ),
    ("lc-12728-dsv2-vulkan-4k", "printed compute buffers"): (
        "latent attention with whole heads, of which no other buffer was read: 1.4 % off"
    ),
    ("strix-", "card"): "what Vulkan's driver maps beside the buffers, read and not derived",
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
