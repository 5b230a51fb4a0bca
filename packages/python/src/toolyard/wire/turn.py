"""A turn that is open, as the thread that reads knows it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from ..calls import Call
from ..errors import Disconnected, Refused, ToolyardError
from ..outcome import Delta, Outcome, Turn, read_outcome
from .deltas import Deltas
from .requests import refused

Sent = tuple[Call, str, "Future[Outcome]"]
"""A call that was sent, its id, and its outcome."""


class TurnState:
    """Collects what comes of a turn, until its ``turn_ended``."""

    def __init__(self, name: str, is_ours: Callable[[str], bool], *, deltas: bool) -> None:
        self.name = name
        self.ended: Future[Turn] = Future()
        self.ended.set_running_or_notify_cancel()
        self.deltas = Deltas() if deltas else None
        self._is_ours = is_ours
        self._lock = threading.Lock()
        self._lines = 0
        self._calls = 0
        self._tools: dict[str, str] = {}
        self._places: dict[str, int] = {}
        self._waiting: dict[str, Future[Outcome]] = {}
        self._by_line: dict[str, list[str]] = {}
        self._outcomes: list[tuple[int, Outcome]] = []
        self._over: Callable[[], ToolyardError] | None = None

    def line_of(self, calls: Sequence[Call]) -> tuple[str, list[dict[str, Any]], list[Sent]]:
        """The id of a line with these calls, the calls as it has them, and who waits for their outcomes.

        Raises what has ended the turn, if it has ended: nobody would answer.
        """
        with self._lock:
            if self._over is not None:
                raise self._over()
            entries = [self._entry(call) for call in calls]
            ids = [entry["tool_call_id"] for entry in entries]
            if len(set(ids)) < len(ids) or not self._places.keys().isdisjoint(ids):
                raise ValueError("an id of a call is in a turn once")
            sent = []
            for call, call_id in zip(calls, ids):
                future: Future[Outcome] = Future()
                future.set_running_or_notify_cancel()
                self._tools[call_id] = call.tool
                self._places[call_id] = len(self._places)
                self._waiting[call_id] = future
                sent.append((call, call_id, future))
            line = self._next_line()
            self._by_line[line] = ids
            return line, entries, sent

    @property
    def has_begun(self) -> bool:
        """Whether a line of it was made."""
        return self._lines > 0

    def line_of_response(self) -> str:
        with self._lock:
            return self._next_line()

    def forget(self, line: str, error: ToolyardError) -> None:
        """A line was not sent, or was refused: its calls do not exist. Without any, neither does the turn."""
        with self._lock:
            gone = [self._waiting.pop(call_id, None) for call_id in self._by_line.pop(line, [])]
        for future in gone:
            if future is not None:
                future.set_exception(error)
        if line == self.name:
            self.fail(lambda: error)

    def take_response(self, message: Mapping[str, Any]) -> None:
        call_id = message["tool_call_id"]
        outcome = read_outcome(message, self._tools.get(call_id, ""), self._is_ours)
        with self._lock:
            place = message.get("index", self._places.get(call_id, len(self._outcomes)))
            self._outcomes.append((place, outcome))
            future = self._waiting.pop(call_id, None)
        if future is not None:
            future.set_result(outcome)

    def take_delta(self, message: Mapping[str, Any]) -> None:
        if self.deltas is not None:
            self.deltas.put(Delta(message["tool_call_id"], message.get("text", "")))

    def end(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            outcomes = [outcome for _, outcome in sorted(self._outcomes, key=lambda one: one[0])]
            waiting, self._waiting = self._waiting, {}
            self._over = _too_late
        # What the turn had is answered: these were added when it had ended.
        for future in waiting.values():
            future.set_exception(_too_late())
        if self.deltas is not None:
            self.deltas.end()
        self.ended.set_result(Turn(message.get("results") or [], outcomes, message.get("number", 0)))

    def fail(self, error: Callable[[], ToolyardError]) -> None:
        """Nothing more comes of it."""
        with self._lock:
            if self._over is not None:
                return
            self._over = error
            waiting, self._waiting = self._waiting, {}
        self.ended.set_exception(error())
        for future in waiting.values():
            future.set_exception(error())
        if self.deltas is not None:
            self.deltas.end()

    def _entry(self, call: Call) -> dict[str, Any]:
        self._calls += 1
        entry = {
            "tool_call_id": call.id or str(self._calls),
            "tool": call.tool,
            "args": {} if call.args is None else call.args,
        }
        meta = call.meta()
        return entry if meta is None else {**entry, "meta": meta}

    def _next_line(self) -> str:
        self._lines += 1
        return self.name if self._lines == 1 else f"{self.name}.{self._lines}"


def _too_late() -> Refused:
    return Refused(
        "the turn had ended before the call was added, which did not run: begin another one", code="turn_closed"
    )


def ends_what_has_ended(message: Mapping[str, Any]) -> bool:
    """Whether an ``error`` says of a turn no more than that it had ended by itself meanwhile."""
    return "turn" in message and message.get("code") in ("turn_closed", "not_found")


class OpenTurns:
    """The turns that have not ended, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._open: dict[str, TurnState] = {}
        self._gone: Callable[[], Disconnected] | None = None

    def open(self, is_ours: Callable[[str], bool], *, deltas: bool) -> TurnState:
        with self._lock:
            if self._gone is not None:
                raise self._gone()
            self._last += 1
            turn = TurnState(f"t{self._last}", is_ours, deltas=deltas)
            self._open[turn.name] = turn
            return turn

    def take_response(self, message: Mapping[str, Any]) -> None:
        turn = self._open.get(message["turn"])
        if turn is not None:
            turn.take_response(message)

    def take_delta(self, message: Mapping[str, Any]) -> None:
        turn = self._open.get(message["turn"])
        if turn is not None:
            turn.take_delta(message)

    def take_end(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            turn = self._open.pop(message["turn"], None)
        if turn is not None:
            turn.end(message)

    def take_error(self, message: Mapping[str, Any]) -> bool:
        """Whether it is about calls of a turn that is open; it goes on unless that was its first line.

        Only lines with calls have an id that is the turn's.
        """
        line = message.get("id")
        turn = self._open.get(line.split(".")[0]) if isinstance(line, str) else None
        if turn is None:
            return False
        turn.forget(str(line), refused(message))
        if line == turn.name:
            self.drop(turn)
        return True

    def drop(self, turn: TurnState) -> None:
        with self._lock:
            self._open.pop(turn.name, None)

    def end(self, error: Callable[[], Disconnected]) -> None:
        """Nothing more comes of any of them."""
        with self._lock:
            self._gone = error
            turns, self._open = self._open, {}
        for turn in turns.values():
            turn.fail(error)
