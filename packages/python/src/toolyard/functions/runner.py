"""The functions that are registered, and their invocations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .invocation import Invocation, unsent
from .loops import Loop
from .tool import Tool
from .workers import Workers

if TYPE_CHECKING:
    from ..calls import BatchEntry
    from ..wire.turn import TurnState

_LOG = logging.getLogger("toolyard")


class Host(Protocol):
    """What invocations need of the engine."""

    def answer(self, line: dict[str, Any]) -> None:
        """Sends a line; one that cannot be sent is a failure of the tool."""

    def begin_within(self, call_id: str, calls: Iterable[BatchEntry]) -> TurnState:
        """Makes calls as part of an invocation."""

    def cancel(self, turn: TurnState) -> None:
        """Asks to stop them."""


class Runner:
    """Takes ``tool_invoke`` and ``tool_cancel`` from the thread that reads, and never makes it wait."""

    def __init__(self, host: Host, loop: Loop, threads: int) -> None:
        self._host = host
        self._loop = loop
        self._workers = Workers("toolyard-tool", threads)
        self._lock = threading.Lock()
        self._tools: dict[str, Tool[Any]] = {}
        self._running: dict[str, Invocation] = {}

    def add(self, tool: Tool[Any]) -> Callable[[], None]:
        """Takes a function, and gives what takes it away again, for the one that it has replaced."""
        with self._lock:
            before = self._tools.get(tool.name)
            self._tools[tool.name] = tool
        return lambda: self._undo(tool, before)

    def _undo(self, tool: Tool[Any], before: Tool[Any] | None) -> None:
        with self._lock:
            if self._tools.get(tool.name) is not tool:
                return
            if before is None:
                del self._tools[tool.name]
            else:
                self._tools[tool.name] = before

    def remove(self, name: str) -> None:
        with self._lock:
            self._tools.pop(name, None)

    def has(self, name: str) -> bool:
        return name in self._tools

    def invoke(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            tool = self._tools.get(message["tool"])
            if tool is not None:
                invocation = Invocation(message, tool, self._host, self._forget)
                self._running[invocation.id] = invocation
        if tool is None:
            about = f"there is no function for the tool {message['tool']!r}"
            self._host.answer(
                {"op": "tool_failed", "call_id": message["call_id"], "kind": "internal", "message": about}
            )
            return
        invocation.start(self._workers, self._loop)

    def cancel(self, call_id: str) -> None:
        with self._lock:
            invocation = self._running.get(call_id)
        if invocation is not None:
            invocation.cancel()

    def refused(self, call_id: str, reason: str) -> None:
        """The engine has refused the answer of an invocation, which still needs one."""
        _LOG.error("what a tool has given was refused: %s", reason)
        self._host.answer(unsent(call_id, reason))

    def cancel_all(self) -> None:
        """Nobody waits for any of them."""
        with self._lock:
            running = list(self._running.values())
        for invocation in running:
            invocation.cancel()

    def _forget(self, call_id: str) -> None:
        with self._lock:
            self._running.pop(call_id, None)
