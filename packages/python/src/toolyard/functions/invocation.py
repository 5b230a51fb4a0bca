"""One invocation of a function: from its ``tool_invoke`` to the one line that answers it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ..errors import CallError, Closed, Disconnected, ToolError
from .content import fields_of
from .context import Context
from .loops import Loop
from .shape import Misfit
from .tool import Tool
from .workers import Workers

if TYPE_CHECKING:
    from ..calls import BatchEntry
    from ..wire.turn import TurnState
    from .runner import Host

_LOG = logging.getLogger("toolyard")

REASON_MAX = 300
"""Characters of what is wrong with an answer, which may name a place deep in it."""


class Invocation:
    """Runs a function once. It is answered when the function has ended, also after its ``tool_cancel``: what has to
    come after it waits for that.
    """

    def __init__(self, message: Mapping[str, Any], tool: Tool[Any], host: Host, ended: Callable[[str], None]) -> None:
        self.id: str = message["call_id"]
        self._args = message.get("args")
        self._tool = tool
        self._host = host
        self._ended = ended
        self._context = Context(message, self)
        self._lock = threading.Lock()
        self._cut = False
        self._over = False
        self._task: Future[Any] | None = None
        self._workers: Workers | None = None

    def start(self, workers: Workers, loop: Loop) -> None:
        """Runs it on a thread or on the loop; never waits."""
        if not self._tool.is_async:
            workers.submit(lambda: self._run(workers))
            return
        try:
            self._task = loop.run(self._run_async(loop))
        except RuntimeError as reason:
            self._end(self._failure(Closed(f"there is no event loop for the tool: {reason}")))
        else:
            self._task.add_done_callback(lambda _: self._end_unstarted())

    def cancel(self) -> None:
        """It is to stop. Its thread is not counted any more, since it may never do so."""
        with self._lock:
            if self._cut or self._over:
                return
            self._cut = True
        self._context.cancelled.set()
        if self._task is not None:
            self._task.cancel()
        elif self._workers is not None:
            self._workers.release()
        else:
            self._end_unstarted()

    def emit(self, text: str) -> None:
        if not self._cut:
            self._send({"op": "tool_delta", "call_id": self.id, "text": text})

    def begin(self, calls: Iterable[BatchEntry]) -> TurnState:
        return self._host.begin_within(self.id, calls)

    def cancel_calls(self, turn: TurnState) -> None:
        self._host.cancel(turn)

    def waiting(self) -> AbstractContextManager[None]:
        if self._tool.is_async:
            raise RuntimeError("this would stop the event loop; in a coroutine, await `adispatch` or `acall`")
        return contextlib.nullcontext() if self._workers is None else self._workers.waiting()

    def _run(self, workers: Workers) -> None:
        with self._lock:
            if self._cut:
                return
            self._workers = workers
        try:
            answer = self._answer(fields_of(self._tool.bind(self._args, self._context)()))
        except BaseException as error:
            answer = self._failure(error)
        self._end(answer)
        if self._cut:
            workers.retake()

    async def _run_async(self, loop: Loop) -> None:
        try:
            coroutine: Coroutine[Any, Any, Any] = self._tool.bind(self._args, self._context)()
            answer = self._answer(fields_of(await coroutine))
        except BaseException as error:
            self._end(self._failure(error))
            # It is for the program whose loop this is; `sys.exit()` in a tool is a failure of it, as it is on a thread.
            if isinstance(error, KeyboardInterrupt) and not loop.is_own:
                raise
        else:
            self._end(answer)

    def _end_unstarted(self) -> None:
        """It was cancelled before it has begun."""
        if not self._over:
            self._end({**self._failure(asyncio.CancelledError()), "outcome": "failed"})

    def _end(self, answer: dict[str, Any]) -> None:
        with self._lock:
            self._over = True
        self._ended(self.id)
        self._send(answer)

    def _answer(self, fields: dict[str, Any]) -> dict[str, Any]:
        # The id tells which answer the engine has refused.
        return {"op": "tool_result", "id": self.id, "call_id": self.id, **fields}

    def _failure(self, error: BaseException) -> dict[str, Any]:
        try:
            return self._failed(error)
        except Exception as reason:
            # The exception is one that cannot even be shown.
            return self._failed(RuntimeError(f"{type(error).__name__}, of which nothing can be said: {reason!r}"))

    def _failed(self, error: BaseException) -> dict[str, Any]:
        failed: dict[str, Any] = {"op": "tool_failed", "id": self.id, "call_id": self.id, "message": str(error)}
        if isinstance(error, ToolError):
            wait = None if error.retry_after is None else round(error.retry_after * 1000)
            return {**failed, "kind": error.kind, "retry_after_ms": wait, "outcome": error.outcome}
        if isinstance(error, Misfit):
            return {**failed, "kind": "invalid_input", "outcome": "failed"}
        if isinstance(error, CallError):
            return {**failed, "kind": "execution_error"}
        if isinstance(error, Disconnected):
            return {**failed, "kind": "internal", "outcome": "unknown"}
        if isinstance(error, asyncio.CancelledError):
            return {**failed, "message": "the tool was cancelled", "kind": "cancelled"}
        _LOG.error("the tool %s has failed", self._tool.name, exc_info=error)
        # Nobody has said that nothing was changed before it failed.
        text = f"{type(error).__name__}: {error}"
        return {**failed, "message": text, "kind": "internal", "outcome": "unknown"}

    def _send(self, line: dict[str, Any]) -> None:
        try:
            try:
                self._host.answer(line)
            except (ValueError, TypeError) as reason:
                self._host.answer(unsent(self.id, reason))
        except Disconnected:
            _LOG.debug("nobody is told what came of %s", self.id)


def unsent(call_id: str, reason: object) -> dict[str, Any]:
    """The answer in place of one that cannot be sent, or that was refused."""
    about = f"the result cannot be sent: {reason}"[:REASON_MAX]
    return {"op": "tool_failed", "call_id": call_id, "kind": "output_invalid", "message": about}
