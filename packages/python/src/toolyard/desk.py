"""Where questions wait for the program's own ``approve``.

A function is asked one question at a time, in the order in which they came, as a person is; a coroutine is asked all at
once. Whatever goes wrong with it is a no.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from .errors import Disconnected
from .functions.loops import Loop
from .functions.workers import Workers
from .question import Approve, Deny, Question, decision, read_question

_LOG = logging.getLogger("toolyard")

Send = Callable[..., "Future[dict[str, Any]]"]


class Desk:
    """Takes ``confirm`` and ``confirm_ended`` from the thread that reads, and never makes it wait."""

    def __init__(self, approve: Approve, answer: Send, loop: Loop) -> None:
        self._approve = approve
        self._answer = answer
        self._loop = loop
        self._is_async = inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(
            getattr(approve, "__call__", None)
        )
        self._person = Workers("toolyard-approve", 1)
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Question, Future[Any] | None]] = {}

    def ask(self, message: Mapping[str, Any]) -> None:
        question = read_question(message)
        with self._lock:
            self._open[question.request_id] = (question, None)
        if self._is_async:
            self._await(question, self._approve)
        else:
            self._person.submit(lambda: self._ask(question))

    def end(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            question, task = self._open.pop(message["request_id"], (None, None))
        if question is not None:
            question.ended.set()
        if task is not None:
            task.cancel()

    def end_all(self) -> None:
        with self._lock:
            names = list(self._open)
        for name in names:
            self.end({"request_id": name})

    def _ask(self, question: Question) -> None:
        if question.ended.is_set():
            return
        try:
            answer = self._approve(question)
            if inspect.isawaitable(answer):
                return self._await(question, lambda _: answer)
            given = decision(answer)
        except BaseException:
            given = self._broken(question)
        self._send(question, given)

    def _await(self, question: Question, ask: Approve) -> None:
        """Asks on the event loop."""
        with self._lock:
            if question.request_id not in self._open:
                return
            try:
                task = self._loop.run(self._ask_async(question, ask))
            except RuntimeError:
                task = None
            else:
                self._open[question.request_id] = (question, task)
        if task is None:
            self._send(question, self._broken(question))

    async def _ask_async(self, question: Question, ask: Approve) -> None:
        try:
            given = decision(await ask(question))  # type: ignore[misc]
        except asyncio.CancelledError:
            if question.ended.is_set():
                raise
            given = decision(Deny("the question was not answered"))
        except BaseException as error:
            self._send(question, self._broken(question))
            if isinstance(error, KeyboardInterrupt) and not self._loop.is_own:
                raise
            return
        self._send(question, given)

    def _broken(self, question: Question) -> dict[str, Any]:
        _LOG.error("nobody could be asked about a call of %s, which is denied", question.tool, exc_info=True)
        return decision(Deny("nobody could be asked"))

    def _send(self, question: Question, given: dict[str, Any]) -> None:
        if question.ended.is_set():
            return
        try:
            sent = self._answer("confirmation", request_id=question.request_id, digest=question.digest, **given)
        except Disconnected:
            return
        except (ValueError, TypeError) as reason:
            _LOG.warning("an answer about a call of %s cannot be sent, which is denied: %s", question.tool, reason)
            self._send(question, decision(Deny("the answer could not be sent")))
            return
        sent.add_done_callback(lambda answered: self._sent(question, answered))

    def _sent(self, question: Question, answered: Future[dict[str, Any]]) -> None:
        error = answered.exception()
        if error is None or isinstance(error, Disconnected):
            return
        # Somebody else was first, or the question comes again.
        _LOG.info("an answer about a call of %s does not count: %s", question.tool, error)
