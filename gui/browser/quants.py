"""The name of a row's quantisation: by what its files or its list say, not by its own name."""

from __future__ import annotations

import re
from functools import lru_cache

from engine.text import printable

_UNTOLD = re.compile(r"GGUF|MIXED|UNKNOWN|[IU]\d+", re.IGNORECASE)
"""A repository of several mixes, and whole numbers in which anything may be packed."""
_MIX = re.compile(r"(?:UD-)?(?:I?Q|TQ)\d|MXFP4_MOE", re.IGNORECASE)
"""How the mixes of a GGUF file are called: ``Q4_K_M``, ``IQ2_XXS``."""
_MLX = re.compile(r"MLX (?:(\d)BIT|(\w+))", re.IGNORECASE)
_PLAIN = {"FP16": "F16", "FP32": "F32", "FP64": "F64"}
_KINDS: tuple[tuple[str, str], ...] = (
    ("MXFP8", "MXFP8"),
    ("MXFP4", "MXFP4"),
    ("FP4", "NVFP4"),
    ("AWQ", "AWQ"),
    ("GPTQ", "GPTQ"),
    ("HQQ", "HQQ"),
    ("NF4|BITSANDBYTES", "bitsandbytes"),
    ("COMPRESSED.TENSORS", "compressed-tensors"),
    ("BITNET", "BitNet"),
    ("F8|FP8", "FP8"),
    ("INT8|EETQ", "INT8"),
)
"""What a label has to hold, and the name; the first that does decides."""
_LONGEST = 40


@lru_cache(maxsize=4096)
def quant_name(label: str) -> str:
    """``AWQ`` for ``AWQ int4``; a GGUF mix by itself. Empty where ``label`` doesn't say.

    Args:
        label: the weight format as a row shows it.
    """
    label = label.strip()
    if not label or _UNTOLD.fullmatch(label):
        return ""
    if _MIX.match(label):
        return printable(label.upper(), _LONGEST)
    if mlx := _MLX.match(label):
        return f"MLX {mlx[1]} bit" if mlx[1] else f"MLX {mlx[2].upper()}"
    kinds = (name for pattern, name in _KINDS if re.search(pattern, label, re.IGNORECASE))
    # Of "W4A16 g32" the group is a detail.
    plain = label.split(" ", 1)[0].upper()
    return next(kinds, printable(_PLAIN.get(plain, plain), _LONGEST))
