"""The only door to the Hugging Face Hub: lists of models, and one model's config and headers.

The real ``huggingface_hub`` client does the talking, through our transport
(``hub_transport``). Nothing is written to disk: configs and headers are small, and a model
that the user's own Hub cache already holds at the same commit is read from there.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, TypeVar, cast

from engine.errors import HubError, HubOfflineError, PlimsollError
from engine.source import files, local
from engine.source.access import DEFAULT_ENDPOINT
from engine.source.hub_errors import translated
from engine.source.hub_models import EXPAND, HubFile, HubPage, model_from
from engine.source.hub_repository import Repository
from engine.source.reference import HubReference, is_hub_name, is_web_address
from engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.cancel import CancelToken
    from engine.source.access import Access
    from engine.source.raw import RawModel

    Progress = Callable[[int, int], None]
    """Called with headers read and headers to read."""

_Answer = TypeVar("_Answer")

_COMMIT = re.compile(r"[0-9a-f]{40}")
_AGENT = ("plimsoll", "0.1.0")


_SENSELESS = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading an answer that isn't as agreed may raise in the library or here."""


class HubClient:
    """Asks the Hub on behalf of one user. May be shared between threads."""

    def __init__(
        self,
        endpoint: str | None = None,
        access: Access | None = None,
        *,
        offline: bool = False,
        timeout_s: float = 10,
    ) -> None:
        """Nothing is imported or sent before the first question.

        Args:
            endpoint: another Hub; by default ``HF_ENDPOINT``, else huggingface.co.
            access: whose token is sent to the endpoint alone. Without it no token is sent, not
                even a stored one.
            offline: never open a connection.
            timeout_s: longest silence in a request, and longest wait for a connection.
        """
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
        self.offline = offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in {
            "1",
            "TRUE",
            "ON",
        }
        self.access = access
        self._timeout_s = timeout_s

    @property
    def _access_token(self) -> str | None:
        return self.access.token if self.access is not None else None

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

        return self._asked(ask, HubReference("your token"), token)

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
        wanted = HubReference(f"models like {query!r}")
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
                raise TypeError("a list of models was expected")
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

        Raises:
            HubError: one of its kinds says why there is no answer.
        """
        return self._repository(HubReference(repo_id, revision), token).gguf_models

    def _repository(self, wanted: HubReference, token: CancelToken) -> Repository:
        """What the Hub lists for a repository, at the commit that the revision means now."""

        def get(
            url: str, headers: Mapping[str, str], limit: int
        ) -> tuple[int, dict[str, str], bytes]:
            return self._get(wanted, token, url, headers, limit)

        def ask() -> Repository:
            from huggingface_hub import HfApi

            api = HfApi(
                endpoint=self.endpoint,
                token=self._access_token or False,
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
        from huggingface_hub.utils import (
            build_hf_headers,  # pyright: ignore[reportUnknownVariableType]  # a bare dict there
        )

        return build_hf_headers(
            token=self._access_token or False,
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
    ) -> tuple[int, dict[str, str], bytes]:
        """A GET: status, headers with names in small letters, and up to ``limit_bytes``.

        A body that goes on after that is not read.

        Raises:
            HubError: one of its kinds says why there is no answer.
        """

        def ask() -> tuple[int, dict[str, str], bytes]:
            from huggingface_hub import get_session, hf_raise_for_status

            with get_session().stream("GET", url, headers={**self._headers(), **headers}) as answer:
                hf_raise_for_status(answer)
                body = bytearray()
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > limit_bytes:
                        break
                named = {name.lower(): value for name, value in answer.headers.items()}
                return answer.status_code, named, bytes(body[:limit_bytes])

        return self._asked(ask, wanted, token)

    def _asked(
        self, ask: Callable[[], _Answer], wanted: HubReference, token: CancelToken
    ) -> _Answer:
        """Run ``ask`` under our limits; whatever it raises becomes one of our errors."""
        if self.offline:
            raise HubOfflineError("Offline mode is on, so the Hub was not asked.")
        token.raise_if_cancelled()
        if not is_web_address(self.endpoint):
            shown = printable(self.endpoint, 80)
            raise HubError(
                f"The Hub's address (HF_ENDPOINT) is {shown!r}; it has to start with http:// or "
                "https://.",
                field="endpoint",
            )
        # The HTTP library takes 0.2 s to import, which a model on this disk need not pay.
        import httpx2  # noqa: PLC0415

        from engine.source import hub_transport as way  # noqa: PLC0415

        way.install()
        policy = way.Policy(token, self._timeout_s, self.offline, way.origin(self.endpoint))
        try:
            with way.policy_in_force(policy):
                return ask()
        except PlimsollError:
            raise
        except (*_SENSELESS, httpx2.HTTPError, httpx2.InvalidURL) as exc:
            signed_in = self._access_token is not None
            raise translated(exc, wanted, self.endpoint, signed_in=signed_in) from exc


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
            f"Offline mode is on, and {wanted.repo_id} is not in the Hub cache of this computer."
        )
    return files.read(path, token)
