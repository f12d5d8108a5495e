"""The encoders of images and sounds, which llama-server loads from a file of their own (mmproj).

Source: llama.cpp ``convert_hf_to_gguf.py`` (MmprojModel.tensor_force_quant) and
``tools/mtmd/clip.cpp`` (load_hparams, warmup). Held to printed sizes: 887.99 MiB and 248.10 MiB of
work for Qwen3.6-27B, 1,291.40 MiB for Qwen2.5-VL-7B, 811.8 MiB for gemma-3-4b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.evidence import Basis, Estimate
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, Tensor
    from engine.runtimes.llama_cpp.settings import Settings

_ENCODERS = (ModuleClass.VISION, ModuleClass.AUDIO)
_SOURCE = "llama.cpp convert_hf_to_gguf.py, MmprojModel: matrices in 16 bits, the rest in 32"
_WORK_SOURCE = "llama.cpp tools/mtmd/clip.cpp, warmup: the picture and six hidden states"
_IN_32_BITS = ("position", "pos_emb", "patch_emb")
"""Parts of names: tables of positions, and patches in files of BF16."""
_HALF_BYTES, _WHOLE_BYTES = 2, 4
_UNITS = 6
"""Hidden states alive in a layer of an encoder, with flash attention."""
_HEADS = 16
"""Of every encoder that llama.cpp reads, as far as was seen (1,024 to 1,408 wide)."""
_FLASH_SINCE = 6960
"""CUDA's kernel for heads of 72 (#16962, November 2025)."""


@dataclass(frozen=True, slots=True)
class _Picture:
    """Patches of the picture that is reserved for at load, and of the largest that may come."""

    at_load: int
    largest: int


_PICTURES: tuple[tuple[tuple[str, ...], _Picture], ...] = (
    # 46 × 46 tokens of 2 × 2 patches; at most 4,096 tokens.
    (("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "qwen3_omni"), _Picture(92 * 92, 16_384)),
    # 256 tokens of 3 × 3 patches; at most 280.
    (("gemma4",), _Picture(256 * 9, 280 * 9)),
    # 256 tokens of 2 × 2 patches; at most 1,024.
    (("mistral3", "pixtral"), _Picture(1024, 4096)),
)
"""Start of a root type -> pictures of no fixed size (``set_warmup_n_tokens``)."""
_ANY_PICTURE = _Picture(4096, 4096)


@dataclass(frozen=True, slots=True)
class Projector:
    """What the encoders take on the device that they run on."""

    weights: Estimate
    work: Estimate
    coming: Estimate | None
    """More work for the largest picture, with the first that comes; None where all are alike."""

    @property
    def likely_bytes(self) -> int:
        """What the server counts before it fits the model: weights and work."""
        return self.weights.likely_bytes + self.work.likely_bytes


def projector(spec: ArchitectureSpec, settings: Settings) -> Projector | None:
    """The encoders of ``spec``; None where it has none."""
    is_flash = settings.flash and settings.build.number >= _FLASH_SINCE
    return _projector(spec, flash=is_flash)


@lru_cache(maxsize=256)
def _projector(spec: ArchitectureSpec, *, flash: bool) -> Projector | None:
    tensors = tuple(t for t in spec.outer if t.module in _ENCODERS)
    if not tensors:
        return None
    picture = _picture(spec.root_type, tensors)
    work = _work(tensors, picture.at_load, spec.root_type, flash=flash)
    coming = None
    if picture.largest > picture.at_load:
        more = _work(tensors, picture.largest, spec.root_type, flash=flash) - work
        coming = Estimate(
            0,
            0,
            more,
            Basis.FITTED,
            _WORK_SOURCE,
            tr("up to {largest} patches").format(largest=grouped(picture.largest)),
            tr("work on larger pictures"),
        )
    return Projector(_weights(tensors), _ranged(work, picture.at_load), coming)


def _weights(tensors: tuple[Tensor, ...]) -> Estimate:
    plain = sum(t.parameters * _width(t, 1) for t in tensors)
    likely = sum(t.parameters * _width(t, 2) for t in tensors)
    return Estimate(
        plain,
        likely,
        likely,
        Basis.ASSUMED,
        _SOURCE,
        tr("{tensors} kinds of tensors").format(tensors=grouped(len(tensors))),
        tr("encoders (mmproj)"),
    )


def _width(tensor: Tensor, exceptions: int) -> int:
    is_kept = exceptions > 1 and any(part in tensor.name for part in _IN_32_BITS)
    return _WHOLE_BYTES if len(tensor.shape) == 1 or is_kept else _HALF_BYTES


def _picture(root_type: str, tensors: tuple[Tensor, ...]) -> _Picture:
    for starts, picture in _PICTURES:
        if root_type.startswith(starts):
            return picture
    tables = (t for t in tensors if "pos" in t.name and t.module is ModuleClass.VISION)
    rows = max((t.shape[0] for t in tables if len(t.shape) == 2), default=0)
    return _Picture(rows, rows) if rows else _ANY_PICTURE


def _work(tensors: tuple[Tensor, ...], patches: int, root_type: str, *, flash: bool) -> int:
    """The picture's pixels, and the hidden states of its patches; scores where none are fused."""
    patch = next((t for t in tensors if "patch_emb" in t.name and len(t.shape) > 1), None)
    hidden = patch.shape[0] if patch else max(t.shape[0] for t in tensors)
    pixels = patch.parameters // hidden if patch else 0
    positions = 1
    if root_type.startswith(_PICTURES[0][0]):
        pixels //= 2  # two frames of a video, of which a picture is one
        positions = 4  # of a section each
    size = _WHOLE_BYTES * patches * (pixels + positions + _UNITS * hidden)
    return size if flash else size + _WHOLE_BYTES * patches**2 * _HEADS


def _ranged(likely: int, patches: int) -> Estimate:
    return Estimate(
        likely * 3 // 4,
        likely,
        likely * 3 // 2,
        Basis.FITTED,
        _WORK_SOURCE,
        tr("{patches} patches").format(patches=grouped(patches)),
        tr("encoders' compute buffer"),
    )
