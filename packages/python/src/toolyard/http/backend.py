"""Sessions on a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..calls import BatchEntry, as_calls, as_message
from ..place import Place
from ..running import GrowingTurn
from ..session import Backend
from .client import Client
from .turn import RemoteTurn, neutral_batch


class HttpBackend(Backend):
    """Each call is a request; those that begin something are repeated under their key if the answer is lost."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def respond(self, place: Place, response: Any, *, format: str | None, to: str | None, deltas: bool) -> RemoteTurn:
        return self._begin(place, as_message(response), {"from": format, "to": to}, to, [])

    def run(self, place: Place, calls: Iterable[BatchEntry], *, deltas: bool) -> RemoteTurn:
        made = as_calls(calls)
        ids = [call.id or str(number) for number, call in enumerate(made, 1)]
        return self._begin(place, neutral_batch(made), {"from": "neutral"}, None, ids)

    def grow(self, place: Place, *, deltas: bool) -> GrowingTurn:
        raise RuntimeError("a turn on a server does not grow by calls; use `batch`, or a turn for each call")

    def fork(self, place: Place, fields: dict[str, Any]) -> Place:
        agent = self._client.post("sessions", place.session, "agents", body=fields, agent=_agent(place))["agent"]
        return Place(place.session, agent)

    def definitions(self, place: Place, to: str) -> list[dict[str, Any]]:
        tools = self._client.get("sessions", place.session, "tools", agent=_agent(place), **{"as": to})
        definitions: list[dict[str, Any]] = tools
        return definitions

    def close_session(self, place: Place) -> None:
        self._client.delete("sessions", place.session)

    def _begin(self, place: Place, body: Any, query: dict[str, Any], to: str | None, ids: list[str]) -> RemoteTurn:
        path = ("sessions", place.session, "turns")
        begun = self._client.post_once(*path, body=body, agent=_agent(place), **query)
        return RemoteTurn(self._client, place.session, begun, to, ids)


def _agent(place: Place) -> str | None:
    return None if place.agent == "root" else place.agent
