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
    ("fi-qwen3-30b-a3b-gb10", ""): (
        "unified memory: the whole start was charged less than its weights, as cached files left"
    ),
    ("vllm-2031-llama2-70b-a100x4-after", "kv_pool"): (
        "0.2.5 charged what the device had lost: 13 GiB a card by the pull request's own figures"
    ),
    ("vllm-10511-llama3-8b-tp", ""): "a build between releases, which charged 1.79 GiB of context",
    ("v2-mistral-small4-119b-awq-2xl40s", ""): (
        "another publisher's packing: which modules it leaves in 16 bits is not known"
    ),
    ("v2-nemotron-cascade2-30b-nvfp4-h100", ""): (
        "another publisher's packing: which modules it leaves in 16 bits is not known"
    ),
    ("v2-nemotronh-4b-fp8-16gb", "weights"): (
        "the publisher's own FP8 leaves some layers in 16 bits; which ones is not known"
    ),
    ("v2-xpu-lunarlake-qwen36-35b", "weights"): "another publisher's packing, for Intel's kernels",
    ("v2-gaudi2-llama31-8b-util90", "weights"): "Habana's allocator, read and not derived",
    ("fi-qwen35-2b-util50", "weights"): (
        "its 2.27 B parameters are 4.54 decimal GB in 16 bits: the figure is hardly of GiB"
    ),
    ("fi-qwen25-7b-32gb-v024", ""): (
        "a fine-tune in a folder named base: 0.12 GiB more than Qwen2.5-7B, and 0.2 of its graphs"
    ),
    ("unsloth-nb-phi-4-14b-grpo", ""): (
        "unsloth's own file: 0.09 GiB less than Phi-4 in 4 bits with adapters"
    ),
    ("unsloth-nb-llama3-1-8b-grpo", ""): (
        "unsloth's dynamic 4 bits leave some matrices in 16; which ones is not stated"
    ),
    ("unsloth-nb-deepseek-r1-0528-qwen3-8b-grpo", ""): (
        "another publisher's 4 bits: 0.06 GiB more than all of its layers packed"
    ),
    ("unsloth-nb-llama-fp8-grpo", ""): (
        "unsloth turns on FlashInfer's sampler and expandable segments, for which there is no key"
    ),
    ("unsloth-nb-qwen3-4b-grpo", ""): (
        "unsloth turns on expandable segments, in which tensors are not rounded up"
    ),
    ("v2-lmcache433-internvl25-8b-awq", ""): (
        "LMCache beside it; AWQ's own kernels, if asked for, unpack a matrix of 0.22 GiB"
    ),
    ("vllm-21348-qwen3-235b-fp8-h100x4", ""): "its release is not stated; LMCache beside it",
    ("fi-dsv4-flash-h200-tp2", ""): (
        "its release is not stated, and what DeepSeek-V4 keeps changed with most of them"
    ),
    ("fi-llama31-8b-a5000", ""): "its release is not stated, and samplers differ by 0.7 GiB",
    ("fi-27b-fp8-l40s-", ""): "its release is not stated, and its model is inferred",
    ("h100/granite-3-1-8b", ""): (
        "0.21 GiB more outside PyTorch than 28 other starts of its release and card; not known why"
    ),
    ("fi-gemma3-27b-rocm", ""): "what a start on ROCm takes outside PyTorch is assumed",
    ("sweep/gpt-oss-120b-0.11", ""): "0.1 GiB of padding of its experts, of a pool of 3.3",
    ("sgl-18263-qwen3-30b-aiter", "kv_pool"): (
        "a branch that no release is of: it takes its kernels' 51.75 GiB out of the pool"
    ),
    ("sgl-qwen35-27b-bf16-gb10", ""): "on GB10 what is free is the host's, other programs counted",
    ("sgl-ornith-9b-gb10", ""): "on GB10 what is free is the host's, other programs counted",
    ("club3090-qwen36-27b-sglang-tp2", "weights"): (
        "a page of two digits; which matrices its quantisation packed is not said"
    ),
    ("sglang-21348-qwen3-235b-fp8-h100x4", ""): "what was free before it loaded is not stated",
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
