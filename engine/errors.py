"""The one exception tree. Each error carries one sentence a person can act on.

The sentence is plain text from us with names of files and fields put in; it may hold
text from a hostile input, so every output goes through ``engine.text.printable``.
"""

from __future__ import annotations

from typing import ClassVar


class PlimsollError(Exception):
    """What is wrong and what to do, in one sentence; ``field`` names the culprit, if any."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class UsageError(PlimsollError):
    """The request itself is malformed: an unknown option, a value of the wrong type."""

    code = "bad_request"


class ConfigError(PlimsollError):
    """A ``config.json`` (or GGUF metadata) that cannot be a model's."""

    code = "bad_config"


class UnknownArchitectureError(PlimsollError):
    """Not even a bound can be given: no header, no dimensions."""

    code = "unknown_architecture"


class HeaderError(PlimsollError):
    """A safetensors or GGUF header that is truncated, lies, or is too large."""

    code = "bad_header"


class SourceError(PlimsollError):
    """A model reference that leads nowhere: no such file, folder, catalogue name."""

    code = "not_found"


class WorkspaceError(PlimsollError):
    """A ``.plimsoll`` file that isn't one; ``field`` is the key to correct."""

    code = "bad_workspace"


class DeploymentError(PlimsollError):
    """An impossible deployment; ``field`` is the setting to correct."""

    code = "bad_deployment"


class DeviceError(PlimsollError):
    """A device that is not in the catalogue or has disappeared."""

    code = "unknown_device"


class TelemetryError(PlimsollError):
    """A device, driver or recording that cannot be read."""

    code = "telemetry"


class LessonError(PlimsollError):
    """The file of runs that were learned from can't be read or written."""

    code = "bad_lessons"


class EndpointError(PlimsollError):
    """A runtime's address that gives no answer to build on; ``field`` is what to correct."""

    code = "endpoint"


class VerifyError(PlimsollError):
    """A model that cannot be built to be counted; ``field`` is ``python`` where that is missing."""

    code = "verify"


class HubError(PlimsollError):
    """Anything that went wrong between us and the Hub."""

    code = "hub"


class HubNotFoundError(HubError):
    """No such repository, revision or file (or private and not visible to us)."""

    code = "hub_not_found"


class HubGatedError(HubError):
    """The repository wants its terms accepted, or a token that may read it.

    ``page`` is the address where one asks for access; empty where there is none.
    """

    code = "hub_gated"

    def __init__(self, message: str, *, field: str = "", page: str = "") -> None:
        super().__init__(message, field=field)
        self.page = page


class HubOfflineError(HubError):
    """No connection, or the offline switch is on."""

    code = "hub_offline"


class HubRateLimitedError(HubError):
    """The Hub asked us to wait; ``wait_s`` seconds, where it said how long."""

    code = "hub_rate_limited"

    def __init__(self, message: str, *, wait_s: int | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class HubTimeoutError(HubError):
    """The Hub did not answer within our limit."""

    code = "hub_timeout"
