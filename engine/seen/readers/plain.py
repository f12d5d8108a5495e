"""Servers that answer ``/v1/models`` and no more: ``mlx_lm.server``, and what nobody here knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.seen import openai
from engine.seen.model import NOT_STATED, PoolSeen, Reach, RuntimeSeen
from engine.words import tr

if TYPE_CHECKING:
    from engine.seen.asker import Asker


def read_mlx(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What MLX's server says: the model, and nothing of memory."""
    return (_row(asker, "mlx", "MLX"),)


def read_other(asker: Asker) -> tuple[RuntimeSeen, ...]:
    """What a server of OpenAI's interface says of itself."""
    return (_row(asker, "", tr("OpenAI-compatible server")),)


def _row(asker: Asker, runtime: str, label: str) -> RuntimeSeen:
    return RuntimeSeen(
        runtime=runtime,
        label=label,
        reach=Reach.ANSWERS,
        address=asker.address,
        version=NOT_STATED,
        model=openai.first_model(asker),
        pool=PoolSeen(),
        running=NOT_STATED,
        waiting=NOT_STATED,
        prompt_tokens=NOT_STATED,
        output_tokens=NOT_STATED,
    )
