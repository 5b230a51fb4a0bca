"""Requests that wait for their answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from ..errors import Refused, ToolyardError

Answer = Future[dict[str, Any]]


def refused(message: Mapping[str, Any]) -> Refused:
    """What an ``error`` line says."""
    text = message.get("message") or "the engine has refused a request"
    return Refused(text, code=message.get("code") or "", errors=message.get("errors") or [])


class Requests:
    """The ids of requests, and who waits for each answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[Any, Answer] = {}

    def open(self) -> tuple[int, Answer]:
        answer: Answer = Future()
        answer.set_running_or_notify_cancel()
        with self._lock:
            self._last += 1
            self._waiting[self._last] = answer
            return self._last, answer

    def take(self, request_id: Any) -> Answer | None:
        """Who waits for this answer; an id that is no name of a request has nobody."""
        with self._lock:
            return self._waiting.pop(request_id, None) if isinstance(request_id, int) else None

    def end(self, error: Callable[[], ToolyardError]) -> None:
        """No answer comes any more; ``error`` makes the exception of each."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.set_exception(error())
