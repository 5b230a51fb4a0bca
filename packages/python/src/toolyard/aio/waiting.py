"""How a task waits for what the threads of the engine bring."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from ..core import Core
from ..outcome import Delta
from ..wire.deltas import Deltas

T = TypeVar("T")


async def result_of(future: Future[T], abandoned: Callable[[], object] | None = None) -> T:
    """What a future brings; ``abandoned`` is called if the task is cancelled meanwhile."""
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if abandoned is not None:
            abandoned()
        raise


async def room(core: Core) -> None:
    """Waits while too much of what was sent has not been written."""
    if core.is_full:
        await asyncio.to_thread(core.wait_for_room)


async def each(deltas: Deltas | None) -> AsyncIterator[Delta]:
    """The pieces of output as they come."""
    if deltas is None:
        raise RuntimeError("nothing was asked for that comes before the end: start it with deltas=True")
    loop = asyncio.get_running_loop()
    while True:
        came = asyncio.Event()
        delta, ended = deltas.poll(partial(loop.call_soon_threadsafe, came.set))
        if delta is not None:
            yield delta
        elif ended:
            return
        else:
            await came.wait()
