"""An engine as its two faces, :class:`toolyard.Engine` and :class:`toolyard.AsyncEngine`, share it.

::

    Session ─► Core ─► wire.Link ─► toolyard
                 ▲         │
                 │         ├─► wire.OpenTurns      what comes of turns
                 │         ├─► functions.Runner    tool_invoke: threads, the event loop
                 │         ├─► Desk                confirm: `approve`
                 │         └─► Teller              event: `on_event`
                 └──── answers of functions and of `approve`

Nothing here waits for the program: what has an answer gives a future.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from .calls import BatchEntry, Call, as_calls, as_message
from .desk import Desk
from .errors import Closed, Disconnected
from .events import Teller
from .functions.loops import Loop
from .functions.runner import Runner
from .functions.tool import Tool, as_tool
from .options import Options
from .outcome import Outcome
from .place import Place
from .wire.link import Link
from .wire.process import Process
from .wire.requests import Answer
from .wire.turn import OpenTurns, Sent, TurnState, ends_what_has_ended

_LOG = logging.getLogger("toolyard")
PATIENCE_S = 8.0
"""A program whose input has ended has 5 s for what it runs."""


class Core:
    """A running program, and everything that hears from it."""

    def __init__(self, options: Options, loop: Loop) -> None:
        self._options = options
        self._loop = loop
        self._turns = OpenTurns()
        self._runner = Runner(self, loop, options.threads)
        self._desk = None if options.approve is None else Desk(options.approve, self.request, loop)
        self._teller = None if options.on_event is None else Teller(options.on_event)
        self._deltas = False
        self._deltas_lock = threading.Lock()
        self._process = Process(options.command(), cwd=None, env=options.env)
        self._link = Link(self._process, self._heard(), self._ended)

    def greet(self) -> list[Answer]:
        """Says hello and registers the tools; the first answer is the welcome."""
        greeted = [self.request("hello", **self._options.greeting(False))]
        return greeted + [self.register(one) for one in self._options.tools]

    def register(self, one: Tool[Any]) -> Answer:
        tool = as_tool(one)
        self._runner.add(tool)
        return self.request("register", definition=tool.definition)

    def unregister(self, name: str) -> Answer:
        answer = self.request("unregister", tool=name)
        # Calls that run go on, and may still be tried again until the answer is there.
        answer.add_done_callback(lambda done: None if done.exception() else self._runner.remove(name))
        return answer

    def request(self, op: str, **fields: Any) -> Answer:
        return self._link.request(op, **fields)

    def respond(self, place: Place, response: Any, *, format: str | None, to: str | None, deltas: bool) -> TurnState:
        """Sends a model's answer."""
        turn = self._open(deltas)
        line = turn.line_of_response()
        message = {"op": "respond", "turn": turn.name, "message": as_message(response), "from": format, "to": to}
        self._send_line(turn, line, {**message, **place.fields(), "each": True})
        return turn

    def begin(
        self,
        place: Place,
        calls: Iterable[BatchEntry],
        *,
        more: bool,
        deltas: bool,
        named: Callable[[str], None] | None = None,
    ) -> tuple[TurnState, list[Sent]]:
        """Sends calls as a turn, to which more may be added; ``named`` is told its name before anything runs."""
        turn = self._open(deltas)
        if named is not None:
            named(turn.name)
        return turn, self._send_calls(turn, as_calls(calls), {**place.fields(), "more": more or None})

    def add(self, turn: TurnState, calls: Iterable[BatchEntry]) -> list[Sent]:
        """Adds calls to a turn that was begun with ``more``."""
        return self._send_calls(turn, as_calls(calls), {"more": True, "continues": True})

    def end_turn(self, turn: TurnState) -> None:
        """Nothing more is added."""
        self._link.send({"op": "turn_end", "turn": turn.name})

    def cancel(self, turn: TurnState, call_id: str | None = None) -> None:
        """Asks to stop one call or all of a turn; of what has ended it does nothing."""
        if not turn.ended.done():
            try:
                self._link.send({"op": "cancel", "turn": turn.name, "tool_call_id": call_id})
            except Disconnected:
                _LOG.debug("what was to be cancelled has ended with the program")

    # What functions need

    def answer(self, line: dict[str, Any]) -> None:
        self._link.send(line)

    def dispatch_within(self, call_id: str, calls: Iterable[BatchEntry]) -> Future[list[Outcome]]:
        turn = self._open(False)
        # Elsewhere they belong to the turn of the function's own call, whose ids are not to be theirs.
        made = [replace(call, id=call.id or f"{turn.name}.{number}") for number, call in enumerate(as_calls(calls), 1)]
        self._send_calls(turn, made, {"within": call_id})
        outcomes: Future[list[Outcome]] = Future()
        outcomes.set_running_or_notify_cancel()

        def pass_on(ended: Future[Any]) -> None:
            error = ended.exception()
            if error is None:
                outcomes.set_result(ended.result().outcomes)
            else:
                outcomes.set_exception(error)

        turn.ended.add_done_callback(pass_on)
        return outcomes

    # Backpressure, for who must not wait in a lock

    @property
    def is_full(self) -> bool:
        return self._link.is_full

    def wait_for_room(self) -> None:
        self._link.wait_for_room()

    # The end

    def bye(self) -> Answer:
        """Turns that are open run to their ends, and then the program exits."""
        self._link.closing()
        return self.request("bye")

    def end(self) -> None:
        """Cancels what still runs, and waits for the end of the program; never for long."""
        self._link.end_input()
        self._link.join(PATIENCE_S)
        self._process.end(PATIENCE_S)
        self._link.join(PATIENCE_S)
        if self._teller is not None:
            self._teller.join(PATIENCE_S)
        self._loop.close()

    def _ended(self, error: Callable[[], Disconnected]) -> None:
        self._turns.end(error)
        self._runner.cancel_all()
        if self._desk is not None:
            self._desk.end_all()
        if self._teller is not None:
            self._teller.end()

    # Lines

    def _open(self, deltas: bool) -> TurnState:
        if deltas:
            self._ask_for_deltas()
        return self._turns.open(self._runner.has, deltas=deltas)

    def _ask_for_deltas(self) -> None:
        with self._deltas_lock:
            if not self._deltas:
                self.request("hello", **self._options.greeting(True))
                self._deltas = True

    def _send_calls(self, turn: TurnState, calls: list[Call], fields: Mapping[str, Any]) -> list[Sent]:
        try:
            line, entries, sent = turn.line_of(calls)
        except BaseException:
            if not turn.has_begun:
                self._turns.drop(turn)
            raise
        self._send_line(turn, line, {"op": "tool_calls", "turn": turn.name, "calls": entries, **fields})
        return sent

    def _send_line(self, turn: TurnState, line: str, message: dict[str, Any]) -> None:
        try:
            self._link.send({**message, "id": line})
        except BaseException as error:
            turn.forget(line, Closed(f"the calls were not sent: {error}"))
            if line == turn.name:
                self._turns.drop(turn)
            raise

    def _heard(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        heard: dict[str, Callable[[dict[str, Any]], None]] = {
            "tool_invoke": self._runner.invoke,
            "tool_cancel": lambda message: self._runner.cancel(message["call_id"]),
            "tool_response": self._turns.take_response,
            "tool_delta": self._turns.take_delta,
            "turn_ended": self._turns.take_end,
            "error": self._take_error,
            "shutdown": lambda message: _LOG.warning("the program ends in %s ms", message.get("grace_ms")),
        }
        if self._desk is not None:
            heard.update(confirm=self._desk.ask, confirm_ended=self._desk.end)
        if self._teller is not None:
            heard.update(event=self._teller.take, event_reset=self._teller.take)
        return heard

    def _take_error(self, message: dict[str, Any]) -> None:
        if not self._turns.take_error(message):
            level = logging.DEBUG if ends_what_has_ended(message) else logging.WARNING
            _LOG.log(level, "line %s was refused: %s", message.get("line"), message.get("message"))
