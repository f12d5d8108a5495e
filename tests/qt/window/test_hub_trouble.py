"""Whatever the Hub does wrong: one sentence, nothing lost, and the next question asked at once."""

from __future__ import annotations

import json

import pytest

from engine.source.by_hand import Measures, by_hand
from engine.source.local import hub_cache
from gui.browser.rows import CHOSEN_ROLE, ROW_ROLE
from tests.helpers import fake_hub
from tests.helpers.fake_hub import COMMIT, Repo
from tests.helpers.hub_models import SIZEABLE, safetensors

TROUBLES = {
    "long-wait": "127.0.0.1 asks for a pause; try again in 86400 s.",
    "limited": "127.0.0.1 asks for a pause; try again in 55 s.",
    "500": "127.0.0.1 has trouble of its own (500); try again later.",
    "503": "127.0.0.1 has trouble of its own (503); try again later.",
    "stall": "127.0.0.1 did not answer in time (nothing came for 0.5 s); try again later.",
    "drip": "did not answer in time (fewer than 1,024 bytes came in 0.5 s); try again later.",
    "truncated": "127.0.0.1 broke off its answer: ",
    "too-short": "The answer about org/next makes no sense: ",
    "circle": "The answer about org/next makes no sense: ",
    "huge": "The answer about org/next makes no sense: ",
    "endless": "127.0.0.1 sent an answer without end; it was given up.",
    "no-utf8": "The answer about org/next makes no sense: ",
    "html": "The answer about org/next makes no sense: ",
    "404": "The Hub answered 404 when asked about org/next.",
}
"""What the whole server gets wrong, and the sentence."""
FILES = {
    "gated": ({"gated": "manual"}, "org/next is gated: accept its terms at "),
    "gone": ({"id": "org/other"}, "The Hub has no model org/next, or it is private."),
    "lying size": (
        {
            "files": {"config.json": b"{}", "model.safetensors": safetensors("ab")},
            "stated_sizes": {"model.safetensors": 10**9},
        },
        "contradicts itself",
    ),
    "no UTF-8": ({"files": {"config.json": b'{"a": "\xe9"}'}}, "is not text in UTF-8 (byte 7)."),
    "no JSON": ({"files": {"config.json": b"<html>"}}, "config.json of org/next is not valid JSON"),
    "17 MB": ({"files": {"config.json": b"{" + b" " * 17 * 2**20}}, "far larger than any such"),
}
"""What one repository gets wrong, and what the sentence has."""


def good(**more):
    files = {"config.json": json.dumps(SIZEABLE).encode()}
    return Repo(**{"id": "org/next", "files": files} | more)


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        yield running


@pytest.fixture
def app(start, hub, qtbot):
    made = start(offline=False, endpoint=hub.url)
    qtbot.waitUntil(lambda: made.model.state.fit is not None, timeout=20_000)
    made.hub._timeout_s = 0.5
    return made


def _refused(app, qtbot):
    """What is said when ``org/next`` is opened; the window is as it was, but for that."""
    before, undone = app.model.state, app.model.undo_stack.count()
    app.trouble.dismiss()
    app.browser.open("org/next")
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert not app.loader.is_busy
    after = app.model.state
    assert (after.model, after.plan, after.sizing) == (before.model, before.plan, before.sizing)
    assert app.model.undo_stack.count() == undone
    said, _, _ = app.trouble.line.text().partition(" Nearest: ")
    assert said.endswith(".")
    assert ". " not in said
    return said


def _opened(app, qtbot, size=256):
    """Open ``org/next`` for good, and go back to where the window was."""
    before = app.model.state.model
    app.browser.open("org/next")
    qtbot.waitUntil(lambda: app.model.state.model.id == "org/next", timeout=20_000)
    assert app.model.state.model.spec.hidden_size == size
    app.model.load(before)


def test_that_every_trouble_of_the_hub_is_one_sentence_and_blocks_nothing(app, hub, qtbot):
    for trouble, said in TROUBLES.items():
        hub.repos = {"org/next": good()}
        hub.trouble = trouble
        hub.requests.clear()
        assert said in _refused(app, qtbot), trouble
        # Once, and not again while nobody asks; a circle is followed for a while.
        assert trouble == "circle" or len(hub.requests) == 1
        hub.trouble = ""
        _opened(app, qtbot)


def test_that_every_trouble_of_a_repository_is_one_sentence_and_blocks_nothing(app, hub, qtbot):
    for trouble, (facts, said) in FILES.items():
        wrong = good(**facts)
        hub.repos = {wrong.id: wrong}
        assert said in _refused(app, qtbot), trouble
        hub.repos = {"org/next": good()}
        _opened(app, qtbot)


def test_that_a_config_of_3_mb_is_a_config(app, hub, qtbot):
    words = {f"<{n}>": n for n in range(200_000)}
    config = json.dumps(SIZEABLE | {"hidden_size": 512, "added_tokens": words}).encode()
    assert len(config) > 3 * 10**6
    hub.add(good(files={"config.json": config}))
    _opened(app, qtbot, size=512)


@pytest.mark.parametrize("trouble", ["long-wait", "503", "truncated", "html"])
def test_that_what_is_here_is_opened_while_the_hub_has_trouble(
    app, hub, qtbot, trouble, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = hub_cache() / "models--org--next" / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SIZEABLE))
    (folder.parents[1] / "refs").mkdir()
    (folder.parents[1] / "refs" / "main").write_text(COMMIT)
    hub.trouble = trouble
    app.browser.open("org/next")
    qtbot.waitUntil(lambda: app.model.state.model.id == "org/next", timeout=20_000)
    assert not app.trouble.isVisible()
    (note,) = (n for n in app.model.state.notes if n.startswith("Read from the Hub cache, as of"))
    assert note.endswith(".")


@pytest.mark.parametrize("ends", ["fails", "is given up"])
def test_that_the_model_in_the_window_stays_marked_where_another_does_not_come(
    app, qtbot, hub, ends
):
    def marked():
        model = app.browser.list.model()
        indices = [model.index(n) for n in range(model.rowCount())]
        return [index.data(ROW_ROLE).key for index in indices if index.data(CHOSEN_ROLE)]

    hub.add(good(facts={"downloads": 10**9}))
    app.window.resize(1440, 900)
    qtbot.waitUntil(app.browser.list.isVisible)
    shown = app.model.state.model.id
    app.browser.model.set_query("next")
    app.browser.model.search_hub()
    qtbot.waitUntil(lambda: app.browser.model.is_settled, timeout=20_000)
    hub.trouble = "500" if ends == "fails" else "stall"
    app.browser.model.choose("org/next")
    assert marked() == ["org/next"]
    if ends == "fails":
        qtbot.waitUntil(lambda: not app.loader.is_busy, timeout=20_000)
    else:
        assert app.loader.cancel()
    assert app.model.state.model.id == shown
    app.browser.model.set_query(shown)
    assert marked() == [shown]
    app.loader.load(lambda _: by_hand(Measures(7 * 10**9, 32, 8, 128)))
    qtbot.waitUntil(lambda: app.model.state.model.id != shown, timeout=20_000)
    assert "org/next" not in app.browser.model.state.shelf.recents
