"""Model files that a runtime has mapped: called free by the system, needed by the run.

llama.cpp and its relatives map a GGUF instead of reading it. Its resident pages count as file
cache, so that a 40 GB model "uses" 1 GB; yet the run reads all of them for every token. They are
held, as the plan says, and other plans have to count with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.telemetry.snapshot import ProcessReading

_MAPPING_RUNTIMES = frozenset({"llama.cpp", "ollama", "lmstudio"})
"""Those that map by default. vLLM's and Transformers' resident files are their libraries."""


def file_bytes(process: ProcessReading) -> int:
    """Resident pages of model files that ``process`` has mapped; libraries are among them."""
    files = process.file_bytes
    if isinstance(files, Missing) or not process.pid:
        return 0
    is_mapping = recognise(process.name, process.command).runtime in _MAPPING_RUNTIMES
    return files if is_mapping else 0


def model_bytes(processes: Iterable[ProcessReading] | Missing) -> int:
    """What all of them hold by mapping; a model mapped by several lies in memory once."""
    if isinstance(processes, Missing):
        return 0
    by_model: dict[str, int] = {}
    for process in processes:
        size = file_bytes(process)
        if size:
            model = recognise(process.name, process.command).model
            by_model[model] = max(by_model.get(model, 0), size)
    return sum(by_model.values())


def held_bytes(process: ProcessReading) -> int | Missing:
    """What must stay and what is mapped, together: the figure that a plan predicts."""
    used = process.used_bytes
    return used if isinstance(used, Missing) else used + file_bytes(process)
