"""Events of the engine, for who follows them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

_LOG = logging.getLogger("toolyard")
ROOM = 10_000
"""Events that wait to be looked at. When there are more, the waiting ones are missed, and that is told."""

OnEvent = Callable[[dict[str, Any]], object]


class Teller:
    """Calls ``on_event`` for each event, in order, on a thread of its own.

    Where some were missed, it is called with ``{"event": "reset", "cursor": …}``.
    """

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._changed = threading.Condition()
        self._events: deque[dict[str, Any]] = deque()
        self._ended = False
        self._thread = threading.Thread(target=self._tell_all, name="toolyard-events", daemon=True)
        self._thread.start()

    def take(self, message: Mapping[str, Any]) -> None:
        if message["op"] == "event":
            self._put({**message["event"], "cursor": message.get("cursor")})
        else:
            self._put({"event": "reset", "cursor": message.get("cursor")})

    def end(self) -> None:
        """What has come is still told."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _put(self, event: dict[str, Any]) -> None:
        with self._changed:
            if len(self._events) >= ROOM:
                self._events.clear()
                event = {"event": "reset", "cursor": event["cursor"]}
            self._events.append(event)
            self._changed.notify_all()

    def _tell_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or self._ended)
                if not self._events:
                    return
                event = self._events.popleft()
            try:
                self._on_event(event)
            except BaseException:
                _LOG.exception("`on_event` has failed")
