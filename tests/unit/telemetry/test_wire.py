"""Asking a runtime: what is an address, and what no question may do."""

from __future__ import annotations

import threading

import pytest

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import EndpointError
from engine.source.activity import ACTIVITY, text
from engine.telemetry import wire
from engine.telemetry.address import Address, parsed
from tests.helpers.llama_server import free_port
from tests.helpers.runtime_server import serving


def asking(**changes) -> wire.Asking:
    return wire.Asking(CancelToken(), **changes)


@pytest.mark.parametrize(
    ("typed", "meant", "is_here"),
    [
        ("8080", "http://localhost:8080", True),
        ("localhost:11434", "http://localhost:11434", True),
        ("127.0.0.1:8000/metrics", "http://127.0.0.1:8000", True),
        ("http://127.1.2.3:8000/v1/", "http://127.1.2.3:8000", True),
        ("http://[::1]:30000", "http://[::1]:30000", True),
        ("https://gpu7.example.com/vllm", "https://gpu7.example.com:443/vllm", False),
        ("10.0.0.5:8000", "http://10.0.0.5:8000", False),
        ("127.0.0.1.example.com", "http://127.0.0.1.example.com:80", False),
        ("LOCALHOST:1234", "http://localhost:1234", True),
        ("[::1]:9400", "http://[::1]:9400", True),
        ("http://box:9090/prometheus/graph", "http://box:9090/prometheus", False),
    ],
)
def test_that_an_address_is_read_as_it_is_typed(typed, meant, is_here):
    found = parsed(typed)
    assert (str(found), found.is_loopback) == (meant, is_here)


@pytest.mark.parametrize(
    "typed",
    [
        "", "ftp://localhost:1", "http://", "localhost:99999999", "a b:80", "file:///etc",
        "http://[", "http://box\x1b", "x" * 2000,
    ],
)  # fmt: skip
def test_that_what_is_no_address_is_one_sentence(typed):
    with pytest.raises(EndpointError, match="This is no address"):
        parsed(typed)


def test_that_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(EndpointError) as told:
        parsed("http://me:hunter2@10.0.0.5:8000")
    assert "hunter2" not in told.value.message


def test_that_offline_lets_this_computer_be_asked_and_nothing_else():
    with serving({"/health": "ok"}) as runtime:
        assert wire.ask(runtime.address, "/health", asking(offline=True)).text == "ok"
    with pytest.raises(EndpointError, match="Offline mode is on"):
        wire.ask(Address("10.0.0.5", 8000), "/health", asking(offline=True))


def test_that_no_redirect_is_followed_to_another_host():
    def leads(handler, _):
        handler.send_response(302)
        handler.send_header("Location", "http://10.0.0.5/metrics")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with serving({"/metrics": leads}) as runtime:
        with pytest.raises(EndpointError, match=r"elsewhere \(http://10\.0\.0\.5/metrics\)"):
            wire.ask(runtime.address, "/metrics", asking(), key="secret")
        assert runtime.asked == ["GET /metrics"]


def test_that_a_redirect_on_the_same_server_is_followed_and_each_step_is_listed():
    def leads(handler, _):
        handler.send_response(307)
        handler.send_header("Location", "/metrics/?full=1")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with serving({"/in/metrics": leads, "/metrics/?full=1": "up 1"}) as runtime:
        inside = Address(runtime.address.host, runtime.address.port, folder="/in")
        assert wire.ask(inside, "/metrics", asking()).text == "up 1"
        assert runtime.asked == ["GET /in/metrics", "GET /metrics/?full=1"]
    assert [one.path for one in ACTIVITY.all[-2:]] == ["/in/metrics", "/metrics/"]


def test_that_a_runtime_that_never_answers_costs_the_limit_and_no_more():
    def hangs(_, runtime):
        runtime.release.wait(30)

    told = pytest.raises(EndpointError, match=r"has not answered within 0\.2 s")
    with serving({"/metrics": hangs}) as runtime, told:
        wire.ask(runtime.address, "/metrics", asking(limit_s=0.2))


def test_that_an_answer_without_end_is_cut():
    def floods(handler, _):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 65536)

    told = pytest.raises(EndpointError, match="more than 16 MiB")
    with serving({"/metrics": floods}) as runtime, told:
        wire.ask(runtime.address, "/metrics", asking(limit_s=30))


def test_that_a_cancelled_question_ends_while_the_runtime_still_thinks():
    reached = threading.Event()

    def hangs(_, runtime):
        reached.set()
        runtime.release.wait(30)

    token = CancelToken()
    with serving({"/metrics": hangs}) as runtime:
        canceller = threading.Thread(target=lambda: (reached.wait(30), token.cancel()))
        canceller.start()
        with pytest.raises(JobCancelledError):
            wire.ask(runtime.address, "/metrics", wire.Asking(token, limit_s=60))
        canceller.join()


def test_that_nobody_there_is_one_sentence():
    port = free_port()
    with pytest.raises(EndpointError, match=f"Nothing answers at http://127.0.0.1:{port}"):
        wire.ask(Address("127.0.0.1", port), "/", asking())


def test_that_each_question_is_in_the_list_of_what_was_sent():
    with serving({"/info": "{}"}) as runtime:
        wire.ask(runtime.address, "/info?secret=1", asking())
    last = ACTIVITY.all[-1]
    assert (last.method, last.path, last.status) == ("GET", "/info", 404)
    assert last.host == f"127.0.0.1:{runtime.address.port}"


def test_that_what_is_asked_again_and_again_is_one_entry_that_counts():
    with serving({"/info": "{}"}) as runtime:
        before = ACTIVITY.total
        for _ in range(3):
            wire.ask(runtime.address, "/info", asking())
        wire.ask(runtime.address, "/other", asking())
    port = str(runtime.address.port)
    listed = [one for one in ACTIVITY.all if one.host.endswith(f":{port}")]
    assert [(one.path, one.times, one.status) for one in listed] == [
        ("/info", 3, 200), ("/other", 1, 404),
    ]  # fmt: skip
    assert ACTIVITY.total == before + 4
    assert "/info × 3\t200" in text(tuple(listed))
