"""The stand-in for NVIDIA's library, as the tests of telemetry have it."""

from __future__ import annotations

from tests.unit.telemetry.conftest import gpus, nvml_library

__all__ = ["gpus", "nvml_library"]
