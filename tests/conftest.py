"""What every test starts from: no display, no network, no folders but its own.

Set before any test imports Qt or the Hub's client, since both read the environment once.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

_HOME = Path(tempfile.mkdtemp(prefix="plimsoll-tests-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
if os.environ.get("PLIMSOLL_TEST_DISPLAY") != "1":
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ.update(
    XDG_CONFIG_HOME=str(_HOME / "config"),
    XDG_DATA_HOME=str(_HOME / "data"),
    XDG_CACHE_HOME=str(_HOME / "cache"),
    XDG_STATE_HOME=str(_HOME / "state"),
    HF_HOME=str(_HOME / "huggingface"),
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    QT_ACCESSIBILITY="0",
    # Never the keyring of whoever runs the tests.
    PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring",
)
for _name in (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_ENDPOINT",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
):
    os.environ.pop(_name, None)

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers import socket_guard

# A busy machine is no fault of the code, and one run must equal the next.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

sys.addaudithook(socket_guard.guard)


@pytest.fixture(autouse=True)
def _leave_no_thread(request: pytest.FixtureRequest):
    """Fail a test that leaves a Python thread behind."""
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and not t.daemon and t.is_alive()]
    for thread in left:
        thread.join(2)
    alive = [t.name for t in left if t.is_alive()]
    assert not alive, f"{request.node.name} left threads running: {alive}"


@pytest.fixture
def shared() -> Path:
    """Our measured references; a test that needs them is skipped where they are absent."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the measured references are not on this machine")
    return folder
