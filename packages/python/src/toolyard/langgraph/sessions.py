"""The sessions of a node: one for each thread of the graph, so that threads do not wait for each other's writes."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import Any

from ..core import Core
from ..place import Place

KEPT = 256
"""Sessions without a running turn that are kept. Keys and answers to questions are forgotten with the others."""

_NUMBERS = itertools.count(1)


class Sessions:
    """Opens sessions that may call these tools alone, and closes those that were not used for long."""

    def __init__(self, core: Core, tools: list[str]) -> None:
        self._core = core
        self._tools = tools
        self._prefix = f"langgraph-{next(_NUMBERS)}"
        self._lock = threading.Lock()
        self._open: OrderedDict[str, tuple[Place, Future[Any], int]] = OrderedDict()

    def enter(self, thread: str) -> tuple[Place, Future[Any]]:
        """The session of a thread, and the answer to its opening; to be left again."""
        with self._lock:
            place, opened, users = self._open.get(thread) or (*self._begin(), 0)
            self._open[thread] = (place, opened, users + 1)
            self._open.move_to_end(thread)
            self._close_oldest()
        return place, opened

    def leave(self, thread: str) -> None:
        with self._lock:
            place, opened, users = self._open[thread]
            self._open[thread] = (place, opened, users - 1)
            if opened.done() and opened.exception() is not None and users == 1:
                del self._open[thread]

    def renew(self, thread: str, place: Place) -> None:
        """Its session was closed by somebody else: who enters next has another one."""
        with self._lock:
            known, _, users = self._open[thread]
            if known == place:
                self._open[thread] = (*self._begin(), users)

    def _begin(self) -> tuple[Place, Future[Any]]:
        place = Place(f"{self._prefix}-{next(_NUMBERS)}")
        return place, self._core.request("open", session=place.session, capabilities={"tools": self._tools})

    def _close_oldest(self) -> None:
        idle = [thread for thread, (_, _, users) in self._open.items() if users == 0]
        for thread in idle[: max(0, len(self._open) - KEPT)]:
            place, _, _ = self._open.pop(thread)
            self._core.request("close", session=place.session)


class OneSession:
    """A session that the program has opened itself."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._opened: Future[Any] = Future()
        self._opened.set_result(None)

    def enter(self, _thread: str) -> tuple[Place, Future[Any]]:
        return self._place, self._opened

    def leave(self, _thread: str) -> None:
        return None

    def renew(self, _thread: str, _place: Place) -> None:
        return None
