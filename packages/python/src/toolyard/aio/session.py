"""A session, for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from ..calls import BatchEntry, Call, make_call
from ..core import Core
from ..errors import Closed, Disconnected, Refused, is_gone
from ..outcome import Delta, Outcome, Turn
from ..place import Place
from ..session import Format
from ..wire.turn import TurnState
from .running import AsyncGrowingTurn, AsyncRunningTurn
from .waiting import each, result_of, room


class AsyncSession:
    """Makes calls, and runs those of a model. All is as in :class:`toolyard.Session`, but for the ``await``.

    A task that is cancelled while it waits cancels its calls.
    """

    def __init__(self, core: Core, place: Place) -> None:
        self._core = core
        self._place = place
        self._closed = False

    @property
    def name(self) -> str:
        return self._place.session

    @property
    def agent(self) -> str:
        """The path of the agent that makes the calls: ``root``, or that of a fork."""
        return self._place.agent

    def __repr__(self) -> str:
        return f"<session {self.name} {self.agent}>"

    def _open_place(self) -> Place:
        # A call would open another session of this name, without the bounds of this one.
        if self._closed:
            raise Closed(f"the session {self.name} was closed")
        return self._place

    async def dispatch(
        self,
        response: Any,
        *,
        format: Format | None = None,
        to: Format | None = None,
        on_delta: Callable[[Delta], object] | None = None,
    ) -> Turn:
        """Runs the calls of a model's answer, and waits for all of them."""
        await room(self._core)
        deltas = on_delta is not None
        state = self._core.respond(self._open_place(), response, format=format, to=to, deltas=deltas)
        return await self._finish(state, on_delta)

    async def start(
        self, response: Any, *, format: Format | None = None, to: Format | None = None, deltas: bool = False
    ) -> AsyncRunningTurn:
        """:meth:`dispatch` without the waiting for the calls."""
        await room(self._core)
        state = self._core.respond(self._open_place(), response, format=format, to=to, deltas=deltas)
        return AsyncRunningTurn(self._core, state)

    async def call(self, tool: str | Call, args: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """Calls a tool, and waits for what it gives: ``await session.call("Read", path="notes.md")``."""
        (outcome,) = await self.outcomes([make_call(tool, args, named)])
        return outcome.unwrap()

    async def batch(
        self,
        calls: Iterable[BatchEntry],
        *,
        raise_errors: bool = False,
        on_delta: Callable[[Delta], object] | None = None,
    ) -> list[Any]:
        """Calls tools together; a value or a ``CallError`` for each, in order."""
        outcomes = await self.outcomes(calls, on_delta=on_delta)
        return [outcome.unwrap() if raise_errors else outcome.value_or_error for outcome in outcomes]

    async def outcomes(
        self, calls: Iterable[BatchEntry], *, on_delta: Callable[[Delta], object] | None = None
    ) -> list[Outcome]:
        """:meth:`batch`, with what the engine knows of each call."""
        await room(self._core)
        state, _ = self._core.begin(self._open_place(), calls, more=False, deltas=on_delta is not None)
        return (await self._finish(state, on_delta)).outcomes

    def turn(self, *, deltas: bool = False) -> AsyncGrowingTurn:
        """A turn to which calls are added while others run."""
        return AsyncGrowingTurn(self._core, self._core.begin(self._open_place(), [], more=True, deltas=deltas)[0])

    async def fork(
        self,
        name: str | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        only_tools: Sequence[str] | None = None,
    ) -> AsyncSession:
        """A sub-agent: the same session for an agent that may do less."""
        fields = {"name": name, "capabilities": capabilities, "only_tools": only_tools}
        answer = await result_of(self._core.request("fork", **self._open_place().fields(), **fields))
        return AsyncSession(self._core, Place(self.name, answer["agent"]))

    async def definitions(
        self, to: Literal["neutral", "openai-chat", "openai-responses", "anthropic", "gemini", "mcp"] = "neutral"
    ) -> list[dict[str, Any]]:
        """The tools that may be called here, as the provider's API takes them."""
        answer = await result_of(self._core.request("definitions", **self._open_place().fields(), to=to))
        definitions: list[dict[str, Any]] = answer["definitions"]
        return definitions

    async def close(self) -> None:
        """Cancels what runs in the session, and lets go of it. Does nothing for a fork."""
        if self.agent != "root":
            return
        self._closed = True
        try:
            await result_of(self._core.request("close", session=self.name))
        except (Disconnected, Refused) as error:
            if not is_gone(error):
                raise

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _finish(self, state: TurnState, on_delta: Callable[[Delta], object] | None) -> Turn:
        try:
            if on_delta is not None:
                async for delta in each(state.deltas):
                    on_delta(delta)
            return await result_of(state.ended)
        except BaseException:
            self._core.cancel(state)
            raise
