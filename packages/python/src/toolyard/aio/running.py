"""Turns and calls that run, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any

from ..calls import BatchEntry, Call, make_call
from ..core import Core
from ..errors import Disconnected
from ..outcome import Delta, Outcome, Turn
from ..wire.turn import TurnState
from .waiting import each, result_of, room


class AsyncRunningTurn:
    """A turn that was sent. ``await`` gives its end; it goes on whether or not somebody waits."""

    def __init__(self, core: Core, state: TurnState) -> None:
        self._core = core
        self._state = state

    def __await__(self) -> Generator[Any, None, Turn]:
        return result_of(self._state.ended).__await__()

    def done(self) -> bool:
        """Whether it has ended."""
        return self._state.ended.done()

    def cancel(self, call_id: str | None = None) -> None:
        """Asks to stop one call, or all of it. It still ends with an outcome for each call."""
        self._core.cancel(self._state, call_id)

    def deltas(self) -> AsyncIterator[Delta]:
        """The pieces of output that come before the end, as they come; ends with the turn.

        ::

            turn = await session.start(response, deltas=True)
            async for delta in turn.deltas():
                print(delta.text, end="")
            messages = (await turn).messages
        """
        return each(self._state.deltas)


class AsyncCall:
    """A call that was sent. ``await`` gives what the tool gives; a task that is cancelled meanwhile cancels it."""

    def __init__(self, core: Core, state: TurnState, call: Call, call_id: str, future: Future[Outcome]) -> None:
        self.id = call_id
        self.tool = call.tool
        self._core = core
        self._state = state
        self._future = future

    def __await__(self) -> Generator[Any, None, Any]:
        return self._result().__await__()

    async def outcome(self) -> Outcome:
        """The same, with what the engine knows of it, and without raising."""
        return await result_of(self._future, self.cancel)

    def done(self) -> bool:
        return self._future.done()

    def cancel(self) -> None:
        """Asks to stop it, which is still answered."""
        if not self._future.done():
            self._core.cancel(self._state, self.id)

    async def _result(self) -> Any:
        return (await self.outcome()).unwrap()


class AsyncGrowingTurn(AsyncRunningTurn):
    """A turn to which calls are added while others run, as when a model is still writing.

    ::

        async with session.turn() as turn:
            a = await turn.call("Read", path="a")
            b = await turn.call("Read", path="b")
            print(await a, await b)
    """

    def __init__(self, core: Core, state: TurnState) -> None:
        super().__init__(core, state)
        self._ended = False

    def __await__(self) -> Generator[Any, None, Turn]:
        if not (self._ended or self.done()):
            raise RuntimeError(
                "this turn still grows: use it in `async with session.turn() as turn`, or end() it first"
            )
        return super().__await__()

    async def call(self, tool: str | Call, args: Mapping[str, Any] | None = None, /, **named: Any) -> AsyncCall:
        """Adds a call, and does not wait for it."""
        return (await self.add([make_call(tool, args, named)]))[0]

    async def add(self, calls: Iterable[BatchEntry]) -> list[AsyncCall]:
        """Adds calls, which run together as far as that has the effect of one after another."""
        if self._ended:
            raise RuntimeError("nothing can be added to this turn any more")
        await room(self._core)
        return [AsyncCall(self._core, self._state, *sent) for sent in self._core.add(self._state, calls)]

    def end(self) -> None:
        """Nothing more is added."""
        if not self._ended:
            self._ended = True
            if not self.done():
                self._core.end_turn(self._state)

    async def __aenter__(self) -> AsyncGrowingTurn:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.end()
            await result_of(self._state.ended, self.cancel)
        elif not self.done():
            self.cancel()
            with suppress(Disconnected):
                self.end()
