"""A turn on a server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from ..calls import Call
from ..errors import Refused, call_error
from ..functions.content import value_of
from ..outcome import Delta, Outcome, Turn
from ..running import RunningTurn
from .client import Client

WAIT_S = 50
"""How long one request waits for the end of a turn."""


SUSPENDED_S = 1
"""How long it is not asked for again while its server is shutting down."""


class RemoteTurn(RunningTurn):
    """Asks for the end of a turn until it is there. A turn goes on whether or not somebody asks."""

    def __init__(self, client: Client, session: str, begun: Mapping[str, Any], to: str | None, ids: list[str]) -> None:
        self._client = client
        self._path = ("sessions", session, "turns", str(begun["turn"]))
        self._state = begun
        self._to = to
        self._ids = ids
        self._turn: Turn | None = None

    def result(self, timeout: float | None = None) -> Turn:
        end = None if timeout is None else time.monotonic() + timeout
        while self._state["state"] != "ended":
            left = WAIT_S if end is None else min(WAIT_S, end - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"it has not ended within {timeout} s")
            if self._state["state"] == "suspended":
                time.sleep(min(SUSPENDED_S, left))
            self._state = self._client.get(*self._path, wait=max(1, round(left)), to=self._to)
        if self._turn is None:
            self._turn = self._read()
        return self._turn

    def done(self) -> bool:
        if self._state["state"] != "ended":
            self._state = self._client.get(*self._path, to=self._to)
        return bool(self._state["state"] == "ended")

    def cancel(self, call_id: str | None = None) -> None:
        if self._turn is not None:
            return
        if call_id is None:
            self._client.post(*self._path, "cancel", body={})
        elif call_id in self._ids:
            self._client.post(*self._path, "calls", str(self._ids.index(call_id)), "cancel", body={})
        else:
            raise Refused("calls of a model's answer have no names here; cancel all of the turn", code="not_found")

    def deltas(self) -> Iterator[Delta]:
        raise RuntimeError("a server tells what comes before the end in its events; nothing of it comes here")

    def _read(self) -> Turn:
        results = self._state.get("results")
        neutral = results if self._state["format"] == "neutral" and self._to in (None, "neutral") else None
        if neutral is None:
            neutral = self._client.get(*self._path, to="neutral").get("results")
        entries = (neutral or {}).get("results", [])
        ids = self._ids or [entry["call_id"] for entry in entries]
        outcomes = [_outcome(entry, call_id) for entry, call_id in zip(entries, ids)]
        return Turn(_messages(results), outcomes, self._state["turn"])


def _messages(results: Any) -> list[Any]:
    """Some formats have one message, and the neutral one an object around its list."""
    if isinstance(results, dict):
        return list(results["results"]) if "results" in results else [results]
    return list(results or [])


def _outcome(entry: Mapping[str, Any], call_id: str) -> Outcome:
    """A call's result in the neutral format."""
    tool, error = entry["name"], entry.get("error")
    meta = {name: value for name, value in entry.items() if name not in _BODY}
    note = None
    if error is not None:
        meta.update(error)
        text = "\n".join(filter(None, [error["message"], error.get("advice")]))
        failed = call_error(error["slug"], text, tool=tool, call_id=call_id, meta=meta)
        return Outcome(call_id, tool, None, failed, note, meta)
    result = entry.get("structured")
    if not isinstance(result, dict):
        content = entry.get("content") or []
        texts = [part["text"] for part in content if part.get("type") == "text"]
        result = {"content": content, **({"text": "\n".join(texts)} if len(texts) == len(content) else {})}
    return Outcome(call_id, tool, value_of(result, ours=False), None, note, meta)


_BODY = frozenset({"call_id", "name", "status", "content", "structured", "error", "passthrough"})


def neutral_batch(calls: list[Call]) -> dict[str, Any]:
    """Calls as a model's answer in the neutral format."""
    return {"calls": [_neutral(call) for call in calls]}


def _neutral(call: Call) -> dict[str, Any]:
    given = {"name": call.tool, "arguments": {} if call.args is None else call.args, **(call.meta() or {})}
    return given if call.id is None else {**given, "call_id": call.id}
