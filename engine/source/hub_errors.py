"""What went wrong on the Hub, in one sentence that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import HubError, HubGatedError, HubNotFoundError, HubOfflineError
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.source.reference import HubReference


def translated(exc: Exception, wanted: HubReference, endpoint: str, *, signed_in: bool) -> HubError:
    """Our error for one that huggingface_hub raised while it looked for ``wanted``."""
    # Imported by now: it raised ``exc``.
    from huggingface_hub import errors

    name = wanted.repo_id
    # A gated repository is also "not found" to the library, and has to be asked for first.
    known: tuple[tuple[type[Exception], Callable[[], HubError]], ...] = (
        (errors.GatedRepoError, lambda: _gated(exc, name, endpoint, signed_in=signed_in)),
        (
            errors.RevisionNotFoundError,
            lambda: HubNotFoundError(
                tr("{name} has no revision {value}.").format(
                    name=name, value=wanted.revision or "main"
                ),
                field="revision",
            ),
        ),
        (
            errors.EntryNotFoundError,
            lambda: HubNotFoundError(
                tr("{name} has no file {value}.").format(
                    name=name, value=wanted.file or "of that name"
                ),
                field="file",
            ),
        ),
        (
            errors.DisabledRepoError,
            lambda: HubError(tr("The Hub has disabled {name}.").format(name=name)),
        ),
        (
            errors.RepositoryNotFoundError,
            lambda: _absent(name, signed_in=signed_in),
        ),
        (
            errors.OfflineModeIsEnabled,
            lambda: HubOfflineError(tr("HF_HUB_OFFLINE is set, so the Hub was not asked.")),
        ),
        (errors.HfHubHTTPError, lambda: _refused(exc, name, signed_in=signed_in)),
    )
    for kind, made in known:
        if isinstance(exc, kind):
            return made()
    return HubError(
        tr("The answer about {name} makes no sense: {endpoint} seems to be no Hub.").format(
            name=name, endpoint=endpoint
        )
    )


def _message(exc: Exception) -> str:
    response = getattr(exc, "response", None)
    return str(getattr(response, "headers", {}).get("X-Error-Message", ""))


def _gated(exc: Exception, name: str, endpoint: str, *, signed_in: bool) -> HubGatedError:
    page = f"{endpoint}/{name}"
    if "awaiting" in _message(exc):
        words = tr("The authors of {name} have not answered your request for access yet.").format(
            name=name
        )
    elif signed_in:
        words = tr("Your token may not read {name} yet: ask for access at {page}.").format(
            name=name, page=page
        )
    else:
        words = tr(
            "{name} is gated: accept its terms at {page} and give a token "
            "with read access, or download its config.json there and open "
            "that."
        ).format(name=name, page=page)
    return HubGatedError(words, page=page)


def _absent(name: str, *, signed_in: bool) -> HubNotFoundError:
    seen = tr("or your token may not see it") if signed_in else tr("or it is private")
    return HubNotFoundError(
        tr("The Hub has no model {name}, {seen}.").format(name=name, seen=seen), field="model"
    )


def _refused(exc: Exception, name: str, *, signed_in: bool) -> HubError:
    status = getattr(getattr(exc, "response", None), "status_code", 0)
    if "Invalid credentials" in _message(exc):
        return HubGatedError(tr("The Hub does not know this token; make a new one."), field="token")
    if status == 401:
        # How the Hub hides what is private; the library knows it by https addresses only.
        return _absent(name, signed_in=signed_in)
    if status == 403:
        return HubGatedError(
            tr("The Hub refuses access to {name} ({status}).").format(name=name, status=status)
        )
    return HubError(
        tr("The Hub answered {status} when asked about {name}.").format(status=status, name=name)
    )
