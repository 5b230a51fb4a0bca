"""The event loop on which coroutines run: that of the program, or one on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any


class Loop:
    """Runs coroutines on a given loop, or on one that is started when it is first needed."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop
        self._own = loop is None
        self._closed = False
        self._lock = threading.RLock()  # the collection of an engine may come within it

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Starts a coroutine, from any thread; cancelling the future cancels it.

        Raises :class:`RuntimeError` if the program has closed its loop, or this is closed.
        """
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._get())
        except RuntimeError:
            coroutine.close()
            raise

    @property
    def is_own(self) -> bool:
        """Whether nothing but tools and `approve` runs on it."""
        return self._own

    def close(self) -> None:
        """Ends the loop, if it is one of its own."""
        with self._lock:
            self._closed = True
            loop, self._loop = (self._loop, None) if self._own else (None, self._loop)
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("the engine was closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=(self._loop,), name="toolyard-loop", daemon=True).start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()
