"""What changed between the releases of mlx-lm, and which attention MLX computes in one kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.errors import DeploymentError
from engine.words import tr

Version = tuple[int, int, int]

VERSIONS = ("0.32.2", "0.31.3", "0.28.4", "0.26.3", "0.22.1")
"""One release of each set of rules, newest first."""
_OLDEST = (0, 15, 0)
_CAUSAL_SINCE = (0, 22, 2)
_ALL_BUT_ONE_SINCE = (0, 27, 0)
_WIDER_KERNELS_SINCE = (0, 32, 2)

STEP = 256
"""Tokens by which a cache grows (``models/cache.py``)."""
KEPT_AT_START = 4
"""Tokens at the start that ``--max-kv-size`` never lets go (``make_prompt_cache``)."""
QUANTIZED_KV_START = 5000
KV_GROUP_SIZE = 64
KV_BITS = (2, 4, 8)
"""Widths whose words hold whole numbers of values, as ``QuantizedKVCache`` sizes its buffers."""
KV_GROUPS = (32, 64, 128)
PROMPTS_KEPT = 10
"""Finished conversations whose caches ``mlx_lm.server`` keeps (``--prompt-cache-size``)."""
PROMPTS_AT_ONCE = 8
"""Prompts that the server reads in one pass (``--prompt-concurrency``)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How one release reads a prompt."""

    prefill_step_size: int
    materialises_mask: bool
    """Whether the mask is an array; no fused kernel took one then."""
    last_chunk_makes_logits: bool
    """Whether the last chunk runs through the head, a row of logits for each of its tokens.
    Later releases leave one token for that, and of the rest nothing asks for logits."""
    fused_head_dims: frozenset[int]
    """Widths of heads whose attention over a chunk is one kernel."""
    newly_fused: frozenset[int]
    """Of these, widths whose kernel came with a package that need not be installed."""
    fused_on_m5: frozenset[int]
    """Further widths on chips with matrix units."""


def rules(version: Version) -> Rules:
    """The rules of a release of mlx-lm.

    Source:
        mlx-lm 0.20.6 to 0.32.2 ``generate.py``, ``utils.py``, ``models/base.py``; mlx
        ``backend/metal/scaled_dot_product_attention.cpp`` and the kernels in the mlx-metal
        packages 0.32.0 (64, 80, 128), 0.32.2 (72 and 96 too; 256 in two halves, which M5 takes)
        and 0.32.4 (512 in parts too). mlx-lm 0.32.2 takes mlx 0.32.2 and later.
    """
    wider = version >= _WIDER_KERNELS_SINCE
    return Rules(
        prefill_step_size=2048 if version >= _CAUSAL_SINCE else 512,
        materialises_mask=version < _CAUSAL_SINCE,
        last_chunk_makes_logits=version < _ALL_BUT_ONE_SINCE,
        fused_head_dims=frozenset({64, 72, 80, 96, 128, 512} if wider else {64, 80, 128}),
        newly_fused=frozenset({256, 512} if wider else ()),
        fused_on_m5=frozenset({256} if wider else ()),
    )


def parse_version(text: str | None) -> Version:
    """``"0.31.3"`` -> ``(0, 31, 3)``; None means the newest.

    Raises:
        DeploymentError: not a version of mlx-lm, or one whose rules are not known.
    """
    match = re.fullmatch(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text or VERSIONS[0])
    if match is None:
        message = tr("{text!r} is not a version of mlx-lm such as {versions}.").format(
            text=text, versions=VERSIONS[0]
        )
        raise DeploymentError(message, field="runtime_version")
    version = (int(match[1]), int(match[2]), int(match[3] or 0))
    if version < _OLDEST:
        message = tr(
            "mlx-lm {text} is older than 0.15, the oldest whose rules are known here."
        ).format(text=text)
        raise DeploymentError(message, field="runtime_version")
    return version
