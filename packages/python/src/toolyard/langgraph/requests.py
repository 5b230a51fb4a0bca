"""Calls of a message, as a node has them ready when the engine has their functions run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..core import Core


@dataclass
class Request:
    """One tool call of a message, and what running it has given."""

    call: dict[str, Any]
    id: str
    """Its id in its turn, which differs from that of the call if a message has one twice."""
    run: Callable[[dict[str, Any]], Any]
    """Runs the tool with these arguments, and gives LangGraph's own result."""
    arun: Callable[[dict[str, Any]], Any]
    loop: asyncio.AbstractEventLoop | None
    """The loop of the graph, if it runs on one: coroutines run there."""
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    result: Any = None
    error: BaseException | None = None
    """What the tool has raised, if that is for the graph and not for the model."""

    def begin(self) -> None:
        """An attempt begins; what the one before has given does not count."""
        self.result = self.error = None


class Requests:
    """The requests of an engine, by the turn and the id of their calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str], Request] = {}

    def add(self, turn: str, requests: list[Request]) -> None:
        with self._lock:
            self._open.update({(turn, request.id): request for request in requests})

    def find(self, turn: str | None, call_id: str) -> Request | None:
        return None if turn is None else self._open.get((turn, call_id))

    def remove(self, turn: str, requests: list[Request]) -> None:
        with self._lock:
            for request in requests:
                self._open.pop((turn, request.id), None)


_BY_CORE: weakref.WeakKeyDictionary[Core, Requests] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def requests_of(core: Core) -> Requests:
    """Those of an engine: several nodes of one engine may have tools of one name."""
    with _LOCK:
        return _BY_CORE.setdefault(core, Requests())
