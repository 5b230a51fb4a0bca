"""Sessions in a program that this one has started."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .calls import BatchEntry
from .core import Core
from .errors import Disconnected, Refused, is_gone
from .place import Place
from .running import GrowingTurn, LocalTurn
from .session import Backend


class LocalBackend(Backend):
    """Waits for what the core only begins."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def respond(self, place: Place, response: Any, *, format: str | None, to: str | None, deltas: bool) -> LocalTurn:
        return LocalTurn(self._core, self._core.respond(place, response, format=format, to=to, deltas=deltas))

    def run(self, place: Place, calls: Iterable[BatchEntry], *, deltas: bool) -> LocalTurn:
        return LocalTurn(self._core, self._core.begin(place, calls, more=False, deltas=deltas)[0])

    def grow(self, place: Place, *, deltas: bool) -> GrowingTurn:
        return GrowingTurn(self._core, self._core.begin(place, [], more=True, deltas=deltas)[0])

    def fork(self, place: Place, fields: dict[str, Any]) -> Place:
        answer = self._core.request("fork", **place.fields(), **fields).result()
        return Place(place.session, answer["agent"])

    def definitions(self, place: Place, to: str) -> list[dict[str, Any]]:
        answer = self._core.request("definitions", **place.fields(), to=to).result()
        definitions: list[dict[str, Any]] = answer["definitions"]
        return definitions

    def close_session(self, place: Place) -> None:
        try:
            self._core.request("close", session=place.session).result()
        except (Disconnected, Refused) as error:
            if not is_gone(error):
                raise
