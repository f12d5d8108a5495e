"""Tries the way to the Hub once, and names the step at which it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from engine.errors import HubError
from engine.source.trail import Step
from engine.words import tr

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.source.hub import HubClient
    from engine.source.trail import Trail

_LONGEST_BYTES = 256 * 1024


def attempt(hub: HubClient, token: CancelToken, trail: Trail) -> None:
    """Ask the Hub for the first of its models, over a connection made for this alone.

    Args:
        hub: whose address, way and token are tried.
        token: looked at before and during the request.
        trail: told each step as it succeeds; ``next_step`` is then the one that failed.

    Raises:
        HubError: one of its kinds says why there is no answer, and what to do.
    """
    policy = hub.policy(token, trail)
    # Slow to import, and seldom needed.
    import httpx2  # noqa: PLC0415

    from engine.source.hub_policy import policy_in_force  # noqa: PLC0415
    from engine.source.hub_transport import Transport  # noqa: PLC0415

    url = f"{hub.endpoint}/api/models?limit=1"
    client = httpx2.Client(transport=Transport(), follow_redirects=True, timeout=None)
    try:
        with policy_in_force(policy), client, client.stream("GET", url) as answer:
            body = bytearray()
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > _LONGEST_BYTES:
                    break
            status = answer.status_code
    except httpx2.TooManyRedirects as exc:
        raise _no_hub(hub, tr("it leads in a circle")) from exc
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as exc:
        raise _no_hub(hub, tr("its answer makes no sense")) from exc
    if status in {401, 403}:
        message = tr("{host} lets nobody in without a token: give one under Access to the Hub.")
        raise HubError(message.format(host=_host(hub)), field="token")
    if status != 200:
        raise _no_hub(hub, tr("it says {status} to the list of models").format(status=status))
    if not _is_list_of_models(bytes(body)):
        raise _no_hub(hub, tr("its list of models is none"))
    signed = tr("with your token") if policy.bearer else tr("without a token")
    trail.tell(Step.HUB, tr("Answers as the Hub does, {signed}").format(signed=signed))


def _is_list_of_models(body: bytes) -> bool:
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, list):
        return False
    items = cast("list[object]", found)
    return all(isinstance(item, dict) and "id" in item for item in items)


def _no_hub(hub: HubClient, why: str) -> HubError:
    message = tr(
        "{host} does not answer as the Hub does ({why}): check the mirror’s address, or sign in "
        "where this network asks for it."
    )
    return HubError(message.format(host=_host(hub), why=why), field="mirror")


def _host(hub: HubClient) -> str:
    return hub.endpoint.partition("://")[2]
