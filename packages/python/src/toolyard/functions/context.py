"""What a function may know of its invocation, and do within it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..calls import BatchEntry, Call
    from .invocation import Invocation


class Context:
    """Given to a parameter that is annotated so; the model knows nothing of it.

    ::

        @tool(side_effects="execute", timeout=600)
        def build(target: str, context: Context) -> str:
            for line in make(target, stop=context.cancelled):
                context.emit(line)
            return "built"
    """

    call_id: str
    """The id of the call, as the model gave it."""
    tool: str
    session: str
    agent: str
    """The path of the agent that made the call, ``root`` or one below it."""
    turn: str | None
    attempt: int
    """1, and more if the call is tried again."""
    key: str | None
    """The caller's idempotency key, to be passed on to whom this function calls."""
    deadline: float | None
    """When the time of this attempt is over, on the clock of ``time.monotonic``; None without a limit."""
    cancelled: threading.Event
    """Set when the function is to stop; what it returns then is not looked at. A coroutine is cancelled as well."""

    def __init__(self, message: Mapping[str, Any], invocation: Invocation) -> None:
        self._invocation = invocation
        self.call_id = message.get("tool_call_id") or message["call_id"]
        self.tool = message["tool"]
        self.session = message.get("session", "")
        self.agent = message.get("agent", "root")
        self.turn = message.get("turn")
        self.attempt = message.get("attempt", 1)
        self.key = message.get("key")
        left = message.get("deadline_ms")
        self.deadline = None if left is None else time.monotonic() + left / 1000
        self.cancelled = threading.Event()

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def emit(self, text: str) -> None:
        """Output that comes before the end, for who listens to it."""
        self._invocation.emit(text)

    def dispatch(self, calls: Iterable[BatchEntry]) -> list[Any]:
        """Calls tools as part of this call, and gives a value or a ``CallError`` for each, in order.

        This call holds no place in a pool and no thread meanwhile, so that tools may call tools to any depth. In a
        coroutine, use :meth:`adispatch`.
        """
        with self._invocation.waiting():
            turn = self._invocation.begin(calls).ended.result()
        return [outcome.value_or_error for outcome in turn.outcomes]

    def call(self, tool: str | Call, args: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """One call, like :meth:`dispatch`; raises ``CallError`` if it fails: ``context.call("Read", path="a")``."""
        return _one(self.dispatch([_entry(tool, args, named)]))

    async def adispatch(self, calls: Iterable[BatchEntry]) -> list[Any]:
        """:meth:`dispatch` for coroutines. If this is cancelled, as by a timeout of one's own, so are the calls."""
        begun = self._invocation.begin(calls)
        try:
            turn = await asyncio.wrap_future(begun.ended)
        except asyncio.CancelledError:
            self._invocation.cancel_calls(begun)
            raise
        return [outcome.value_or_error for outcome in turn.outcomes]

    async def acall(self, tool: str | Call, args: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """:meth:`call` for coroutines."""
        return _one(await self.adispatch([_entry(tool, args, named)]))


def _entry(tool: str | Call, args: Mapping[str, Any] | None, named: dict[str, Any]) -> BatchEntry:
    return (tool, {**(args or {}), **named}) if isinstance(tool, str) else tool


def _one(outcomes: list[Any]) -> Any:
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
