"""The conversation with a program: what is sent, who waits for what, and how it ends."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import Closed, Disconnected, ProgramDied, ProtocolError
from .lines import decode, encode
from .outbox import Outbox
from .process import Process
from .requests import Answer, Requests, refused

_LOG = logging.getLogger("toolyard")

ANSWERS = frozenset(
    {"welcome", "opened", "forked", "closed", "definitions", "confirmed", "registered", "unregistered", "goodbye"}
)
EXIT_S = 5.0

Heard = Callable[[dict[str, Any]], None]


class Link:
    """Lines to a program and from it.

    ``heard`` has what is done about each operation that is no answer to a request, on the thread that reads; it must
    not wait. ``ended`` is told once why nothing comes any more, by what makes the exception for each who waits.
    """

    def __init__(
        self, process: Process, heard: Mapping[str, Heard], ended: Callable[[Callable[[], Disconnected]], None]
    ) -> None:
        self._process = process
        self._heard = heard
        self._told_end = ended
        self._requests = Requests()
        self._gone: Callable[[], Disconnected] | None = None
        self._closing = False
        self._abandoned = False
        self._outbox = Outbox(process.writes)
        self._reader = threading.Thread(target=self._read, name="toolyard-reader", daemon=True)
        self._reader.start()

    def request(self, op: str, **fields: Any) -> Answer:
        """Sends a request, and gives the future of its answer; the id is made here."""
        self.check()
        request_id, answer = self._requests.open()
        try:
            self.send({"op": op, "id": request_id, **fields})
        except BaseException:
            self._requests.take(request_id)
            raise
        # It may have ended between the check and the sending, after which nobody answers.
        if self._gone is not None and self._requests.take(request_id) is not None:
            answer.set_exception(self._gone())
        return answer

    def send(self, message: dict[str, Any]) -> None:
        """Sends a line; waits only while too much of what was sent has not been written."""
        self.check()
        line = encode(message)
        if self._outbox.is_full and threading.current_thread() is not self._reader:
            self._outbox.wait_for_room()
        self._outbox.put(line)

    @property
    def is_full(self) -> bool:
        """Whether the next one who sends has to wait."""
        return self._outbox.is_full

    def wait_for_room(self) -> None:
        self._outbox.wait_for_room()

    def check(self) -> None:
        """Raises why nothing can be sent, if it is so."""
        if not self._process.is_ours:
            raise Closed("a forked process has no part in the engine of its parent; start one in it")
        if self._gone is not None:
            raise self._gone()

    def closing(self) -> None:
        """From now on the end of the program is no failure."""
        self._closing = True

    def end_input(self) -> None:
        """What runs is cancelled, and the program ends."""
        self._closing = True
        self._outbox.close()

    def abandon(self) -> None:
        """The same, when nobody is there to wait for it; never waits."""
        self._abandoned = True
        self.end_input()

    def join(self, timeout: float) -> bool:
        """Waits until nothing comes any more."""
        self._reader.join(timeout)
        return not self._reader.is_alive()

    def _read(self) -> None:
        reason: str | None = None
        try:
            with io.BufferedReader(self._process.reads, 1024 * 1024) as lines:
                for line in lines:
                    message = decode(line)
                    if message is not None:
                        self._receive(message)
        except ProtocolError as error:
            reason = str(error)
        except Exception as error:
            _LOG.exception("a line of the program was not understood")
            reason = f"a line of the program was not understood: {error!r}"
        self._end(reason)

    def _receive(self, message: dict[str, Any]) -> None:
        op = message["op"]
        if op in ANSWERS:
            answer = self._requests.take(message.get("id"))
            if answer is not None:
                answer.set_result(message)
        elif op == "error":
            self._receive_error(message)
        elif op in self._heard:
            self._heard[op](message)
        # A later version may have more operations, which nobody has asked for.

    def _receive_error(self, message: dict[str, Any]) -> None:
        answer = self._requests.take(message.get("id"))
        if answer is not None:
            answer.set_exception(refused(message))
        else:
            self._heard["error"](message)

    def _end(self, reason: str | None) -> None:
        """Nothing comes any more: finds out why, and tells everybody."""
        self._outbox.close()
        if self._closing:
            self._gone = lambda: Closed("the engine was closed")
        elif reason is not None:
            self._gone = lambda: ProtocolError(reason)
        else:
            code = self._process.wait(EXIT_S)
            self._gone = _died(code, self._process.tail())
        self._requests.end(self._gone)
        self._told_end(self._gone)
        if self._abandoned:
            self._process.end(EXIT_S)


def _died(code: int | None, tail: str) -> Callable[[], Disconnected]:
    about = "has closed its output" if code is None else f"has ended with the exit code {code}"
    text = f"the program {about}\n{tail}".rstrip()
    return lambda: ProgramDied(text, returncode=code, stderr=tail)
