"""A one-way flag between the one who asks a job to stop and the job."""

from __future__ import annotations

import threading


class JobCancelledError(Exception):
    """The job saw that its token was cancelled, and stopped."""


class CancelToken:
    """Polled by a job between steps; set from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the job to stop. May be called twice."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop."""
        return self._event.is_set()

    def raise_if_cancelled(self) -> None:
        """Leave the job here if it was asked to stop.

        Raises:
            JobCancelledError: the token was cancelled.
        """
        if self._event.is_set():
            raise JobCancelledError
