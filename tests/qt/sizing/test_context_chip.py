"""Where the first context comes from, and that one click changes it."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from engine.devices import catalogue as devices
from engine.runtimes.registry import RUNTIMES
from gui.kit.theme import load_theme
from gui.sizing.first_contexts import offers
from gui.sizing.plan import first_plan
from gui.sizing.plan_strip import PlanStrip

# Llama 3.1's config: max_position_embeddings.
MOST = 131_072


@pytest.fixture
def strip(qtbot, loaded):
    made = PlanStrip(loaded)
    made.set_devices("RTX 4090", devices.devices())
    made.set_theme(load_theme("light"))
    loaded.changed.connect(made.show_state)
    made.show_state(loaded.state)
    qtbot.addWidget(made)
    made.resize(1144, 80)
    made.show()
    qtbot.waitExposed(made)
    return made


def _offered(strip, qtbot):
    strip.assumed.click()
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None)
    menu = QApplication.activePopupWidget()
    found = [action for action in menu.actions() if not action.isSeparator()]
    menu.close()
    return found


@pytest.mark.parametrize(
    ("runtime", "version", "device", "context"),
    [
        # Ollama since 0.15.5: 4,096 below 24 GiB of all GPUs, 32,768 below 48, else 262,144
        # (docs.ollama.com/context-length), and never more than the model's own.
        ("ollama", None, "RTX 3060 12GB", 4096),
        ("ollama", None, "RTX 4090", 32_768),
        ("ollama", None, "RTX 3060 12GB + RTX 4060 Ti 16GB", 32_768),
        ("ollama", None, "H100 SXM 80GB", MOST),
        # LM Studio's and KoboldCpp's documented defaults.
        ("lmstudio", None, "RTX 4090", 4096),
        ("koboldcpp", None, "RTX 4090", 8192),
        # vLLM's and SGLang's is the model's maximum, and so is llama-server's since --fit: a
        # plan begins with 8,192 in its place.
        ("vllm", None, "H100 SXM 80GB", 8192),
        ("sglang", None, "H100 SXM 80GB", 8192),
        ("llama.cpp", None, "H100 SXM 80GB", 8192),
    ],
)
def test_that_a_plan_begins_with_what_the_runtime_takes_here(
    loaded, runtime, version, device, context
):
    loaded.choose_device(device)
    loaded.choose_runtime(runtime, version)
    assert loaded.state.problem == ""
    assert loaded.state.context == context
    assert loaded.state.plan.assumes_context


def test_that_an_old_llama_server_shares_4096_tokens_between_its_slots(loaded):
    loaded.choose_runtime("llama.cpp", "b4500")
    assert loaded.state.problem == ""
    # common.h of that time: n_ctx = 4096, parted among -np 4.
    assert loaded.state.context == 1024


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_that_no_runtime_begins_with_the_models_maximum_unless_it_is_its_own_figure(
    loaded, runtime
):
    loaded.choose_runtime(runtime, None)
    context, asked = loaded.state.context, loaded.state.plan.deployment.max_model_len
    assert asked is None or asked < MOST
    assert context is not None
    assert context < MOST
    assert first_plan(runtime).assumes_context


def test_that_a_context_of_ones_own_stays_with_another_runtime(loaded):
    loaded.edit("context", max_model_len=12_000)
    loaded.choose_runtime("ollama", None)
    assert loaded.state.context == 12_000
    loaded.assume_context()
    assert loaded.state.context == 32_768
    loaded.undo_stack.undo()
    assert loaded.state.context == 12_000


def test_that_the_chip_says_whose_word_the_context_is(loaded, strip):
    assert strip.assumed.text() == "assumed"
    assert "vLLM" in strip.assumed.toolTip()
    loaded.choose_runtime("ollama", None)
    assert strip.assumed.text() == "default"
    assert strip.assumed.toolTip() == "What Ollama takes here by itself"
    assert strip.context.value == 32_768
    loaded.edit("context", max_model_len=2000)
    assert strip.assumed.text() == ""


def test_that_the_chip_offers_the_longest_that_fits_and_the_models_own(loaded, strip, qtbot):
    longest = loaded.state.limits.max_context
    words = [action.text() for action in _offered(strip, qtbot)]
    assert words == [
        "8,192: what a new plan begins with",
        f"{longest:,}: the longest that fits",
        "131,072: vLLM’s default, the most the model takes",
        "Type another…",
    ]
    _offered(strip, qtbot)[2].trigger()
    assert loaded.state.plan.deployment.max_model_len == MOST
    assert not loaded.state.plan.assumes_context
    _offered(strip, qtbot)[0].trigger()
    assert loaded.state.plan.deployment.max_model_len == 8192
    _offered(strip, qtbot)[-1].trigger()
    assert strip.context.hasFocus()


def test_that_a_context_is_offered_once(loaded):
    loaded.choose_device("H100 SXM 80GB")
    loaded.choose_runtime("ollama", None)
    words = [offer.words for offer in offers(loaded.state)]
    assert words == ["131,072: Ollama’s default on this machine"]
