"""A stand-in for NVIDIA's library, built once a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers import nvml, smi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def gpus(nvml_library: Path, tmp_path: Path) -> Iterator[nvml.Gpus]:
    with nvml.loaded(nvml_library, tmp_path) as state:
        yield state


@pytest.fixture(scope="session")
def smi_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return smi.build(tmp_path_factory.mktemp("smi"))


@pytest.fixture
def makers(smi_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[smi.Smi]:
    state = tmp_path / "smi-state"
    monkeypatch.setenv(smi.STATE, str(state))
    library = smi.Smi(smi_library, state)
    yield library
    library.set(hang=0)
