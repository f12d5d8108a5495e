"""What changed between builds of llama.cpp, by build number.

The buffers of 24 builds from b4798 (March 2025) to b11549 (October 2026) were read from their own
logs: on the CPU, and with a stand-in device that answers sizing questions as the CUDA backend
does. A change is entered at the first build that was read with it, or at the build of its pull
request (``#``, in ggml-org/llama.cpp) where that is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from engine.errors import DeploymentError
from engine.words import tr

NEWEST = 11549
OLDEST_READ = 4798
_OLDEST = 1000
_LARGEST = 10**6
_NUMBER = re.compile(r"\s*b?(\d{3,7})\b(?![.-]\d)")


@dataclass(frozen=True, slots=True)
class Build:
    """The rules of one build."""

    number: int

    @property
    def name(self) -> str:
        """As its release is called."""
        return f"b{self.number}"

    @property
    def keeps_windows(self) -> bool:
        """Whether sliding layers have a cache of their own (#13194, May 2025); before, a full one.

        b5353 has none; b5456 has.
        """
        return self.number >= 5430

    @property
    def windows_hold_batch(self) -> bool:
        """Whether a window's cache has room for a whole batch, not a micro-batch (b5456)."""
        return self.number < 5586

    @property
    def absorbs_latent(self) -> bool:
        """Whether MLA caches the latent vector (#12801, April 2025); before, keys and values."""
        return self.number >= 5140

    @property
    def has_streams(self) -> bool:
        """Whether slots may have caches of their own (#14363, July 2025); before, one for all."""
        return self.number >= 5913

    def cell_rounding(self, *, flash: bool) -> int:
        """Cells are rounded up to this (b7079: always 256; b6900 had no rounding without FA)."""
        if self.number >= 7079 or flash:
            return 256
        return 32 if self.number < 6900 else 1

    @property
    def pads_total(self) -> bool:
        """Whether the whole context is rounded up before slots share it."""
        return self.number >= 7079

    @property
    def scatters_rows(self) -> bool:
        """Whether rows of K and V are written through indices (#14959, August 2025)."""
        return self.number >= 6074

    @property
    def output_first(self) -> bool:
        """Whether ``-ngl`` takes the output layer before the others (b7551); before, last."""
        return self.number >= 7551

    @property
    def has_auto_flash(self) -> bool:
        """Whether flash attention is ``auto`` by default (#15434, August 2025); before, off."""
        return self.number >= 6325

    @property
    def default_slots(self) -> int:
        """llama-server's slots without ``-np`` (#16736, November 2025: 4 with one cache)."""
        return 4 if self.number >= 7079 else 1

    @property
    def shares_context(self) -> bool:
        """Whether slots of one cache may each use all of it (with #16736); before, equal parts."""
        return self.number >= 7079

    @property
    def offloads_by_itself(self) -> bool:
        """Whether all layers go to the GPU without ``-ngl``; before, none did."""
        return self.fits_context

    @property
    def fits_context(self) -> bool:
        """Whether ``--fit`` chooses a context (#16653, December 2025); before, 4,096 tokens."""
        return self.number >= 7407

    @property
    def limits_outputs(self) -> bool:
        """Whether the server reserves logits for its slots only (#23861, June 2026).

        b9294 reserves a row for every token; b9538 does not.
        """
        return self.number >= 9538

    @property
    def reserves_copies(self) -> bool:
        """Whether CUDA's f16 copies of a quantised cache are in the compute buffer (#23907)."""
        return self.number >= 9538

    @property
    def multiplies_packed(self) -> bool:
        """Whether RDNA 3 multiplies most quantised types as stored (#17576, December 2025)."""
        return self.number >= 7300

    @property
    def casts_mask(self) -> bool:
        """Whether the mask is made in f32 and cast on the device (until b9294)."""
        return self.number < 9538

    @property
    def keeps_inputs(self) -> bool:
        """Whether inputs keep their place until the end of the graph (b11434)."""
        return self.number >= 11434

    @property
    def pinned_units(self) -> int:
        """Hidden states that the host hands to a GPU (2 with #18898, January 2026; 4: b11434)."""
        if self.keeps_inputs:
            return 4
        return 2 if self.number >= 7827 else 1

    @property
    def layer_units(self) -> int:
        """Hidden states alive in every layer."""
        return 4 if self.keeps_inputs else 3

    @property
    def rotates_cache(self) -> bool:
        """Whether a quantised cache comes with rotation matrices (b8672)."""
        return self.number >= 8672

    @property
    def splits_rows(self) -> bool:
        """Whether CUDA splits matrices by row (until #24216, June 2026)."""
        return self.number < 9600

    @property
    def splits_tensors(self) -> bool:
        """Whether there is ``--split-mode tensor`` (#19378, April 2026)."""
        return self.number >= 8738

    @property
    def keeps_prompts(self) -> bool:
        """Whether the server keeps old prompts in RAM, up to 8 GiB (#16391, October 2025)."""
        return self.number >= 6730

    @property
    def context_checkpoints(self) -> int:
        """Snapshots of recurrent states and windows a slot keeps in RAM: 32 by b8300, before 8."""
        if self.number < 6730:
            return 3 if self.number >= 6628 else 0
        return 32 if self.number >= 8300 else 8


@lru_cache(maxsize=256)
def build_of(version: str | None) -> Build:
    """The build that ``version`` names (``b6123``, ``6123``); None = the newest known.

    Raises:
        DeploymentError: it names none.
    """
    if version is None:
        return Build(NEWEST)
    found = _NUMBER.match(version)
    number = int(found.group(1)) if found else 0
    if not _OLDEST <= number < _LARGEST:
        raise DeploymentError(
            tr(
                "runtime_version {version!r:.40} is no build of llama.cpp, such as b{newest}."
            ).format(version=version, newest=NEWEST),
            field="runtime_version",
        )
    return Build(number)


def note(build: Build, *, is_default: bool) -> str:
    """What a plan for ``build`` rests on."""
    if is_default:
        return tr("llama.cpp {build}, the newest whose buffers were read.").format(build=build.name)
    if build.number > NEWEST:
        return tr("{name} is newer than b{newest}, the newest whose buffers were read.").format(
            name=build.name, newest=NEWEST
        )
    if build.number < OLDEST_READ:
        return tr(
            "{name} is older than b{oldest_read}, the oldest whose buffers "
            "were read; its compute buffers may differ."
        ).format(name=build.name, oldest_read=OLDEST_READ)
    return tr("llama.cpp {build}, by the rules of the builds read around it.").format(
        build=build.name
    )
