"""MLX: what one evaluation allocates, command buffer by command buffer."""

from __future__ import annotations

from engine.runtimes.mlx.runtime import Mlx

__all__ = ["Mlx"]
