"""How fast the window is there, what it loads until then, and what drawing costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.pace import allowed

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).resolve().parents[2]
INTERACTIVE_S = 2.0
FRAME_S = 0.016
SHARE_OF_A_CORE = 0.25

# Prints when the first events after the first paint are handled: then it takes clicks and keys.
START = """
import json, sys, tempfile, time
begun = time.perf_counter()
sys.argv = ["plimsoll"]
from pathlib import Path
from PySide6.QtCore import QTimer
from gui.app import App, Options, make_application
application = make_application(["plimsoll"])
app = App(application, Options(offline=True, settings_folder=Path(tempfile.mkdtemp())))
app.start()

def painted():
    taken = time.perf_counter() - begun
    heavy = {"transformers", "torch", "huggingface_hub", "httpx2", "keyring", "pydantic"}
    found = sorted(heavy & {name.split(".")[0] for name in sys.modules})
    processor = time.process_time()
    print(json.dumps({"seconds": taken, "processor": processor, "heavy": found}), flush=True)
    app.window.close()
    application.quit()

QTimer.singleShot(0, lambda: QTimer.singleShot(0, painted))
application.exec()
"""

# One device with a day of history, of which the last hour at 10 Hz: how long one repaint takes.
DAY = """
import json, math, time
from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.sizing import size
from engine.source import catalogue
from dataclasses import replace
from gui.app import make_application
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import Sample, Series
from gui.kit.theme import load_theme
application = make_application(["plimsoll"])
machine = devices.machine(devices.find("RTX 4090"))
slots = tuple(replace(slot, uuid="gpu-0") for slot in machine.slots)
model = read(catalogue.raw(catalogue.find("meta-llama/Llama-3.1-8B-Instruct")))
picture = MemoryPicture(load_theme("light"))
picture.resize(1100, 330)
plan = Deployment(max_model_len=8192, concurrency=4)
picture.set_scene(scene_for(size(model, plan, replace(machine, slots=slots, is_here=True))))
series, moment = Series(), 0.0
for n in range(82_800 + 36_000):
    moment += 1.0 if n < 82_800 else 0.1
    used = int((18 + 3 * math.sin(moment / 60) + (n % 17) / 17) * 2**30)
    series.append(Sample(moment, used, used - 2**30, used // 5))
picture.kept.series["gpu-0"], picture.kept.now_s = series, moment
picture.set_window_seconds(86_400)
picture.show()
picture.grab()
taken = []
for _ in range(40):
    begun = time.perf_counter()
    picture.grab()
    taken.append(time.perf_counter() - begun)
print(json.dumps({"points": series.window(0, moment).shape[1], "frames": sorted(taken)}))
"""

# Eight devices with an hour at 10 Hz each, ten more samples a second, and the redraws they cause.
DRAW = """
import copy, json, math, sys, time
from PySide6.QtCore import QTimer
from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.sizing import size
from engine.source import catalogue
from engine.telemetry.snapshot import DeviceReading, PoolKind, TelemetrySnapshot
from engine.units import UnitSystem
from dataclasses import replace
from gui.app import make_application
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import Sample, Series
from gui.kit.theme import load_theme
application = make_application(["plimsoll"])
machine = devices.machine(devices.find("H100 SXM 80GB"), 8)
slots = tuple(replace(slot, uuid=f"gpu-{n}") for n, slot in enumerate(machine.slots))
machine = replace(machine, slots=slots, is_here=True)
model = read(catalogue.raw(catalogue.find("meta-llama/Llama-3.1-70B-Instruct")))
plan = Deployment(max_model_len=8192, concurrency=16, tensor_parallel_size=8)
picture = MemoryPicture(load_theme("light"))
picture.resize(1100, 600)
picture.set_scene(scene_for(size(model, plan, machine), UnitSystem.BINARY))
picture.set_window_seconds(3600)

def used(n, t):
    return int((60 + 6 * math.sin(t / 60 + n)) * 2**30)

moment = 0.0

def sample():
    global moment
    moment += 0.1
    total = 80 * 2**30
    readings = tuple(
        DeviceReading(
            f"gpu-{n}", "GPU", PoolKind.VRAM, total, used(n, moment), total - used(n, moment), 0,
            (), "stub",
        )
        for n in range(8)
    )
    picture.append(TelemetrySnapshot(moment, 1.7e9 + moment, readings))

hour = Series()
for _ in range(36_000):
    moment += 0.1
    hour.append(Sample(moment, used(0, moment)))
# Filled from within: handing over an hour sample by sample would take longer than the measuring.
picture.kept.series |= {f"gpu-{n}": copy.deepcopy(hour) for n in range(8)}
picture.kept.now_s = moment
sample()
picture.show()
timer = QTimer(interval=100)
timer.timeout.connect(sample)
shares = []
begun = None

def look():
    global begun
    now = (time.perf_counter(), time.process_time())
    if begun is not None:
        shares.append((now[1] - begun[1]) / (now[0] - begun[0]))
    begun = now
    if len(shares) == 4:
        print(json.dumps({"shares": shares}), flush=True)
        application.quit()

watch = QTimer(interval=2000)
watch.timeout.connect(look)
timer.start()
watch.start()
application.exec()
"""


def run(program: str) -> dict[str, Any]:
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    settings = clean | {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_that_the_window_takes_input_within_two_seconds_and_loads_no_hub_or_transformers(note):
    starts = [run(START) for _ in range(4)][1:]
    assert [start["heavy"] for start in starts] == [[], [], []]
    # On a machine with more to do than cores a clock measures the others: count processor time.
    is_busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    taken = min(start["processor" if is_busy else "seconds"] for start in starts)
    kind = "processor time" if is_busy else "by the clock"
    note(f"window takes input, {kind}", f"{taken:.2f} s", f"{INTERACTIVE_S} s")
    assert taken <= allowed(INTERACTIVE_S)


def test_that_eight_devices_with_an_hour_at_ten_hertz_draw_within_a_quarter_of_a_core(note):
    shares = run(DRAW)["shares"]
    # The quietest two seconds: on a busy machine the same work takes more processor time.
    share = min(shares)
    note("live drawing, 8 devices × 1 h at 10 Hz", f"{share:.0%}", f"{SHARE_OF_A_CORE:.0%}")
    assert share <= SHARE_OF_A_CORE


def test_that_a_day_of_history_is_painted_within_a_frame(note):
    done = run(DAY)
    assert (
        done["points"] > 50_000
    )  # both extremes of every ten seconds, and 36,000 of the last hour
    # The median of the quietest half: a shared machine adds to single frames.
    frame = done["frames"][len(done["frames"]) // 4]
    note("one frame at 24 h of history", f"{frame * 1000:.1f} ms", f"{FRAME_S * 1000:.0f} ms")
    assert frame <= allowed(FRAME_S)
