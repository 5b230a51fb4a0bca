"""An agent of Toolyard: a program that acts by asking its supervisor for tools.

::

    import toolyard_agent

    with toolyard_agent.connect() as agent:
        notes = agent.tools.call("Read", path="/data/notes.md")
        agent.bye({"bytes": notes["size"]})

Started with ``toolyard supervise --tools Read --fs r:/data -- python3 agent.py``. Needs Python 3.9 and nothing else.

How a call travels::

    your threads ──► Agent.start ──► _Protocol ──► one lock ──► descriptor 1
         ▲                                                          │
         └── Call, a future ◄── _Protocol.receive ◄── reader thread ◄── descriptor 0

    your tasks   ──► AsyncAgent.start, AsyncCall: the same on the event loop, without a thread

``_Protocol`` knows the lines and which calls wait for an answer, and does no I/O. Whoever sends never waits for an
answer, and answers are read all the time, so neither side waits for the other: all calls may be sent before the first
answer is read. At most ``IN_FLIGHT_MAX`` calls are in flight; the next one waits for an answer.

``connect`` and ``aconnect`` take the channel for themselves: descriptor 1 then leads to standard error and descriptor 0
to nothing, so that neither ``print`` nor a subprocess can damage it. Connect first: what is printed before goes to the
supervisor, which refuses it.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    TypedDict,
    Union,
)

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "Agent",
    "AgentError",
    "AsyncAgent",
    "AsyncCall",
    "AsyncTools",
    "Call",
    "CallMeta",
    "Disconnected",
    "FsDenied",
    "InvalidArgs",
    "PermissionDenied",
    "ProtocolError",
    "Result",
    "Shutdown",
    "Tool",
    "ToolError",
    "ToolFailed",
    "ToolNotFound",
    "Tools",
    "aconnect",
    "connect",
]

IN_FLIGHT_MAX = 1_000
"""Calls without an answer. One more would wait at the supervisor, and the lines behind it with it, a cancel too."""

LINE_MAX = 4 * 1024 * 1024
"""Bytes of a line without its end. The supervisor ends an agent that writes a longer one."""

Result = dict[str, Any]
"""What a tool has answered."""

_LOG = logging.getLogger("toolyard_agent")
_NOTHING: Any = object()


class Tool(TypedDict, total=False):
    """A tool that this agent may call, as its supervisor describes it."""

    name: str
    description: str
    input_schema: dict[str, Any] | None
    side_effects: str


class CallMeta(TypedDict, total=False):
    """How a call is run: ``agent.tools.call("Fetch", url=url, meta={"timeout_ms": 5_000})``."""

    idempotency_key: str
    """1 to 255 visible ASCII characters. Calls of one tool with one key run once."""
    timeout_ms: int
    """The time of each attempt."""
    deadline_ms: int
    """The time of the whole call."""


# Errors


class AgentError(Exception):
    """Everything that this module raises about calls, except for wrong use of the module itself."""


class ToolError(AgentError):
    """A call has failed. ``str(error)`` is written for a model to read.

    ::

        try:
            agent.tools.call("Read", path="/etc/passwd")
        except toolyard_agent.FsDenied as error:
            print(error.slug, error.code, error)
    """

    slug: str = "tool_failed"
    """One of five words; each has a subclass. A later word is a :class:`ToolFailed`."""

    def __init__(
        self, message: str, *, slug: str, tool: str, call_id: str, meta: Mapping[str, Any], note: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.note = note
        """What a model has to be told beside the message: that a person has changed the arguments."""
        self.slug = slug
        self.tool = tool
        self.call_id = call_id
        self.meta = dict(meta)
        """What the supervisor knows of the call: attempts, times, and the fields below."""
        self.code: str | None = meta.get("code")
        """The precise error code, such as ``timeout``."""
        self.outcome: str | None = meta.get("outcome")
        """Whether the call has had an effect: ``not_started``, ``failed`` or ``unknown``."""
        self.retryable = bool(meta.get("retryable", False))
        """Whether the same call may succeed later."""
        self.retry_after_ms: int | None = meta.get("retry_after_ms")


class ToolNotFound(ToolError):
    """There is no tool of this name."""

    slug = "tool_not_found"


class PermissionDenied(ToolError):
    """This agent may not use the tool, or policy, a budget or a person has refused the call."""

    slug = "permission_denied"


class FsDenied(ToolError):
    """This agent may not use that path."""

    slug = "fs_denied"


class InvalidArgs(ToolError):
    """The arguments are not what the tool takes."""

    slug = "invalid_args"


class ToolFailed(ToolError):
    """The tool said no, timed out, was cancelled, or broke."""

    slug = "tool_failed"


class ProtocolError(AgentError):
    """A line was refused and did nothing, or the supervisor has sent what is no line of the protocol."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Disconnected(AgentError, ConnectionError):
    """The supervisor has closed the channel. A call that was waiting may have had its effect."""


class Shutdown(Disconnected):
    """The agent is to end: it can call nothing more, may say bye, and has this time to exit."""

    def __init__(self, grace_ms: int) -> None:
        super().__init__(f"this agent is to end, and has {grace_ms} ms to exit")
        self.grace_ms = grace_ms


_CLOSED = (Disconnected, "the supervisor has closed the channel")

_BY_SLUG: dict[str, type[ToolError]] = {
    one.slug: one for one in (ToolNotFound, PermissionDenied, FsDenied, InvalidArgs, ToolFailed)
}


# The protocol, without I/O

_Outcome = Union[Result, AgentError]
_AnyCall = Union["Call", "AsyncCall"]
_Effect = Callable[[], None]
_Reason = tuple[type[AgentError], str]


class _Protocol:
    """The lines, and which calls wait for an answer. Its owner serializes the use of it, and does the I/O."""

    def __init__(self) -> None:
        self.welcome: dict[str, Any] | None = None
        self.pending: dict[str, _AnyCall] = {}
        self._cancelled: set[str] = set()
        self._shutdown: Shutdown | None = None
        self._said_bye = False
        self._gone: _Reason | None = None
        self._ids = 0

    def next_id(self) -> str:
        self._ids += 1
        return str(self._ids)

    def open(self, call: _AnyCall) -> None:
        self.pending[call.id] = call

    def may_begin(self) -> bool:
        return self.welcome is not None or self.error("hello") is not None

    def may_open(self) -> bool:
        """Whether nothing has to be waited for before a call is opened: there is room, or it will fail."""
        return len(self.pending) < IN_FLIGHT_MAX or self.error("tool_call") is not None

    def cancel(self, call: _AnyCall) -> bool:
        """Whether a cancel has to be sent: the call waits for its answer, and it was not cancelled before."""
        if call.id not in self.pending or call.id in self._cancelled:
            return False
        self._cancelled.add(call.id)
        return True

    def close(self, call_id: str) -> _AnyCall | None:
        """Takes out a call that has its answer."""
        self._cancelled.discard(call_id)
        return self.pending.pop(call_id, None)

    def error(self, op: str) -> AgentError | None:
        """Why a line of this operation cannot be sent; a new exception each time, as each is raised on its own."""
        if self._said_bye and op != "cancel":
            return ProtocolError("this agent has said bye, and can send nothing more")
        if self._shutdown is not None:
            # Its input is closed as soon as all is answered, and its bye is heard even then.
            return None if op in ("bye", "cancel") else self.stopping()
        return None if self._gone is None else self._gone[0](self._gone[1])

    def check(self, op: str) -> None:
        """Notes that a line of this operation is sent, or raises why it cannot be."""
        error = self.error(op)
        if error is not None:
            raise error
        self._said_bye = self._said_bye or op == "bye"

    def stopping(self) -> Shutdown | None:
        return None if self._shutdown is None else Shutdown(self._shutdown.grace_ms)

    def lose(self, kind: type[AgentError], about: str) -> None:
        """Nothing can be sent from now on; the first reason stays."""
        self._gone = self._gone or (kind, about)

    def end(self, kind: type[AgentError], about: str) -> list[_Effect]:
        """No answer comes any more: what has to be done for all calls that wait for one."""
        waiting, self.pending = self.pending, {}
        self.lose(kind, about)
        return [partial(call._end, self.stopping() or kind(about), {}) for call in waiting.values()]

    def receive(self, line: bytes) -> _Effect | None:
        """Takes a line of the supervisor, and returns what has to be done about it."""
        if not line.strip():
            return None
        try:
            message = json.loads(line.decode("utf-8"))
            op = message["op"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ProtocolError(
                f"the supervisor has sent a line that is none of the protocol: {line[:200]!r}"
            ) from None
        # A later version may have more operations, which an agent that did not ask for them need not know.
        take = {
            "tool_response": self._take_response,
            "tool_delta": self._take_delta,
            "welcome": self._take_welcome,
            "error": self._take_error,
            "shutdown": self._take_shutdown,
        }.get(op)
        return take(message) if take else None

    def _take_response(self, message: dict[str, Any]) -> _Effect | None:
        call = self.close(message.get("tool_call_id", ""))
        if call is None:
            _LOG.warning("an answer to a call that does not wait for one: %r", message.get("tool_call_id"))
            return None
        call.note = message.get("note")
        meta = message.get("meta") or {}
        if message.get("ok"):
            return partial(call._end, message.get("result") or {}, meta)
        slug = message.get("error", "tool_failed")
        make = _BY_SLUG.get(slug, ToolFailed)
        text = message.get("message", slug)
        error = make(text, slug=slug, tool=call.tool, call_id=call.id, meta=meta, note=call.note)
        return partial(call._end, error, meta)

    def _take_delta(self, message: dict[str, Any]) -> _Effect | None:
        call = self.pending.get(message.get("tool_call_id", ""))
        return partial(call._delta, message.get("text", "")) if call else None

    def _take_welcome(self, message: dict[str, Any]) -> None:
        self.welcome = message

    def _take_shutdown(self, message: dict[str, Any]) -> None:
        self._shutdown = Shutdown(message.get("grace_ms", 0))

    def _take_error(self, message: dict[str, Any]) -> _Effect | None:
        error = ProtocolError(message.get("message", "a line was refused"), message.get("line"))
        refused = message.get("refused")
        if refused == "hello" and self.welcome is None:
            raise error
        # A cancel that is refused names a call as well, which is then still answered.
        call = self.close(message.get("tool_call_id", "")) if refused == "tool_call" else None
        if call is None:
            _LOG.warning("line %s was refused: %s", error.line, error)
            return None
        return partial(call._end, error, {})


def _line(message: dict[str, Any]) -> bytes:
    try:
        data = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a text has half a character in it, which UTF-8 cannot express") from None
    if len(data) > LINE_MAX:
        raise ValueError(f"a line has at most {LINE_MAX} bytes, and this one has {len(data)}")
    return data + b"\n"


def _hello(deltas: bool) -> bytes:
    # The line feed ends what was printed before the agent has connected, and keeps it apart from the hello.
    return b"\n" + _line({"op": "hello", "protocol": 1, "meta": True, "deltas": deltas})


def _tool_call(
    call: _AnyCall, args: Mapping[str, Any], after: Iterable[str | _AnyCall] | None, meta: CallMeta | None
) -> bytes:
    message: dict[str, Any] = {"op": "tool_call", "tool_call_id": call.id, "tool": call.tool, "args": args}
    if after is not None:
        # Who has been answered is done, and the supervisor does not remember it for ever.
        names = [one if isinstance(one, str) else one.id for one in after if isinstance(one, str) or not one.done()]
        message["after"] = names
    if meta is not None:
        message["meta"] = meta
    return _line(message)


def _bye(result: Any) -> bytes:
    return _line({"op": "bye"} if result is _NOTHING else {"op": "bye", "result": result})


def _arguments(args: Mapping[str, Any] | None, named: dict[str, Any]) -> Mapping[str, Any]:
    return named if args is None else {**args, **named}


class _Splitter:
    """Makes lines of pieces; what stands after the last line feed waits for its end."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        head, *more = piece.split(b"\n")
        self._rest.append(head)
        if not more:
            return []
        lines = [b"".join(self._rest), *more]
        self._rest = [lines.pop()]
        return lines


# The channel

_taken = threading.Lock()


def _take_channel(channel: None | str | tuple[int, int]) -> tuple[int, int]:
    """The descriptors to read and to write, which are then this module's alone."""
    if isinstance(channel, tuple):
        return channel
    channel = channel or os.environ.get("TOOLYARD_CHANNEL", "stdio")
    if channel not in ("stdio", "fd3"):
        raise ValueError(f"there is no channel {channel!r}: it is 'stdio' or 'fd3'")
    if channel == "stdio" and os.isatty(0):
        raise RuntimeError("nobody supervises this program: start it with `toolyard supervise -- python3 agent.py`")
    if not _taken.acquire(blocking=False):
        raise RuntimeError("this program is connected already, and has only one supervisor")
    return _take_stdio() if channel == "stdio" else _take_socket()


def _take_stdio() -> tuple[int, int]:
    # What is still in the buffer of `sys.stdout` was not meant for the supervisor, and follows to standard error.
    reads, writes = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    return reads, writes


def _take_socket() -> tuple[int, int]:
    os.set_inheritable(3, False)
    return 3, 3


def _lines_of(descriptor: int) -> Iterator[bytes]:
    splitter = _Splitter()
    while True:
        piece = os.read(descriptor, 65_536)
        if not piece:
            return
        yield from splitter.feed(piece)


# For threads


class Call(Future[Result]):
    """A call that was sent: a :class:`concurrent.futures.Future` of its result.

    ``concurrent.futures.wait`` and ``as_completed`` take it. What ``add_done_callback`` adds runs on the thread that
    reads answers, and must not send anything.
    """

    def __init__(self, agent: Agent, call_id: str, tool: str) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self.id = call_id
        self.tool = tool
        self.meta: dict[str, Any] = {}
        """What the supervisor knows of the call, once it has been answered."""
        self.note: str | None = None
        """What a model has to be told beside the result: that the person who approved it has changed the arguments."""
        self._agent = agent
        self._texts: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def cancel(self) -> bool:
        """Asks to stop the call, which is still answered: with its result, if that comes first, or by ``ToolFailed``.

        Returns False if it has been answered already.
        """
        return self._agent._cancel(self)

    def deltas(self) -> Iterator[str]:
        """The pieces of output that come before the end, as they come; ends when the call ends.

        ::

            agent = toolyard_agent.connect(deltas=True)
            call = agent.tools.start("Build", target="all")
            for text in call.deltas():
                print(text, end="")
            result = call.result()
        """
        while True:
            text = self._texts.get()
            if text is None:
                self._texts.put(None)
                return
            yield text

    def _delta(self, text: str) -> None:
        self._texts.put(text)

    def _end(self, outcome: _Outcome, meta: dict[str, Any]) -> None:
        self.meta = meta
        if isinstance(outcome, Exception):
            self.set_exception(outcome)
        else:
            self.set_result(outcome)
        self._texts.put(None)


BatchEntry = Union[tuple[str, Mapping[str, Any]], tuple[str, Mapping[str, Any], dict[str, Any]]]
"""A tool, its arguments, and if need be ``{"after": …, "meta": …}``."""


class _ToolMap(Mapping[str, Tool]):
    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool["name"]: tool for tool in tools}

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


class Tools(_ToolMap):
    """The tools of an agent: a mapping from names to descriptions, and the ways to call them."""

    def __init__(self, agent: Agent, tools: Iterable[Tool]) -> None:
        super().__init__(tools)
        self._agent = agent

    def call(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        after: Iterable[str | Call] | None = None,
        meta: CallMeta | None = None,
        on_delta: Callable[[str], object] | None = None,
        **named: Any,
    ) -> Result:
        """Calls a tool, and waits for its result.

        Arguments are keywords, or a mapping if their names are ``after``, ``meta``, ``on_delta`` or no identifiers::

            tools.call("Read", path="/a")
            tools.call("Search", {"after": "2026-01-01"}, after=[])

        Raises a subclass of :class:`ToolError` if the call fails, :class:`Disconnected` or its subclass
        :class:`Shutdown` if the supervisor has gone, :class:`ProtocolError` if it refuses the line, :class:`ValueError`
        if the call makes no line. ``on_delta`` is called on this thread. An interrupt cancels the call.
        """
        _check_deltas(on_delta, self._agent._deltas)
        call = self.start(tool, args, after=after, meta=meta, **named)
        try:
            if on_delta is not None:
                for text in call.deltas():
                    on_delta(text)
            return call.result()
        finally:
            # Nothing, unless something else than its end has ended the wait.
            call.cancel()

    def start(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        after: Iterable[str | Call] | None = None,
        meta: CallMeta | None = None,
        **named: Any,
    ) -> Call:
        """Sends a call, and does not wait for its result::

            write = tools.start("Write", path="/a", content="x")
            check = tools.start("Shell", command="make", after=[write])
            check.result(timeout=60)

        Without ``after`` calls have the effect that they would have one after another, and reads run together. With it
        a call waits for these calls and no others. Waits while ``IN_FLIGHT_MAX`` calls are in flight.
        """
        return self._agent._start(tool, _arguments(args, named), after, meta)

    def batch(self, calls: Iterable[BatchEntry], *, raise_errors: bool = False) -> list[Any]:
        """Sends calls together, and returns what each has come to, in the order of the calls::

            a, b = tools.batch([("Read", {"path": "/a"}), ("Read", {"path": "/b"})])

        A failed call is a :class:`ToolError` (or a :class:`ProtocolError`) in the list; with ``raise_errors`` the first
        one is raised, when all calls have ended. :class:`Disconnected` is always raised.
        """
        started: list[Call] = []
        try:
            for tool, args, *options in calls:
                started.append(self.start(tool, args, **(options[0] if options else {})))
            ended = [call.exception() or call.result() for call in started]
        finally:
            for call in started:
                call.cancel()
        return _outcomes(ended, raise_errors)


def _check_deltas(on_delta: Callable[[str], object] | None, deltas: bool) -> None:
    if on_delta is not None and not deltas:
        raise ValueError("nothing comes before the end of a call: connect with deltas=True")


def _outcomes(ended: list[Any], raise_errors: bool) -> list[Any]:
    for one in ended:
        if isinstance(one, Disconnected) or (raise_errors and isinstance(one, BaseException)):
            raise one
    return ended


class Agent:
    """This program as its supervisor knows it. Made by :func:`connect`; usable from all threads."""

    name: str
    """Its path from the root, such as ``root/writer``."""
    input: Any
    """What it was started with, or None."""
    tools: Tools

    def __init__(self, reads: int, writes: int, deltas: bool) -> None:
        self._writes = writes
        self._deltas = deltas
        self._process = os.getpid()
        self._protocol = _Protocol()
        # Guards the protocol. Not held while a line is written, so that answers are read meanwhile.
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._torn = False
        self._reader = threading.Thread(target=self._read, args=(reads,), name="toolyard-agent", daemon=True)
        self._reader.start()
        self._send("hello", _hello(deltas))
        welcome = self._wait_for_welcome()
        self.name = welcome.get("agent", "")
        self.input = welcome.get("input")
        self.tools = Tools(self, welcome.get("tools", []))

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            with suppress(Disconnected, ProtocolError):
                self.bye()

    def call(self, tool: str, args: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
        """The same as ``agent.tools.call``."""
        return self.tools.call(tool, args, **named)

    def turn_end(self) -> None:
        """Calls that follow wait until all that came before have been answered."""
        self._send("turn_end", _line({"op": "turn_end"}))

    def bye(self, result: Any = _NOTHING) -> None:
        """Says that the agent asks for nothing more, and what its result is. Calls in flight are still answered.

        The program should then exit. At the end of a ``with`` it is said without a result, if it was not said before.
        """
        self._send("bye", _bye(result))

    @property
    def stopping(self) -> Shutdown | None:
        """Set when the agent is to end: what any further call would raise."""
        with self._changed:
            return self._protocol.stopping()

    def _wait_for_welcome(self) -> dict[str, Any]:
        with self._changed:
            self._changed.wait_for(self._protocol.may_begin)
            if self._protocol.welcome is None:
                self._protocol.check("hello")
            return self._protocol.welcome or {}

    def _start(
        self, tool: str, args: Mapping[str, Any], after: Iterable[str | Call] | None, meta: CallMeta | None
    ) -> Call:
        self._check_sender()
        with self._changed:
            call = Call(self, self._protocol.next_id(), tool)
        line = _tool_call(call, args, after, meta)
        with self._changed:
            self._changed.wait_for(self._protocol.may_open)
            self._protocol.check("tool_call")
            self._protocol.open(call)
        try:
            self._send("tool_call", line)
        except BaseException:
            with self._changed:
                self._protocol.close(call.id)
            raise
        return call

    def _cancel(self, call: Call) -> bool:
        if call.done():
            return False
        with self._changed:
            sends = self._protocol.cancel(call)
        if sends:
            # After a shutdown it is cancelled in any case, and without a supervisor it ends.
            with suppress(Disconnected, ProtocolError):
                self._send("cancel", _line({"op": "cancel", "tool_call_id": call.id}))
        return True

    def _send(self, op: str, line: bytes) -> None:
        self._check_sender()
        with self._writing:
            with self._changed:
                self._protocol.check(op)
                self._changed.notify_all()
            if self._torn:
                raise Disconnected("a line was interrupted before its end, and no other one can follow")
            self._torn = True
            try:
                self._write(line)
            except OSError as cause:
                # Answers that were sent before are still read, up to the end.
                told = f"the supervisor does not read any more: {cause}"
                with self._changed:
                    self._protocol.lose(Disconnected, told)
                raise Disconnected(told) from None
            self._torn = False

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._writes, rest) :]

    def _check_sender(self) -> None:
        if threading.get_ident() == self._reader.ident:
            raise RuntimeError("a callback of a call runs on the thread that reads answers, and must not send anything")
        if os.getpid() != self._process:
            raise RuntimeError("a forked process has no part in the channel of its parent")

    def _read(self, reads: int) -> None:
        reason: _Reason = _CLOSED
        try:
            for line in _lines_of(reads):
                with self._changed:
                    effect = self._protocol.receive(line)
                    self._changed.notify_all()
                if effect is not None:
                    effect()
        except OSError as cause:
            reason = (Disconnected, f"the channel cannot be read: {cause}")
        except ProtocolError as cause:
            reason = (ProtocolError, str(cause))
        except BaseException as cause:
            reason = (ProtocolError, f"the supervisor has sent what this module does not understand: {cause!r}")
        with self._changed:
            effects = self._protocol.end(*reason)
            self._changed.notify_all()
        for effect in effects:
            effect()


def connect(*, deltas: bool = False, channel: None | str | tuple[int, int] = None) -> Agent:
    """Takes the channel, says hello, and waits for the welcome.

    With ``deltas`` output that comes before the end of a call is passed on: ``Call.deltas`` and ``on_delta``. The
    channel is what ``TOOLYARD_CHANNEL`` says, or given: ``stdio``, ``fd3``, or two descriptors, to read and to write.
    """
    reads, writes = _take_channel(channel)
    if sys.platform != "win32":
        # A socket may have been made by an event loop of the supervisor, and then does not block by itself.
        os.set_blocking(reads, True)
        os.set_blocking(writes, True)
    return Agent(reads, writes, deltas)


# For asyncio


class AsyncCall:
    """A call that was sent. ``await`` gives its result; a task that is cancelled while it waits cancels the call."""

    def __init__(self, agent: AsyncAgent, call_id: str, tool: str) -> None:
        import asyncio

        self.id = call_id
        self.tool = tool
        self.meta: dict[str, Any] = {}
        """What the supervisor knows of the call, once it has been answered."""
        self.note: str | None = None
        """What a model has to be told beside the result: that the person who approved it has changed the arguments."""
        self._agent = agent
        self._future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._texts: asyncio.Queue[str | None] = asyncio.Queue()

    def __await__(self) -> Generator[Any, None, Result]:
        import asyncio

        try:
            # Not the future itself, which a cancelled task would end for all others that wait for it.
            yield from asyncio.wait([self._future]).__await__()
        except BaseException:
            self._abandon()
            raise
        return self._future.result()

    def done(self) -> bool:
        """Whether it has been answered."""
        return self._future.done()

    def cancel(self) -> bool:
        """Asks to stop the call, which is still answered; returns False if it has been answered already."""
        return self._agent._cancel(self)

    def _abandon(self) -> None:
        """Cancels it for those who do not wait any more, and will not look at what it ends with."""
        self._future.add_done_callback(lambda future: future.exception())
        self.cancel()

    async def deltas(self) -> AsyncIterator[str]:
        """The pieces of output that come before the end, as they come; ends when the call ends.

        ::

            async with toolyard_agent.aconnect(deltas=True) as agent:
                call = await agent.tools.start("Build", target="all")
                async for text in call.deltas():
                    print(text, end="")
                result = await call
        """
        while True:
            text = await self._texts.get()
            if text is None:
                self._texts.put_nowait(None)
                return
            yield text

    def _delta(self, text: str) -> None:
        self._texts.put_nowait(text)

    def _end(self, outcome: _Outcome, meta: dict[str, Any]) -> None:
        self.meta = meta
        if isinstance(outcome, Exception):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)
        self._texts.put_nowait(None)


class AsyncTools(_ToolMap):
    """The tools of an agent on an event loop. All is as in :class:`Tools`, but for the ``await``."""

    def __init__(self, agent: AsyncAgent, tools: Iterable[Tool]) -> None:
        super().__init__(tools)
        self._agent = agent

    async def call(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        after: Iterable[str | AsyncCall] | None = None,
        meta: CallMeta | None = None,
        on_delta: Callable[[str], object] | None = None,
        **named: Any,
    ) -> Result:
        """Calls a tool, and waits for its result. A task that is cancelled meanwhile cancels the call::

        a, b = await asyncio.gather(tools.call("Read", path="/a"), tools.call("Read", path="/b"))
        c = await asyncio.wait_for(tools.call("Fetch", url=url), timeout=5)
        """
        _check_deltas(on_delta, self._agent._deltas)
        call = await self.start(tool, args, after=after, meta=meta, **named)
        if on_delta is None:
            return await call
        try:
            async for text in call.deltas():
                on_delta(text)
        except BaseException:
            call._abandon()
            raise
        return await call

    async def start(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        after: Iterable[str | AsyncCall] | None = None,
        meta: CallMeta | None = None,
        **named: Any,
    ) -> AsyncCall:
        """Sends a call, and does not wait for its result; waits while ``IN_FLIGHT_MAX`` calls are in flight."""
        return await self._agent._start(tool, _arguments(args, named), after, meta)

    async def batch(self, calls: Iterable[BatchEntry], *, raise_errors: bool = False) -> list[Any]:
        """Sends calls together, and returns what each has come to, in the order of the calls."""
        import asyncio

        started: list[AsyncCall] = []
        try:
            for tool, args, *options in calls:
                started.append(await self.start(tool, args, **(options[0] if options else {})))
            if started:
                await asyncio.wait([call._future for call in started])
        except BaseException:
            for call in started:
                call._abandon()
            raise
        return _outcomes([call._future.exception() or call._future.result() for call in started], raise_errors)


class AsyncAgent:
    """This program as its supervisor knows it, on an event loop. Made by :func:`aconnect`."""

    name: str
    """Its path from the root, such as ``root/writer``."""
    input: Any
    """What it was started with, or None."""
    tools: AsyncTools

    def __init__(self, deltas: bool) -> None:
        import asyncio

        self._deltas = deltas
        self._protocol = _Protocol()
        self._splitter = _Splitter()
        # Whoever sends waits here for its turn, for room and for the pipe, so that lines keep the order of their tasks.
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()
        self._full = False
        self._transports: list[asyncio.BaseTransport] = []
        self._lost = 0

    async def _connect(self, reads: int, writes: int) -> None:
        await self._attach(reads, writes)
        self._write("hello", _hello(self._deltas))
        await self._until(self._protocol.may_begin)
        if self._protocol.welcome is None:
            await self.aclose()
            self._protocol.check("hello")
        welcome = self._protocol.welcome or {}
        self.name = welcome.get("agent", "")
        self.input = welcome.get("input")
        self.tools = AsyncTools(self, welcome.get("tools", []))

    async def __aenter__(self) -> AsyncAgent:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            with suppress(Disconnected, ProtocolError):
                await self.bye()
        else:
            self._transports[-1].abort()  # type: ignore[attr-defined]
        await self.aclose()

    async def call(self, tool: str, args: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
        """The same as ``agent.tools.call``."""
        return await self.tools.call(tool, args, **named)

    async def turn_end(self) -> None:
        """Calls that follow wait until all that came before have been answered."""
        await self._send("turn_end", _line({"op": "turn_end"}))

    async def bye(self, result: Any = _NOTHING) -> None:
        """Says that the agent asks for nothing more, and what its result is. Calls in flight are still answered.

        The program should then exit. At the end of an ``async with`` it is said without a result, if it was not before.
        """
        await self._send("bye", _bye(result))

    async def aclose(self) -> None:
        """Closes the channel. Calls that still wait end with :class:`Disconnected`. ``async with`` does this itself."""
        self._finish(Disconnected, "this agent was closed")
        for transport in self._transports:
            transport.close()
        await self._until(lambda: self._lost == len(self._transports))

    @property
    def stopping(self) -> Shutdown | None:
        """Set when the agent is to end: what any further call would raise."""
        return self._protocol.stopping()

    async def _start(
        self,
        tool: str,
        args: Mapping[str, Any],
        after: Iterable[str | AsyncCall] | None,
        meta: CallMeta | None,
    ) -> AsyncCall:
        call = AsyncCall(self, self._protocol.next_id(), tool)
        line = _tool_call(call, args, after, meta)
        async with self._turn:
            await self._until(self._protocol.may_open)
            self._protocol.check("tool_call")
            self._protocol.open(call)
            self._write("tool_call", line)
            try:
                await self._until(lambda: not self._full)
            except BaseException:
                call._abandon()
                raise
        return call

    def _cancel(self, call: AsyncCall) -> bool:
        if call.done():
            return False
        if self._protocol.cancel(call):
            # After a shutdown it is cancelled in any case, and without a supervisor it ends.
            with suppress(Disconnected, ProtocolError):
                self._write("cancel", _line({"op": "cancel", "tool_call_id": call.id}))
        return True

    async def _send(self, op: str, line: bytes) -> None:
        async with self._turn:
            self._write(op, line)
            await self._until(lambda: not self._full)

    def _write(self, op: str, line: bytes) -> None:
        self._protocol.check(op)
        self._transports[-1].write(line)  # type: ignore[attr-defined]

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def _finish(self, kind: type[AgentError], about: Any) -> None:
        for effect in self._protocol.end(kind, about):
            effect()
        self._changed.set()

    async def _attach(self, reads: int, writes: int) -> None:
        """Has the loop read and write the descriptors; it calls the methods below."""
        import asyncio
        import socket

        loop = asyncio.get_running_loop()
        if reads == writes:
            transport, _ = await loop.create_connection(lambda: self, sock=socket.socket(fileno=reads))  # type: ignore
            self._transports = [transport]
        else:
            reader, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(reads, "rb", 0))  # type: ignore
            writer, _ = await loop.connect_write_pipe(lambda: self, os.fdopen(writes, "wb", 0))  # type: ignore
            self._transports = [reader, writer]
        # A line counts as written when it is with the supervisor, and not when it is in a buffer.
        self._transports[-1].set_write_buffer_limits(0)  # type: ignore[attr-defined]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        pass

    def data_received(self, data: bytes) -> None:
        try:
            for line in self._splitter.feed(data):
                effect = self._protocol.receive(line)
                if effect is not None:
                    effect()
        except ProtocolError as cause:
            self._finish(ProtocolError, str(cause))
        self._changed.set()

    def eof_received(self) -> bool:
        self._finish(*_CLOSED)
        # A socket stays open in the other direction.
        return True

    def connection_lost(self, cause: Exception | None) -> None:
        self._lost += 1
        self._full = False
        if cause is not None:
            self._finish(Disconnected, f"the channel was lost: {cause}")
        self._changed.set()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._changed.set()


class _Connecting:
    """What ``aconnect`` returns: to be awaited, or entered."""

    def __init__(self, deltas: bool, channel: None | str | tuple[int, int]) -> None:
        self._deltas = deltas
        self._channel = channel

    async def _connect(self) -> AsyncAgent:
        agent = AsyncAgent(self._deltas)
        await agent._connect(*_take_channel(self._channel))
        return agent

    def __await__(self) -> Generator[Any, None, AsyncAgent]:
        return self._connect().__await__()

    async def __aenter__(self) -> AsyncAgent:
        self._agent = await self._connect()
        return self._agent

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._agent.__aexit__(kind, error, trace)


def aconnect(*, deltas: bool = False, channel: None | str | tuple[int, int] = None) -> _Connecting:
    """Takes the channel, says hello, and waits for the welcome, on an event loop (not on Windows)::

        async with toolyard_agent.aconnect() as agent:
            notes = await agent.call("Read", path="/data/notes.md")

    The parameters are those of :func:`connect`.
    """
    return _Connecting(deltas, channel)
