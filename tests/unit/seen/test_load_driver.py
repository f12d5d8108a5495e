"""The load driver: bounded, this computer alone, and what it says of each request."""

from __future__ import annotations

import threading

import pytest

from engine.cancel import CancelToken
from engine.errors import UsageError
from engine.seen.load_driver import Ended, Load, LoadDriver, Outcome
from engine.telemetry.address import Address
from engine.telemetry.snapshot import Missing
from tests.helpers.runtime_server import serving, streamed

COMPLETIONS = "/v1/completions"


def drive(runtime, load: Load, token: CancelToken | None = None, progress=None, key=""):
    driver = LoadDriver(runtime.address, "tiny", load, key)
    return driver.run(token or CancelToken(), progress)


def test_that_every_request_asks_for_what_the_load_says_and_tells_what_came():
    usage = {"prompt_tokens": 8, "completion_tokens": 5}
    with serving({COMPLETIONS: streamed(5, usage)}) as runtime:
        told = []
        driven = drive(runtime, Load(8, 5, requests=6, concurrency=3), progress=told.append)
    assert driven.ended is Ended.ALL_SENT
    assert driven.count(Outcome.DONE) == 6
    assert [r.number for r in driven.requests] == [1, 2, 3, 4, 5, 6]
    assert {(r.prompt_tokens, r.output_tokens) for r in driven.requests} == {(8, 5)}
    assert sorted(r.number for r in told) == [1, 2, 3, 4, 5, 6]
    body = runtime.bodies[0]
    assert (body["model"], body["max_tokens"], body["stream"]) == ("tiny", 5, True)
    assert len({body["prompt"] for body in runtime.bodies}) == 6
    assert all(0 <= r.first_token_s <= r.took_s <= driven.took_s for r in driven.requests)


def test_that_prompts_reach_their_length_once_the_runtime_has_counted_one():
    with serving({COMPLETIONS: streamed(1, {"prompt_tokens": 300, "completion_tokens": 1})}) as it:
        drive(it, Load(prompt_tokens=100, output_tokens=1, requests=2))
    # 100 words were 300 tokens there, so 33 are 100.
    assert [len(body["prompt"].split()) for body in it.bodies] == [100, 33]


def test_that_a_request_is_given_up_after_its_first_token():
    with serving({COMPLETIONS: streamed(3, waits=True)}) as runtime:
        driven = drive(runtime, Load(8, 3, requests=2, give_up_every=1))
    assert [r.outcome for r in driven.requests] == [Outcome.GIVEN_UP] * 2
    assert [r.output_tokens for r in driven.requests] == [1, 1]
    assert isinstance(driven.requests[0].prompt_tokens, Missing)


def test_that_bursts_begin_together_and_only_after_the_last_one_ended():
    going, most, over = set(), [], threading.Barrier(3, timeout=30)
    lock = threading.Lock()

    def answer(handler, runtime):
        with lock:
            going.add(id(handler))
            most.append(len(going))
        over.wait()  # breaks unless three are there at once
        with lock:
            going.discard(id(handler))
        streamed(1)(handler, runtime)

    with serving({COMPLETIONS: answer}) as runtime:
        driven = drive(runtime, Load(8, 1, requests=6, concurrency=3, in_bursts=True))
    assert driven.count(Outcome.DONE) == 6
    assert sorted(most) == [1, 1, 2, 2, 3, 3]


def test_that_the_user_ends_it_and_keeps_what_was_measured():
    token = CancelToken()
    with serving({COMPLETIONS: streamed(2, waits=True)}) as runtime:
        first = streamed(1, {"prompt_tokens": 4, "completion_tokens": 1})

        def answer(handler, recorded):
            if len(runtime.asked) == 1:
                first(handler, recorded)
            else:
                token.cancel()
                recorded.release.wait(30)

        runtime.answers[COMPLETIONS] = answer
        driven = drive(runtime, Load(4, 1, requests=50), token)
    assert driven.ended is Ended.BY_USER
    assert [r.outcome for r in driven.requests] == [Outcome.DONE, Outcome.STOPPED]


def test_that_the_time_limit_ends_it():
    with serving({COMPLETIONS: streamed(2, waits=True)}) as runtime:
        driven = drive(runtime, Load(4, 2, requests=9, concurrency=2, limit_s=1))
    assert driven.ended is Ended.TIME
    assert [r.outcome for r in driven.requests] == [Outcome.STOPPED] * 2


def test_that_three_refusals_end_it_with_the_runtimes_own_words():
    def refuses(handler, _):
        handler.send_response(400)
        handler.end_headers()
        handler.wfile.write(b'{"error": {"message": "prompt is too long"}}')

    with serving({COMPLETIONS: refuses}) as runtime:
        driven = drive(runtime, Load(requests=100))
    assert driven.ended is Ended.FAILURES
    assert len(runtime.asked) == len(driven.requests) == 3
    assert "refused the request (400): prompt is too long." in driven.requests[0].why


def test_that_a_key_is_sent_and_its_want_is_said():
    with serving({COMPLETIONS: streamed(1)}, key="k-1") as runtime:
        assert drive(runtime, Load(requests=1), key="k-1").count(Outcome.DONE) == 1
        (failed,) = drive(runtime, Load(requests=1)).requests
    assert failed.why.endswith("wants a key.")


def test_that_nothing_is_sent_to_another_computer():
    with pytest.raises(UsageError, match="sent to this computer alone"):
        LoadDriver(Address("10.0.0.5", 8000), "m", Load())


@pytest.mark.parametrize(
    ("field", "value"), [("requests", 1001), ("concurrency", 0), ("limit_s", 0), ("pause_s", 61)]
)
def test_that_a_load_has_bounds(field, value):
    with pytest.raises(UsageError) as told:
        Load(**{field: value})
    assert told.value.field == field
