"""Machines elsewhere, through an exporter's page or an existing Prometheus server.

Which of the two an address is, it says itself: a server answers questions under ``/api/v1``, an
exporter has one page. A server is asked for memory alone, whatever else it keeps.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode

from engine.cancel import CancelToken
from engine.errors import EndpointError, TelemetryError
from engine.telemetry import wire
from engine.telemetry.adapters import exporters
from engine.telemetry.address import parsed as parsed_address
from engine.telemetry.prometheus_text import Page, Sample, number, parsed
from engine.telemetry.snapshot import TelemetrySnapshot
from engine.text import printable
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.telemetry.adapters.exporters import SizeOf
    from engine.telemetry.snapshot import DeviceReading

_EVERY_S = 5.0
LIMIT_S: Final = 5.0
"""How long one answer may take: a busy exporter looks at its cards first."""
_MOST_POINTS: Final = 11_000
"""Prometheus refuses to answer more points a series."""
_MOST_SAMPLES = 1_000_000
_MOST_DEVICES = 512
"""Of one computer: sixteen cards, cut into seven each, are 112. Those without a name count as one.
"""
_LAST_S = 2.0**40
"""No time of a sample is later: 36,000 years from now."""
_LONGEST = 400
_PAGE = "/metrics"
_REFUSALS = frozenset({401, 403})


class PrometheusAdapter:
    """The devices that one address tells of."""

    every_s = _EVERY_S
    patience_s = LIMIT_S + 1.0

    def __init__(
        self,
        typed: str,
        size_of: SizeOf,
        is_offline: Callable[[], bool] = lambda: False,
        machine: str | None = None,
    ) -> None:
        """Nothing is asked before the first sample.

        Args:
            typed: the address as the user wrote it.
            size_of: knows the totals of cards.
            is_offline: whether nothing but this computer may be asked now.
            machine: the one of several that is meant, which may have no name; None for all.

        Raises:
            EndpointError: it is no address.
        """
        self._address = parsed_address(typed)
        self.name = self._address.shown
        self._size_of = size_of
        self._is_offline = is_offline
        self._machine = machine
        self.has_answered = False
        """Whether anything came back at all."""
        is_page = typed.strip().rstrip("/").endswith(_PAGE)
        self._is_server: bool | None = False if is_page else None

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per device.

        Raises:
            TelemetryError: nothing answers, or nothing about memory.
        """
        if self._is_server is None:
            status, _ = self._get(_question("query", query="vector(1)"))
            self._is_server = status == 200
        page = self._queried() if self._is_server else self._scraped()
        found = self._readings(page)
        if not found:
            message = tr(
                "{place} answers and states no memory: DCGM's exporter, nvidia_gpu_exporter, "
                "node_exporter and macmon are understood."
            )
            raise TelemetryError(message.format(place=self.name))
        _check_number(self.name, found)
        return found

    def history(self, start_s: float, end_s: float, step_s: float) -> tuple[TelemetrySnapshot, ...]:
        """What a Prometheus server has kept, oldest first.

        Args:
            start_s: Unix time of the first snapshot.
            end_s: of the last.
            step_s: between two; made longer where there would be more than a server gives.

        Raises:
            TelemetryError: it is no server, or has nothing of that time.
        """
        step = max(step_s, (end_s - start_s) / (_MOST_POINTS - 1), 1.0)
        status, text = self._get(
            _question("query_range", query=_QUERY, start=start_s, end=end_s, step=step)
        )
        by_time: dict[float, list[Sample]] = {}
        for sample in _samples(self.name, status, text):
            by_time.setdefault(sample.at_s or 0.0, []).append(sample)
        snapshots = (
            TelemetrySnapshot(at, at, self._readings(Page(tuple(rows))))
            for at, rows in sorted(by_time.items())
        )
        found = tuple(snapshot for snapshot in snapshots if snapshot.devices)
        if not found:
            message = tr("{place} has kept no memory figures of that time.")
            raise TelemetryError(message.format(place=self.name))
        return found

    def close(self) -> None:
        """Nothing is held: each question has a connection of its own."""

    def _readings(self, page: Page) -> tuple[DeviceReading, ...]:
        found = exporters.readings(page, self._size_of, self.name)
        return tuple(r for r in found if self._machine in (None, r.machine))

    def _get(self, path: str) -> tuple[int, str]:
        """Status and text.

        Raises:
            TelemetryError: no whole answer within the limits, or one that is kept from strangers.
        """
        asking = wire.Asking(CancelToken(), offline=self._is_offline(), limit_s=LIMIT_S)
        try:
            answer = wire.ask(self._address, path, asking)
        except EndpointError as error:
            raise TelemetryError(error.message, field=error.field) from error
        self.has_answered = True
        if answer.status in _REFUSALS:
            message = tr(
                "{place} wants a name or a key: only servers that answer without one are watched."
            )
            raise TelemetryError(message.format(place=self.name))
        return answer.status, answer.text

    def _scraped(self) -> Page:
        status, text = self._get(_PAGE)
        if status != 200:
            message = tr("{place} answers {path} with status {status}.")
            raise TelemetryError(message.format(place=self.name, path=_PAGE, status=status))
        return parsed(text)

    def _queried(self) -> Page:
        status, text = self._get(_question("query", query=_QUERY))
        return Page(tuple(_samples(self.name, status, text)))


_QUERY: Final = f'{{__name__=~"{"|".join(exporters.METRICS)}"}}'


def _check_number(place: str, found: tuple[DeviceReading, ...]) -> None:
    """Refuse what no computer has.

    Raises:
        TelemetryError: it tells of more devices of one computer than are watched.
    """
    count = max(Counter(reading.machine for reading in found).values())
    if count > _MOST_DEVICES:
        message = tr("{place} tells of {count} devices of one computer: up to {most} are watched.")
        raise TelemetryError(
            message.format(place=place, count=grouped(count), most=grouped(_MOST_DEVICES))
        )


def _question(kind: str, **fields: object) -> str:
    return f"/api/v1/{kind}?{urlencode(fields)}"


def _samples(place: str, status: int, text: str) -> list[Sample]:
    """The values of an answer of ``query`` or ``query_range``.

    Raises:
        TelemetryError: the server refused, or it is no such answer.
    """
    try:
        answer: Any = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        message = tr("{place} does not answer as Prometheus does (status {status}).")
        raise TelemetryError(message.format(place=place, status=status))
    fields = cast("dict[str, Any]", answer)
    if fields.get("status") != "success":
        message = tr("{place} refused the question: {why}.")
        why = printable(str(fields.get("error", status)), 200).rstrip(".")
        raise TelemetryError(message.format(place=place, why=why))
    data = fields.get("data")
    rows = cast("dict[str, Any]", data).get("result") if isinstance(data, dict) else None
    samples: list[Sample] = []
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        samples += _series(cast("dict[str, Any]", row)) if isinstance(row, dict) else []
        if len(samples) > _MOST_SAMPLES:
            message = tr("{place} answers with more than a million values: ask for less time.")
            raise TelemetryError(message.format(place=place))
    return samples


def _series(row: Mapping[str, Any]) -> list[Sample]:
    """The points of one series; what is malformed is passed over."""
    metric = row.get("metric")
    if not isinstance(metric, dict):
        return []
    labels = {
        str(key): printable(value, _LONGEST)
        for key, value in cast("dict[Any, Any]", metric).items()
        if isinstance(value, str)
    }
    name = labels.pop("__name__", "")
    points = row.get("values") or [row.get("value")]
    found: list[Sample] = []
    for point in cast("list[Any]", points) if isinstance(points, list) else []:
        match point:
            case [int() | float() as at, str() as written] if abs(at) < _LAST_S:
                value = number(written)
                if value is not None:
                    found.append(Sample(name, labels, value, float(at)))
            case _:
                continue
    return found
