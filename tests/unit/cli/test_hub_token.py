"""What the environment holds for other programs is not sent where the user points this one."""

from __future__ import annotations

from tests.helpers import fake_hub
from tests.helpers.fake_hub import Repo
from tests.helpers.hub_models import plain


def test_that_a_token_of_the_environment_is_never_sent(plimsoll, monkeypatch, llama_8b):
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody_else")
    with fake_hub.serving() as hub:
        hub.add(Repo("org/model", {"config.json": llama_8b.read_bytes()}))
        ran = plimsoll("kv", "org/model", "--context", "8", "--endpoint", hub.url)
        asked = hub.requests
    assert ran.status == 0
    assert asked
    assert not [names for _, _, names in asked if "authorization" in {n.lower() for n in names}]


def test_that_a_gated_model_says_how_to_go_on_without_a_token(plimsoll):
    with fake_hub.serving() as hub:
        plain(hub, gated="manual")
        ran = plimsoll("size", "org/model", "--endpoint", hub.url)
    assert ran.status == 2
    assert "accept its terms at" in ran.complaint
    assert "download its config.json" in ran.complaint
