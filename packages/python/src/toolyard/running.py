"""Turns and calls that run, for programs with threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from types import TracebackType
from typing import Any

from .calls import BatchEntry, Call, make_call
from .core import Core
from .errors import Disconnected
from .outcome import Delta, Outcome, Turn
from .wire.turn import TurnState


class RunningTurn(ABC):
    """A turn that was sent. It goes on whether or not somebody waits."""

    @abstractmethod
    def result(self, timeout: float | None = None) -> Turn:
        """Waits for its end; raises :class:`TimeoutError` if that does not come in so many seconds."""

    @abstractmethod
    def done(self) -> bool:
        """Whether it has ended."""

    @abstractmethod
    def cancel(self, call_id: str | None = None) -> None:
        """Asks to stop one call, or all of it. It still ends with an outcome for each call."""

    @abstractmethod
    def deltas(self) -> Iterator[Delta]:
        """The pieces of output that come before the end, as they come; ends with the turn.

        ::

            turn = session.start(response, deltas=True)
            for delta in turn.deltas():
                print(delta.text, end="")
            messages = turn.result().messages
        """


class PendingCall:
    """A call that was sent."""

    def __init__(self, core: Core, state: TurnState, call: Call, call_id: str, future: Future[Outcome]) -> None:
        self.id = call_id
        self.tool = call.tool
        self.future = future
        """For ``concurrent.futures.wait`` and ``as_completed``; its result is the :class:`Outcome`.

        A callback on it runs on the thread that reads, and must not wait for the engine.
        """
        self._core = core
        self._state = state

    def result(self, timeout: float | None = None) -> Any:
        """Waits for what the tool gives; raises ``CallError`` if the call fails."""
        return self.outcome(timeout).unwrap()

    def outcome(self, timeout: float | None = None) -> Outcome:
        """The same, with what the engine knows of it, and without raising."""
        outcome: Outcome = _wait(self.future, timeout)
        return outcome

    def done(self) -> bool:
        return self.future.done()

    def cancel(self) -> None:
        """Asks to stop it, which is still answered."""
        if not self.future.done():
            self._core.cancel(self._state, self.id)


class LocalTurn(RunningTurn):
    """A turn in a program that this one has started."""

    def __init__(self, core: Core, state: TurnState) -> None:
        self._core = core
        self._state = state

    def result(self, timeout: float | None = None) -> Turn:
        turn: Turn = _wait(self._state.ended, timeout)
        return turn

    def done(self) -> bool:
        return self._state.ended.done()

    def cancel(self, call_id: str | None = None) -> None:
        self._core.cancel(self._state, call_id)

    def deltas(self) -> Iterator[Delta]:
        deltas = self._state.deltas
        if deltas is None:
            raise RuntimeError("nothing was asked for that comes before the end: start it with deltas=True")
        return iter(deltas.next, None)


class GrowingTurn(LocalTurn):
    """A turn to which calls are added while others run, as when a model is still writing.

    ::

        with session.turn() as turn:
            a = turn.call("Read", path="a")
            b = turn.call("Read", path="b")
            print(a.result(), b.result())

    The end of the block waits for all calls; an exception in it cancels them.
    """

    def __init__(self, core: Core, state: TurnState) -> None:
        super().__init__(core, state)
        self._ended = False

    def call(self, tool: str | Call, args: Mapping[str, Any] | None = None, /, **named: Any) -> PendingCall:
        """Adds a call, and does not wait for it."""
        return self.add([make_call(tool, args, named)])[0]

    def add(self, calls: Iterable[BatchEntry]) -> list[PendingCall]:
        """Adds calls, which run together as far as that has the effect of one after another."""
        if self._ended:
            raise RuntimeError("nothing can be added to this turn any more")
        added = self._core.add(self._state, calls)
        return [PendingCall(self._core, self._state, call, call_id, future) for call, call_id, future in added]

    def end(self) -> None:
        """Nothing more is added."""
        if not self._ended:
            self._ended = True
            if not self.done():
                self._core.end_turn(self._state)

    def __enter__(self) -> GrowingTurn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.end()
            self.result()
        elif not self.done():
            self.cancel()
            with suppress(Disconnected):
                self.end()


def _wait(future: Future[Any], timeout: float | None) -> Any:
    # Not `future.result(timeout)`, whose error is another class before Python 3.11, and may be that of the call itself.
    if timeout is not None and not wait([future], timeout).done:
        raise TimeoutError(f"it has not ended within {timeout} s")
    return future.result()
