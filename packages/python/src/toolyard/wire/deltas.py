"""Pieces of output that wait to be looked at."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ..outcome import Delta

ROOM = 10_000
"""Pieces that wait. Who does not look misses the oldest; what counts is in the answer."""


class Deltas:
    """Filled by the thread that reads, emptied by whoever looks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pieces: deque[Delta] = deque(maxlen=ROOM)
        self._ended = False
        self._woken: list[Callable[[], object]] = []

    def put(self, delta: Delta) -> None:
        with self._changed:
            self._pieces.append(delta)
            self._wake()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._wake()

    def next(self) -> Delta | None:
        """The next piece, when there is one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._ended)
            return self._pieces.popleft() if self._pieces else None

    def poll(self, woken: Callable[[], object]) -> tuple[Delta | None, bool]:
        """A piece, or None and whether the end has come; without either, ``woken`` is called when there is one."""
        with self._changed:
            if self._pieces:
                return self._pieces.popleft(), False
            if not self._ended:
                self._woken.append(woken)
            return None, self._ended

    def _wake(self) -> None:
        self._changed.notify_all()
        woken, self._woken = self._woken, []
        for wake in woken:
            # The loop of who waited may be closed.
            with suppress(RuntimeError):
                wake()
