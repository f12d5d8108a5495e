"""One look at the runtimes of a computer: who is asked, how often, and what is put together."""

from __future__ import annotations

import itertools
import os

import pytest

from engine.cancel import CancelToken
from engine.seen import identify
from engine.seen.groups import Process
from engine.seen.look import Here, Looker
from engine.seen.model import Known, ModelSeen, Reach, RuntimeSeen
from engine.seen.phase_state import phase_state
from engine.seen.sockets import Listening, listening
from engine.telemetry.address import Address
from engine.telemetry.snapshot import Missing, ProcessReading, Quality
from engine.telemetry.wire import Asking
from tests.helpers.readings import GIB, card, host, moment
from tests.helpers.runtime_server import serving

ASKING = Asking(CancelToken())
NOTHING = moment(host(processes=()))
VERSION = {"version": "0.31.0"}


def here(*processes: Process, sockets: tuple[Listening, ...] = ()) -> Here:
    return Here(lambda: processes, lambda _pids: sockets)


def process(pid: int, parent: int, *words: str) -> Process:
    return Process(pid, parent, words[0], words)


def test_that_a_runtime_is_asked_where_its_head_listens():
    props = {
        "default_generation_settings": {"n_ctx": 4096},
        "total_slots": 1,
        "model_path": "/a.gguf",
    }
    with serving({"/props": props}) as runtime:
        port = str(runtime.address.port)
        looked = here(
            process(50, 1, "llama-server", "-m", "a.gguf", "--port", port),
            sockets=(Listening(runtime.address, 50),),
        )
        snapshot = moment(card(processes=(ProcessReading(50, "llama-server", 3 * GIB),)))
        (seen,) = Looker(looked).look(snapshot, ASKING)
    assert (seen.runtime, seen.reach, seen.pids) == ("llama.cpp", Reach.ANSWERS, (50,))
    assert (seen.held_bytes, seen.pool.tokens) == (3 * GIB, 4096)


def test_that_ports_of_workers_are_never_asked():
    with serving({}) as head, serving({}) as worker:
        looked = here(
            process(50, 1, "vllm", "serve", "m"), process(51, 50, "VLLM::Worker_TP0"),
            sockets=(Listening(head.address, 50), Listening(worker.address, 51)),
        )  # fmt: skip
        (seen,) = Looker(looked).look(NOTHING, ASKING)
    assert head.asked
    assert worker.asked == []
    assert seen.reach is Reach.SILENT
    assert seen.model == ModelSeen("m")


@pytest.fixture
def ollama():
    with serving({"/api/version": VERSION, "/api/ps": {"models": []}}) as found:
        yield found


def usual(monkeypatch, port: int) -> None:
    """Let Ollama's usual port be one that is free here."""
    kinds = tuple(
        kind._replace(ports=(port,)) if kind.runtime == "ollama" else kind
        for kind in identify.KINDS
    )
    monkeypatch.setattr(identify, "KINDS", kinds)
    monkeypatch.setattr(identify, "PORTS", frozenset({port}))


def test_that_a_service_of_another_user_is_found_at_its_usual_port(ollama, monkeypatch):
    # Whose a socket is, is told of one's own processes alone: Ollama runs as a user of its own.
    usual(monkeypatch, ollama.address.port)
    looked = here(process(10, 1, "ollama", "serve"), sockets=(Listening(ollama.address, None),))
    (seen,) = Looker(looked).look(NOTHING, ASKING)
    assert (seen.reach, seen.pids, seen.address) == (Reach.ANSWERS, (10,), ollama.address)


def test_that_a_container_is_found_behind_its_forwarder(ollama, monkeypatch):
    usual(monkeypatch, ollama.address.port)
    looked = here(
        process(10, 1, "ollama", "serve"),
        process(20, 1, "/usr/bin/docker-proxy", "-proto", "tcp"),
        sockets=(Listening(ollama.address, 20),),
    )
    (seen,) = Looker(looked).look(NOTHING, ASKING)
    assert (seen.runtime, seen.reach, seen.pids) == ("ollama", Reach.ANSWERS, (10,))


def test_that_an_answer_of_another_runtime_is_not_taken_for_the_groups(ollama, monkeypatch):
    usual(monkeypatch, ollama.address.port)
    words = ("vllm", "serve", "m", "--port", str(ollama.address.port))
    looked = here(process(10, 1, *words), sockets=(Listening(ollama.address, None),))
    found = {row.runtime: row for row in Looker(looked).look(NOTHING, ASKING)}
    assert (found["vllm"].reach, found["vllm"].pids) == (Reach.NO_ADDRESS, (10,))
    assert (found["ollama"].reach, found["ollama"].pids) == (Reach.ANSWERS, ())


def test_that_another_model_behind_a_socket_of_nobody_is_another_runtime():
    models = {"data": [{"id": "b/other", "owned_by": "vllm"}]}
    with serving({"/v1/models": models}) as runtime:
        words = ("vllm", "serve", "a/model", "--port", str(runtime.address.port))
        looked = here(process(10, 1, *words), sockets=(Listening(runtime.address, None),))
        (seen,) = Looker(looked).look(NOTHING, ASKING)
    assert (seen.reach, seen.model.name) == (Reach.NO_ADDRESS, "a/model")


def test_that_a_process_that_takes_over_a_port_is_asked_at_once():
    now = [0.0]
    with serving({}) as runtime:
        sockets = [(Listening(runtime.address, 50),)]
        processes = [process(50, 1, "llama-server", "-m", "a.gguf")]
        looker = Looker(
            Here(lambda: tuple(processes), lambda _pids: sockets[0]), clock=lambda: now[0]
        )
        looker.look(NOTHING, ASKING)
        asked = len(runtime.asked)
        looker.look(NOTHING, ASKING)
        assert len(runtime.asked) == asked  # left alone for a while
        processes[0] = process(51, 1, "llama-server", "-m", "a.gguf")
        sockets[0] = (Listening(runtime.address, 51),)
        looker.look(NOTHING, ASKING)
        assert len(runtime.asked) > asked


def test_that_a_stated_port_is_the_only_one_asked():
    with serving({}) as own, serving({}) as other:
        words = ("vllm", "serve", "m", f"--port={own.address.port}")
        sockets = (Listening(other.address, 50), Listening(own.address, 50))
        Looker(here(process(50, 1, *words), sockets=sockets)).look(NOTHING, ASKING)
    assert own.asked
    assert other.asked == []


def test_that_a_socket_of_nobody_is_asked_at_a_usual_port_alone():
    with serving({"/api/version": VERSION, "/api/ps": {"models": []}}) as runtime:
        looked = here(sockets=(Listening(runtime.address, None),))
        assert Looker(looked).look(NOTHING, ASKING) == ()
        assert runtime.asked == []


def test_that_what_belongs_to_another_program_is_not_asked():
    looked = here(process(60, 1, "nginx"), sockets=(Listening(Address("127.0.0.1", 8000), 60),))
    assert Looker(looked).look(NOTHING, Asking(CancelToken(), limit_s=0.1)) == ()


def test_that_an_added_address_is_asked_and_shown_even_when_nothing_is_there():
    with serving({"/api/version": VERSION, "/api/ps": {"models": []}}) as runtime:
        (seen,) = Looker(here()).look(NOTHING, ASKING, (runtime.address,))
        assert (seen.runtime, seen.address, seen.pids) == ("ollama", runtime.address, ())
    (gone,) = Looker(here()).look(NOTHING, ASKING, (runtime.address,))
    assert (gone.reach, gone.label) == (Reach.SILENT, "127.0.0.1")
    assert "Nothing answers at" in gone.why


def test_that_an_address_elsewhere_is_left_alone_offline():
    (seen,) = Looker(here()).look(
        NOTHING, Asking(CancelToken(), offline=True), (Address("10.0.0.5", 8000),)
    )
    assert seen.reach is Reach.SILENT
    assert "Offline mode is on" in seen.why


def test_that_one_that_is_no_runtime_is_asked_ever_more_seldom():
    now = [0.0]
    with serving({}) as runtime:
        looker = Looker(here(), clock=lambda: now[0])
        asked_at = []
        for second in range(200):
            now[0] = float(second)
            before = len(runtime.asked)
            (seen,) = looker.look(NOTHING, ASKING, (runtime.address,))
            assert seen.reach is Reach.SILENT
            if len(runtime.asked) > before:
                asked_at.append(second)
    assert asked_at == [0, 10, 40, 100, 160]


def test_that_a_key_is_wanted_given_and_sent():
    keys = {}
    with serving({"/api/version": VERSION, "/api/ps": {"models": []}}, key="k-1") as runtime:
        looker = Looker(here(), key_of=lambda address: keys.get(address.origin, ""))
        (seen,) = looker.look(NOTHING, ASKING, (runtime.address,))
        assert seen.reach is Reach.WANTS_KEY
        assert seen.why.endswith("wants a key.")
        keys[runtime.address.origin] = "k-1"
        looker.ask_again(runtime.address)
        (seen,) = looker.look(NOTHING, ASKING, (runtime.address,))
    assert seen.reach is Reach.ANSWERS
    assert set(runtime.keys) == {"", "Bearer k-1"}


def test_that_the_keyring_is_left_alone_where_no_key_is_wanted():
    looked_up = []
    with serving({"/api/version": VERSION, "/api/ps": {"models": []}}) as runtime:
        looker = Looker(here(), key_of=lambda address: looked_up.append(address) or "k")
        looker.look(NOTHING, ASKING, (runtime.address,))
        assert looked_up == []
        assert set(runtime.keys) == {""}


def test_that_a_key_that_was_taken_is_not_looked_up_again():
    looked_up = []
    answers = {"/api/version": VERSION, "/api/ps": {"models": []}}
    with serving(answers, key="k") as runtime:
        looker = Looker(here(), key_of=lambda address: looked_up.append(address) or "k")
        for _ in range(3):
            (seen,) = looker.look(NOTHING, ASKING, (runtime.address,))
            assert seen.reach is Reach.ANSWERS
    assert looked_up == [runtime.address]


def test_that_models_of_one_ollama_are_told_apart_by_their_runners_files():
    blobs = {"a:1": "/b/sha256-" + "a" * 64, "b:1": "/b/sha256-" + "b" * 64}

    def show(handler, runtime):
        name = runtime.bodies[-1]["model"]
        body = f'{{"modelfile": "FROM /b/blobs/../{blobs[name][3:]}"}}'.encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    ps = {"models": [{"name": n, "size": GIB, "size_vram": GIB} for n in blobs]}
    with serving({"/api/version": VERSION, "/api/ps": ps, "/api/show": show}) as runtime:
        looked = here(
            process(10, 1, "ollama", "serve"),
            process(11, 10, "llama-server", "--model", blobs["a:1"]),
            process(12, 10, "llama-server", "--model", blobs["b:1"]),
            sockets=(Listening(runtime.address, 10),),
        )
        running = (ProcessReading(11, "x", 2 * GIB), ProcessReading(12, "y", 5 * GIB))
        rows = Looker(looked).look(moment(card(processes=running)), ASKING)
    assert [(r.model.name, r.pids, r.held_bytes) for r in rows] == [
        ("a:1", (11,), 2 * GIB), ("b:1", (12,), 5 * GIB),
    ]  # fmt: skip


def test_that_several_models_of_one_process_say_why_they_have_no_bytes_of_their_own():
    loaded = [{"id": name, "config": {"context_length": 4096}} for name in ("a", "b")]
    answer = {"models": [{"key": "a", "loaded_instances": loaded}]}
    with serving({"/api/v1/models": answer}) as runtime:
        looked = here(process(10, 1, "lm-studio"), sockets=(Listening(runtime.address, 10),))
        running = (ProcessReading(10, "lm-studio", 7 * GIB),)
        rows = Looker(looked).look(moment(card(processes=running)), ASKING)
    assert [row.model.name for row in rows] == ["a", "b"]
    for row in rows:
        assert row.held_bytes == Missing("several models share these processes")
        assert row.quality is Quality.NOT_REPORTED


def test_that_the_processor_time_of_a_groups_processes_is_counted():
    def look(*times: float | None) -> RuntimeSeen:
        members = [
            Process(10, 1, "ollama", ("ollama", "serve"), times[0]),
            Process(11, 10, "ollama", ("ollama", "runner"), times[1]),
        ]
        (row,) = Looker(here(*members)).look(NOTHING, ASKING)
        return row

    assert phase_state(look(2.0, 40.5)).cpu_s == 42.5
    assert phase_state(look(2.0, None)).cpu_s is None
    # That time passes is no change of what is seen.
    assert look(2.0, 40.5) == look(2.0, 41.5)


def test_that_a_runtime_that_answers_late_each_time_is_left_alone(monkeypatch):
    clock = itertools.count(step=1.5)
    monkeypatch.setattr("engine.seen.asker.monotonic", lambda: next(clock))
    with serving({}) as runtime:
        looker = Looker(here())
        (row,) = looker.look(NOTHING, ASKING, (runtime.address,))
        # Four questions of 2 s are 8: at 1.5, 3, 4.5, 6 and 7.5 s it is asked, at 9 no more.
        assert len(runtime.asked) == 5
    assert row.reach is Reach.SILENT
    assert row.why.endswith("answers too slowly to be asked more than this.")


@pytest.mark.parametrize(
    ("options", "n_ctx", "slots", "tokens"),
    [
        (("-c", "8192", "-np", "2"), 4096, 2, 8192),
        (("-c", "8192", "-np", "2", "--kv-unified"), 8192, 2, 8192),
        (("-c", "8192"), 8192, 4, 8192),
        ((), 8192, 4, None),
    ],
)
def test_that_the_command_line_says_whether_slots_share(options, n_ctx, slots, tokens):
    props = {"default_generation_settings": {"n_ctx": n_ctx}, "total_slots": slots,
             "model_path": "/a.gguf"}  # fmt: skip
    busy = {
        "is_processing": True,
        "n_prompt_tokens_processed": 1024,
        "next_token": [{"n_decoded": 0}],
    }
    with serving({"/props": props, "/slots": [busy]}) as runtime:
        looked = here(
            process(50, 1, "llama-server", "-m", "a.gguf", *options),
            sockets=(Listening(runtime.address, 50),),
        )
        (seen,) = Looker(looked).look(NOTHING, ASKING)
    if tokens is None:
        assert isinstance(seen.pool.tokens, Missing)
    else:
        assert (seen.pool.tokens, seen.pool.tokens_known) == (tokens, Known.DERIVED)
        assert seen.pool.used_share == 1024 / tokens


def test_that_a_run_of_ones_own_is_a_row_with_its_bytes():
    running = ProcessReading(70, "python3", 9 * GIB, "python3 train.py")
    (seen,) = Looker(here()).look(moment(card(processes=(running,))), ASKING)
    assert (seen.label, seen.model.name, seen.held_bytes) == ("Python", "train.py", 9 * GIB)
    assert seen.reach is Reach.NO_ADDRESS


def test_that_this_program_is_no_runtime():
    looked = here(Process(os.getpid(), 1, "llama-server", ("llama-server",)))
    assert Looker(looked).look(NOTHING, ASKING) == ()


def test_that_listening_sockets_of_this_computer_are_found():
    with serving({}) as runtime:
        assert Listening(runtime.address, os.getpid()) in listening()
