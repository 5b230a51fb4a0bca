"""Threads on which functions run: a bounded number at once, kept for the next function.

They are daemons, which the end of the program does not wait for: a function that hangs cannot be stopped by anybody.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOG = logging.getLogger("toolyard")
IDLE_S = 10.0


class Workers:
    """Runs jobs on at most ``limit`` threads; one whose job waits for other jobs, or was given up, is not counted."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._busy = 0
        self._idle = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job as soon as there is a thread for it; never waits."""
        with self._changed:
            self._jobs.append(job)
            self._serve()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The thread of a job does not count while it waits for something that may need a thread itself."""
        self.release()
        try:
            yield
        finally:
            # It goes on at once, even if there is one too many then: new jobs wait, and not those that run.
            self.retake()

    def release(self) -> None:
        """A thread is not counted any more, although its job goes on."""
        with self._changed:
            self._busy -= 1
            self._serve()

    def retake(self) -> None:
        """A thread that was not counted is, again."""
        with self._changed:
            self._busy += 1

    def _serve(self) -> None:
        room = min(len(self._jobs), self._limit - self._busy)
        if room <= 0:
            return
        self._changed.notify(room)
        for _ in range(room - self._idle):
            # Counted at once, so that the next one who looks does not start another for the same job.
            self._idle += 1
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._changed:
                found = self._changed.wait_for(lambda: self._jobs and self._busy < self._limit, IDLE_S)
                self._idle -= 1
                if not found:
                    return
                job = self._jobs.popleft()
                self._busy += 1
            try:
                job()
            except BaseException:
                _LOG.exception("a thread of tools has failed")
            with self._changed:
                self._busy -= 1
                self._idle += 1
                self._serve()
