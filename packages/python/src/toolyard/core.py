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
import weakref
from collections.abc import Callable, Iterable, Mapping
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
        this = weakref.ref(self)
        self._runner = Runner(_Host(this), loop, options.threads)
        self._desk = None if options.approve is None else Desk(options.approve, _Host(this).request, loop)
        self._teller = None if options.on_event is None else Teller(options.on_event)
        self._deltas = False
        self._deltas_lock = threading.Lock()
        self._process = Process(options.command(), cwd=None, env=options.env)
        self._link = Link(self._process, self._heard(), self._all_ended())
        self._abandoned = weakref.finalize(self, _abandon, self._link, loop)
        # The end of this program is the end of the other's input, which needs no help.
        self._abandoned.atexit = False

    def greet(self) -> list[Answer]:
        """Says hello and registers the tools; the first answer is the welcome."""
        greeted = [self.request("hello", **self._options.greeting(False))]
        return greeted + [self.register(one) for one in self._options.tools]

    def register(self, one: Tool[Any]) -> Answer:
        tool = as_tool(one)
        undo = self._runner.add(tool)
        try:
            answer = self.request("register", definition=tool.definition)
        except BaseException:
            undo()
            raise
        answer.add_done_callback(lambda done: undo() if done.exception() else None)
        return answer

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

    def begin_within(self, call_id: str, calls: Iterable[BatchEntry]) -> TurnState:
        """Makes calls as part of an invocation."""
        turn = self._open(False)
        # Elsewhere they belong to the turn of the function's own call, whose ids are not to be theirs.
        made = [replace(call, id=call.id or f"{turn.name}.{number}") for number, call in enumerate(as_calls(calls), 1)]
        self._send_calls(turn, made, {"within": call_id})
        return turn

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
        self._abandoned.detach()
        if not self._process.is_ours:
            return
        self._link.end_input()
        self._link.join(PATIENCE_S)
        self._process.end(PATIENCE_S)
        self._link.join(PATIENCE_S)
        if self._teller is not None:
            self._teller.join(PATIENCE_S)
        self._loop.close()

    def _all_ended(self) -> Callable[[Callable[[], Disconnected]], None]:
        """What is done at the end. It holds the parts and not this, as `_heard`."""
        turns, runner, desk, teller = self._turns, self._runner, self._desk, self._teller

        def ended(error: Callable[[], Disconnected]) -> None:
            turns.end(error)
            runner.cancel_all()
            if desk is not None:
                desk.end_all()
            if teller is not None:
                teller.end()

        return ended

    # Lines

    def _open(self, deltas: bool) -> TurnState:
        self._link.check()
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
        turns, runner = self._turns, self._runner
        heard: dict[str, Callable[[dict[str, Any]], None]] = {
            "tool_invoke": runner.invoke,
            "tool_cancel": lambda message: runner.cancel(message["call_id"]),
            "tool_response": turns.take_response,
            "tool_delta": turns.take_delta,
            "turn_ended": turns.take_end,
            "error": lambda message: _take_error(turns, runner, message),
            "shutdown": lambda message: _LOG.warning("the program ends in %s ms", message.get("grace_ms")),
        }
        if self._desk is not None:
            heard.update(confirm=self._desk.ask, confirm_ended=self._desk.end)
        if self._teller is not None:
            heard.update(event=self._teller.take, event_reset=self._teller.take)
        return heard


class _Host:
    """What functions and `approve` need of an engine, without keeping it: one that nobody holds any more ends."""

    def __init__(self, core: weakref.ref[Core]) -> None:
        self._core = core

    def request(self, op: str, **fields: Any) -> Answer:
        return self._there().request(op, **fields)

    def answer(self, line: dict[str, Any]) -> None:
        self._there().answer(line)

    def cancel(self, turn: TurnState) -> None:
        self._there().cancel(turn)

    def begin_within(self, call_id: str, calls: Iterable[BatchEntry]) -> TurnState:
        return self._there().begin_within(call_id, calls)

    def _there(self) -> Core:
        core = self._core()
        if core is None:
            raise Closed("nobody holds the engine any more")
        return core


def _abandon(link: Link, loop: Loop) -> None:
    _LOG.debug("nobody holds the engine any more")
    link.abandon()
    loop.close()


def _take_error(turns: OpenTurns, runner: Runner, message: dict[str, Any]) -> None:
    if message.get("refused") in ("tool_result", "tool_failed") and isinstance(message.get("id"), str):
        runner.refused(message["id"], message.get("message", ""))
    elif not turns.take_error(message):
        level = logging.DEBUG if ends_what_has_ended(message) else logging.WARNING
        _LOG.log(level, "line %s was refused: %s", message.get("line"), message.get("message"))
