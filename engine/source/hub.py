"""The only door to the Hugging Face Hub: lists of models, and one model's config and headers.

The real ``huggingface_hub`` client does the talking, through our transport
(``hub_transport``). Nothing is written to disk: configs and headers are small, and a model
that the user's own Hub cache already holds at the same commit is read from there.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from engine.errors import HubError, HubOfflineError, PlimsollError
from engine.source import files, local
from engine.source.access import DEFAULT_ENDPOINT
from engine.source.hub_errors import translated
from engine.source.hub_models import EXPAND, HubFile, HubPage, model_from
from engine.source.hub_ranges import Fetched
from engine.source.hub_repository import Repository
from engine.source.reach import Reach, mirror_of_environment
from engine.source.reference import HubReference, is_hub_name, is_web_address
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.cancel import CancelToken
    from engine.source.access import Access
    from engine.source.hub_policy import Policy
    from engine.source.raw import RawModel
    from engine.source.trail import Trail

    Progress = Callable[[int, int], None]
    """Called with headers read and headers to read."""

_Answer = TypeVar("_Answer")

_COMMIT = re.compile(r"[0-9a-f]{40}")
_AGENT = ("plimsoll", "0.1.0")


_SENSELESS = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading an answer that isn't as agreed may raise in the library or here."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Which Hub, in whose name, and how. One value, so that no token meets another's address."""

    endpoint: str
    access: Access | None
    reach: Reach


def endpoint_of(reach: Reach, endpoint: str | None = None) -> str:
    """The Hub to ask: ``endpoint``, the mirror, what the environment says, huggingface.co."""
    named = endpoint or reach.mirror or mirror_of_environment() or DEFAULT_ENDPOINT
    return named.rstrip("/")


class HubClient:
    """Asks the Hub on behalf of one user. May be shared between threads."""

    def __init__(
        self,
        endpoint: str | None = None,
        access: Access | None = None,
        *,
        offline: bool = False,
        timeout_s: float = 10,
        reach: Reach | None = None,
    ) -> None:
        """Nothing is imported or sent before the first question.

        Args:
            endpoint: another Hub; by default the mirror of ``reach``, ``HF_ENDPOINT``, else
                huggingface.co.
            access: whose token is sent to the endpoint alone. Without it no token is sent, not
                even a stored one.
            offline: never open a connection.
            timeout_s: longest silence in a request, and longest wait for a connection.
            reach: the way there; by default as environment and system say.
        """
        reach = reach or Reach()
        self._place = _Place(endpoint_of(reach, endpoint), access, reach)
        self.offline = offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in {
            "1",
            "TRUE",
            "ON",
        }
        self._timeout_s = timeout_s

    @property
    def endpoint(self) -> str:
        """The Hub that is asked."""
        return self._place.endpoint

    @property
    def reach(self) -> Reach:
        """The way there."""
        return self._place.reach

    @property
    def access(self) -> Access | None:
        """Whose token is sent."""
        return self._place.access

    @access.setter
    def access(self, access: Access | None) -> None:
        self._place = replace(self._place, access=access)

    def go_by(self, reach: Reach, endpoint: str, access: Access | None) -> None:
        """Take another way from now on, perhaps to another Hub, with the token for that one."""
        self._place = _Place(endpoint, access, reach)

    def asked_as(self, access: Access) -> HubClient:
        """The same Hub, reached the same way, with the token of ``access``."""
        return HubClient(
            self.endpoint, access, offline=self.offline, timeout_s=self._timeout_s, reach=self.reach
        )

    def whoami(self, token: CancelToken) -> tuple[str, bool]:
        """The name that the token belongs to, and whether it may only read.

        Raises:
            HubError: one of its kinds says why there is no answer.
        """

        def ask() -> tuple[str, bool]:
            from huggingface_hub import get_session, hf_raise_for_status

            url = f"{self.endpoint}/api/whoami-v2"
            response = get_session().get(url, headers=self._headers())
            hf_raise_for_status(response)
            answer = cast("dict[str, Any]", response.json())
            role = answer.get("auth", {}).get("accessToken", {}).get("role")
            return str(answer["name"]), role == "read"

        return self._asked(ask, HubReference(tr("your token")), token)

    def search(self, query: str, token: CancelToken, page_size: int = 50) -> Iterator[HubPage]:
        """Pages of models that answer to ``query``, most downloaded first.

        Each page is one request, sent when it is asked for.

        Raises:
            HubError: one of its kinds says why there is no answer.
        """
        page: HubPage | None = None
        seen: set[str] = set()
        while page is None or (page.has_more and page.next_url not in seen):
            if page is not None:
                seen.add(page.next_url)
            page = self.page(query, token, page_size, page)
            yield page

    def page(
        self, query: str, token: CancelToken, page_size: int = 50, after: HubPage | None = None
    ) -> HubPage:
        """One page of the answer to ``query``: the first, or the one that follows ``after``.

        Raises:
            HubError: one of its kinds says why there is no answer.
        """
        wanted = HubReference(tr("models like {query!r}").format(query=query))
        params: dict[str, str | int | list[str]] = {}
        url = after.next_url if after is not None else f"{self.endpoint}/api/models"
        if after is None:
            # The address of a later page holds all this itself.
            params = {
                "search": query, "limit": page_size, "sort": "downloads", "expand": list(EXPAND),
            }  # fmt: skip
        items, next_url = self._page(url, params, wanted, token)
        rows = (model_from(item) for item in items)
        # A page without anything new would be followed for ever.
        is_end = not items or next_url == url
        return HubPage(tuple(row for row in rows if row is not None), "" if is_end else next_url)

    def _page(
        self,
        url: str,
        params: Mapping[str, str | int | list[str]],
        wanted: HubReference,
        token: CancelToken,
    ) -> tuple[list[object], str]:
        def ask() -> tuple[list[object], str]:
            from huggingface_hub import get_session, hf_raise_for_status

            response = get_session().get(url, params=dict(params) or None, headers=self._headers())
            hf_raise_for_status(response)
            answer: object = response.json()
            if not isinstance(answer, list):
                raise TypeError(tr("a list of models was expected"))
            return cast("list[object]", answer), response.links.get("next", {}).get("url", "")

        return self._asked(ask, wanted, token)

    def fetch(
        self,
        repo_id: str,
        token: CancelToken,
        revision: str | None = None,
        progress: Progress | None = None,
        file: str = "",
    ) -> RawModel:
        """One model at one commit: its config, and the headers of its weight files.

        Args:
            repo_id: ``org/name``.
            token: looked at before and during every request.
            revision: branch, tag or commit; the default branch if None.
            progress: told of each header that has been read.
            file: one of the repository's GGUF or safetensors files, or a quantisation.

        Raises:
            HubError: one of its kinds says why there is no answer.
            ConfigError: a config that is no JSON object.
            HeaderError: a weights file whose header is truncated or lies.
        """
        wanted = HubReference(repo_id, revision, file)
        if self.offline:
            return _from_cache(wanted, token)
        return self._repository(wanted, token).read(progress)

    def files(
        self, repo_id: str, token: CancelToken, revision: str | None = None
    ) -> tuple[HubFile, ...]:
        """The GGUF models of a repository with their sizes, parts joined, smallest first.

        Projectors, which go with a model and are none, come after them.

        Raises:
            HubError: one of its kinds says why there is no answer.
        """
        found = self._repository(HubReference(repo_id, revision), token)
        return found.gguf_models + found.projectors

    def _repository(self, wanted: HubReference, token: CancelToken) -> Repository:
        """What the Hub lists for a repository, at the commit that the revision means now."""

        def get(url: str, headers: Mapping[str, str], limit: int) -> Fetched:
            return self._get(wanted, token, url, headers, limit)

        def ask() -> Repository:
            from huggingface_hub import HfApi

            api = HfApi(
                endpoint=self.endpoint,
                token=False,
                library_name=_AGENT[0],
                library_version=_AGENT[1],
            )
            info = api.model_info(
                wanted.repo_id, revision=wanted.revision, files_metadata=True, timeout=None
            )
            name = info.id if is_hub_name(str(info.id)) else wanted.repo_id
            commit = info.sha if _COMMIT.fullmatch(str(info.sha)) else ""
            listed = ((s.rfilename, s.size) for s in info.siblings or ())
            return Repository(wanted, name, commit or "", _sane(listed), self.endpoint, get, token)

        return self._asked(ask, wanted, token)

    def _headers(self) -> dict[str, str]:
        # Never with a token: the transport adds it, to what goes to the Hub itself.
        from huggingface_hub.utils import (
            build_hf_headers,  # pyright: ignore[reportUnknownVariableType]  # a bare dict there
        )

        return build_hf_headers(
            token=False,
            library_name=_AGENT[0],
            library_version=_AGENT[1],
        )

    def _get(
        self,
        wanted: HubReference,
        token: CancelToken,
        url: str,
        headers: Mapping[str, str],
        limit_bytes: int,
    ) -> Fetched:
        """A GET, with up to ``limit_bytes`` of the body.

        A body that goes on after that is not read.

        Raises:
            HubError: one of its kinds says why there is no answer.
        """

        def ask() -> Fetched:
            from huggingface_hub import get_session, hf_raise_for_status

            with get_session().stream("GET", url, headers={**self._headers(), **headers}) as answer:
                hf_raise_for_status(answer)
                body = bytearray()
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > limit_bytes:
                        break
                named = {name.lower(): value for name, value in answer.headers.items()}
                kept = bytes(body[:limit_bytes])
                return Fetched(answer.status_code, named, kept, str(answer.url))

        return self._asked(ask, wanted, token)

    def _asked(
        self, ask: Callable[[], _Answer], wanted: HubReference, token: CancelToken
    ) -> _Answer:
        """Run ``ask`` under our limits; whatever it raises becomes one of our errors."""
        policy = self.policy(token)
        # The HTTP library takes 0.2 s to import, which a model on this disk need not pay.
        import httpx2  # noqa: PLC0415

        from engine.source import hub_policy, hub_transport  # noqa: PLC0415

        hub_transport.install()
        try:
            with hub_policy.policy_in_force(policy):
                return ask()
        except PlimsollError:
            raise
        except (*_SENSELESS, httpx2.HTTPError, httpx2.InvalidURL) as exc:
            signed_in = policy.bearer is not None
            raise translated(exc, wanted, self.endpoint, signed_in=signed_in) from exc

    def policy(self, token: CancelToken, trail: Trail | None = None) -> Policy:
        """What a request of this client may do. May wait for the keyring.

        Args:
            token: looked at before and during the request.
            trail: told how far the request came.

        Raises:
            HubOfflineError: nothing may be asked.
            HubError: the address is none.
        """
        place = self._place
        if self.offline:
            raise HubOfflineError(tr("Offline mode is on, so the Hub was not asked."))
        token.raise_if_cancelled()
        if not is_web_address(place.endpoint):
            message = tr(
                "The Hub’s address (HF_ENDPOINT) is {address}; it has to start with http:// or "
                "https://."
            )
            shown = repr(printable(place.endpoint, 80))
            raise HubError(message.format(address=shown), field="endpoint")
        from engine.source.hub_policy import Policy  # noqa: PLC0415 - slow, see above
        from engine.source.hub_transport import origin  # noqa: PLC0415 - see above

        bearer = place.access.token if place.access is not None else None
        return Policy(
            token, self._timeout_s, self.offline, origin(place.endpoint), bearer, place.reach, trail
        )


def _sane(listed: Iterable[tuple[object, object]]) -> dict[str, int | None]:
    """Files of a repository by path: only paths below it, and only sizes that are one."""
    return {
        path: size if type(size) is int and size >= 0 else None
        for path, size in listed
        if isinstance(path, str)
        and path
        and "\\" not in path
        and not {"", ".", ".."} & set(path.split("/"))
    }


def _from_cache(wanted: HubReference, token: CancelToken) -> RawModel:
    """The model from the user's own Hub cache, for offline mode.

    Raises:
        HubOfflineError: it isn't there.
    """
    path = local.cached(wanted.repo_id, wanted.revision, wanted.file)
    if path is None:
        raise HubOfflineError(
            tr(
                "Offline mode is on, and {repo_id} is not in the Hub cache of this computer."
            ).format(repo_id=wanted.repo_id)
        )
    return files.read(path, token)
