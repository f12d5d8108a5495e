"""What every test of the runtimes uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.cancel import CancelToken
from engine.seen import identify
from engine.seen.asker import Asker
from engine.telemetry.wire import Asking
from tests.helpers.runtime_server import serving

if TYPE_CHECKING:
    from engine.seen.model import RuntimeSeen


@pytest.fixture
def said():
    """What the runtime that answers so says, as one that nobody told us the name of."""

    def read(answers, expected: str = "", key: str = "") -> tuple[RuntimeSeen, ...]:
        with serving(answers) as runtime:
            return identify.read(Asker(runtime.address, Asking(CancelToken()), key), expected)

    return read
