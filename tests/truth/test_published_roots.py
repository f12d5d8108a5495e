"""Published configs of multimodal models with code of their own, against their published totals.

Source:
    ``configs/index.jsonl`` beside the checkout: what the Hub states of the safetensors.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.architecture.read import specify

CONFIGS = Path(__file__).resolve().parents[2].parent / "shared" / "configs"
needs_shared = pytest.mark.skipif(
    not CONFIGS.is_dir(), reason="the published configs are not beside this checkout"
)

# Stored beside what is built: a head that is tied to the embedding.
TWICE = {"nvidia/LocateAnything-3B": 152_681 * 2_048}
ROOTS = (
    "OpenGVLab/InternVL2-2B", "OpenGVLab/InternVL2-4B", "allenai/Molmo-7B-D-0924",
    "deepseek-ai/deepseek-vl2-tiny", "microsoft/Phi-3-vision-128k-instruct",
    "nvidia/LocateAnything-3B", "openbmb/MiniCPM-V-2_6", "openbmb/MiniCPM-V-4",
)  # fmt: skip


@needs_shared
@pytest.mark.parametrize("name", ROOTS)
def test_that_a_published_root_has_its_published_total(name: str) -> None:
    lines = (CONFIGS / "index.jsonl").read_text(encoding="utf-8").splitlines()
    row = next(row for row in map(json.loads, lines) if row["id"] == name)
    config = json.loads((CONFIGS / row["file"]).read_text(encoding="utf-8"))
    spec = specify(config)
    assert spec.parameters + TWICE.get(name, 0) == row["safetensors_total"]
    assert not spec.doubts
