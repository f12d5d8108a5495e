"""Badges found again for models of one architecture are those that each would get alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.source import catalogue
from gui.browser.badges import Alike, badge_for
from gui.browser.sources import catalogue_row

PLAN = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)


@pytest.mark.parametrize("runtime", ["vllm", "llama.cpp", "sglang", "transformers", "mlx"])
def test_that_a_badge_is_what_it_would_be_alone(card, runtime):
    plan, alike = PLAN.with_(runtime=runtime), Alike()
    for entry in catalogue.entries()[::5]:
        row = catalogue_row(entry)
        copy = replace(row, model=lambda e=entry: read(replace(catalogue.raw(e), id="org/copy")))
        alone = badge_for(row, plan, card)
        assert badge_for(row, plan, card, alike) == alone
        assert badge_for(copy, plan, card, alike) == alone


def test_that_models_of_one_architecture_are_sized_once_and_others_by_themselves(card):
    entry = catalogue.find("meta-llama/Llama-3.1-8B-Instruct")
    model, alike = read(catalogue.raw(entry)), Alike()
    badge = badge_for(catalogue_row(entry), PLAN, card)
    alike.keep(model, badge)
    assert alike.find(replace(model, id="org/copy")) is badge
    assert alike.find(replace(model, config={**model.config, "x": 1})) is None
    assert alike.find(replace(model, spec=replace(model.spec))) is None
    assert alike.find(replace(model, stored=object())) is None
    assert alike.find(replace(model, gguf_tensors=(object(),))) is None
