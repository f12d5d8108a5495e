"""A real llama-server is found, asked, driven and matched, by what the system itself says of it."""

from __future__ import annotations

import json
import threading

import pytest

from engine.cancel import CancelToken
from engine.cli import main
from engine.seen.load_driver import Ended, Load, LoadDriver, Outcome
from engine.seen.look import Looker
from engine.seen.matched import of_processes
from engine.seen.model import Known, Reach
from engine.telemetry.adapters.host import HostAdapter
from engine.telemetry.snapshot import TelemetrySnapshot
from engine.telemetry.wire import Asking
from tests.helpers import llama_server, synthetic_gguf

pytest.importorskip("xllamacpp")
pytest.importorskip("gguf")

CELLS, SLOTS = 4096, 2


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    types = {name: "F16" if len(s) > 1 else "F32" for name, s in llama_server.TINY.tensors()}
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return synthetic_gguf.write(llama_server.TINY, types, path, speaks=True)


@pytest.fixture
def server(gguf, tmp_path):
    with llama_server.serving(gguf, tmp_path, "-c", str(CELLS), "-np", str(SLOTS)) as found:
        yield found


def look(pid: int, looker: Looker | None = None):
    """The row of the process ``pid`` among all runtimes of this computer, if there is one."""
    snapshot = TelemetrySnapshot(0.0, 0.0, HostAdapter().sample())
    rows = (looker or Looker()).look(snapshot, Asking(CancelToken(), offline=True))
    return next((row for row in rows if pid in row.pids), None)


def test_that_a_loaded_server_is_found_with_model_context_and_memory(server, gguf):
    pid, port = server
    seen = look(pid)
    assert (seen.runtime, seen.reach, seen.pids) == ("llama.cpp", Reach.ANSWERS, (pid,))
    assert seen.address.port == port
    assert (seen.model.file, seen.model.slots) == (str(gguf), SLOTS)
    assert seen.model.context_tokens == CELLS // SLOTS
    assert (seen.pool.tokens, seen.pool.tokens_known) == (CELLS, Known.DERIVED)
    assert (seen.pool.used_tokens, seen.running, seen.waiting) == (0, 0, 0)
    # 4 layers x 4 heads x 32 x 2 x 2 B x 4096 cells are 8 MiB of cache at least, and 5 of weights.
    assert seen.held_bytes > 13 * 2**20
    assert not seen.held[0].is_accelerator


def test_that_it_becomes_the_plan_that_it_runs(server, gguf):
    found = of_processes(look(server[0]))
    assert (found.runtime, found.model) == ("llama.cpp", str(gguf))
    deployment = found.deployment
    assert (deployment.max_model_len, deployment.n_parallel) == (CELLS // SLOTS, SLOTS)
    assert found.strays == ()
    assert deployment.runtime_version is None  # the wheel's build calls itself b0


def test_that_prefill_decode_and_waiting_are_seen_while_it_is_driven(server):
    pid, _ = server
    address = look(pid).address
    load = Load(prompt_tokens=60, output_tokens=700, requests=6, concurrency=4, limit_s=60)
    driven = []
    stop = CancelToken()
    thread = threading.Thread(
        target=lambda: driven.append(LoadDriver(address, "tiny", load).run(stop))
    )
    thread.start()
    looker = Looker()
    rows = []
    while thread.is_alive() and not stop.cancelled:
        rows.append(look(pid, looker))
        if len(rows) > 3 and rows[-1].output_tokens > 0 and rows[-1].waiting:
            stop.cancel()
    thread.join()
    busy = [row for row in rows if row.running]
    # Four at a time for two slots: two run and two wait.
    assert max(row.running for row in busy) == SLOTS
    assert max(row.waiting for row in busy) == 2
    assert all(0 < row.pool.used_share <= 1 for row in busy if row.output_tokens)
    counted = [row.output_tokens for row in rows]
    assert counted == sorted(counted)
    assert counted[-1] > 0
    assert rows[-1].prompt_tokens > 0
    (found,) = driven
    assert found.ended in {Ended.ALL_SENT, Ended.BY_USER}
    assert found.count(Outcome.FAILED) == 0


def test_that_the_terminal_names_it_where_it_is_asked_to(server, capsys):
    assert main(["machine", "--json", "--runtimes"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (row,) = [row for row in answer["runtimes"] if row["pids"] == [server[0]]]
    assert (row["runtime"], row["reach"]) == ("llama.cpp", "answers")
    assert row["pool"]["tokens"] == CELLS
    assert main(["watch", "--runtimes", "--count", "1"]) == 0
    assert f"answers at http://127.0.0.1:{server[1]}" in capsys.readouterr().out


def test_that_an_unloaded_server_is_gone(gguf, tmp_path):
    looker = Looker()
    with llama_server.serving(gguf, tmp_path, "-c", "512") as (pid, _):
        assert look(pid, looker) is not None
    assert look(pid, looker) is None


def test_that_it_asks_for_its_key(gguf, tmp_path):
    options = ("-c", "512", "--api-key", "k-12345")
    with llama_server.serving(gguf, tmp_path, *options) as (pid, port):
        assert look(pid).reach is Reach.WANTS_KEY
        looker = Looker(key_of=lambda address: "k-12345" if address.port == port else "")
        assert look(pid, looker).reach is Reach.ANSWERS
