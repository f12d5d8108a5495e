"""What kernels of quantised matrices take: buffers that they keep, matrices that they unpack.

Source:
    AutoGPTQ ``auto_gptq/modeling/_utils.py :: autogptq_post_init``; Transformers 4.36 to 4.48
    ``quantizers/quantizer_gptq.py``. Qwen 1 of 7B, 14B and 72B held 96, 150 and 384 MiB more in
    4 bits than its other formats explain, which is the largest matrix. bitsandbytes 0.48
    ``autograd/_functions.py :: matmul_4bit``, ``nn/modules.py :: Linear4bit``; AutoAWQ 0.2.9
    ``awq/modules/linear/gemm.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED, layer_kinds
from engine.evidence import Basis, Estimate
from engine.formats.weights import FORMATS, is_quantised
from engine.runtimes.transformers import releases
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.runtimes.transformers.releases import Version

_UNPACKED_BYTES = 2
_FLOAT_BYTES = 4
_ORDERED_ROWS = 2048
"""Of activations that exllama sorts where columns were quantised out of order."""
_AWQ_ROWS = 1024
"""From here on AutoAWQ unpacks a matrix to multiply by it."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Bytes of the matrix that is unpacked while many tokens pass it at once."""

    likely_bytes: int = 0
    high_bytes: int = 0


def buffers(spec: ArchitectureSpec, weight_format: str, version: Version) -> Estimate | None:
    """What exllama keeps, which computes GPTQ in 4 bits until 4.49; None where it does not."""
    if not weight_format.startswith("gptq-int4") or version >= releases.WHOLE_WARM_UP:
        return None
    elements, widest = _largest(spec, weight_format)
    unpacked = elements * _UNPACKED_BYTES
    likely = unpacked if version < releases.GPTQMODEL else 0
    return Estimate(
        0,
        likely,
        unpacked + _ORDERED_ROWS * widest * _UNPACKED_BYTES,
        Basis.ASSUMED,
        tr(
            "AutoGPTQ 0.7 autogptq_post_init: the largest matrix unpacked; "
            "sorted rows if out of order"
        ),
        tr("{elements} × {unpacked_bytes} B").format(
            elements=grouped(elements), unpacked_bytes=_UNPACKED_BYTES
        ),
        "exllama",
    )


def unpacked(
    spec: ArchitectureSpec, weight_format: str, version: Version, dtype: str, rows: int
) -> Unpacked:
    """The largest matrix in 16 bits, and for bitsandbytes in the dtype that it computes in.

    That is 32 bits unless another is asked for; most who load BF16 ask.

    Args:
        spec: the model.
        weight_format: a key of ``FORMATS``, or one that is not known.
        version: of Transformers.
        dtype: of the activations.
        rows: tokens that pass a matrix at once.
    """
    if weight_format not in FORMATS:
        return Unpacked()
    if weight_format.startswith("nf4") and rows > 1:
        elements, _ = _largest(spec, weight_format)
        turned = elements * (_UNPACKED_BYTES + _FLOAT_BYTES)
        return Unpacked(elements * _UNPACKED_BYTES if dtype == "bfloat16" else turned, turned)
    by_autoawq = weight_format.startswith("awq") and version < releases.GPTQMODEL_FOR_AWQ
    if by_autoawq and rows >= _AWQ_ROWS:
        size = _largest(spec, weight_format)[0] * _UNPACKED_BYTES
        return Unpacked(size, size)
    return Unpacked()


@lru_cache(maxsize=CACHED)
def _largest(spec: ArchitectureSpec, weight_format: str) -> tuple[int, int]:
    """Elements of the largest quantised matrix, and the widest side of any."""
    found = [
        tensor
        for layer, _ in layer_kinds(spec)
        for tensor in layer.tensors
        if len(tensor.shape) == 2 and is_quantised(tensor, weight_format)
    ]
    largest = max((tensor.shape[0] * tensor.shape[1] for tensor in found), default=0)
    return largest, max((max(tensor.shape) for tensor in found), default=0)
