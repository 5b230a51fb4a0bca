"""The engine, for programs with threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any

from .core import Core
from .errors import Closed, Disconnected
from .events import OnEvent
from .functions.loops import Loop
from .functions.tool import Tool, tools_of
from .local import LocalBackend
from .options import Options, StrPath
from .place import Place
from .question import Approve
from .session import Session

START_S = 60.0


class Engine:
    """The whole engine, in a program that this one starts: order, limits, retries, approval, keys, events.

    ::

        @tool(side_effects="none")
        def add(a: int, b: int) -> int:
            "Adds two numbers."
            return a + b

        with Engine(tools=[add], approve=ask) as engine, engine.session() as session:
            turn = session.dispatch(answer_of_the_model)

    ``tools`` are what ``@tool`` has made of functions. ``config`` is a ``toolyard.toml``, ``workspace`` the
    directory of its file tools. ``approve`` is asked about calls that need approval (a :class:`toolyard.Question`, to
    be answered by ``True``, ``False``, ``"always"``, ``"never"``, ``Edit(arguments)`` or ``Deny(reason)``); without it they are
    refused. ``on_event`` is told of events, of the kinds in ``events`` or of all. ``program`` is the program, found by itself if
    it is left out; ``args`` are more of its arguments, ``env`` is added to its environment. At most ``threads``
    functions run on threads at once.

    It may be used by all threads. The end of the block waits for turns that are open (see :meth:`close`).
    """

    def __init__(
        self,
        tools: Iterable[Tool[Any]] = (),
        *,
        config: StrPath | None = None,
        workspace: StrPath | None = None,
        approve: Approve | None = None,
        on_event: OnEvent | None = None,
        events: bool | Sequence[str] = True,
        program: StrPath | Sequence[StrPath] | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        threads: int = 32,
    ) -> None:
        self._options = Options(
            tools_of(tools), config, workspace, approve, on_event, events, program, tuple(args), env, threads
        )
        self._core: Core | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.version = ""
        """That of the program."""
        self.epoch = ""
        """The name of this life of the engine."""

    def start(self) -> Engine:
        """Starts the program, and waits until it has taken the tools. ``with`` does this itself."""
        if self._core is not None or self._closed:
            raise RuntimeError("an engine is started once")
        self._core = core = Core(self._options, Loop())
        try:
            welcome = [answer.result(START_S) for answer in core.greet()][0]
        except BaseException:
            self._closed = True
            core.end()
            raise
        self.version, self.epoch = welcome.get("version", ""), welcome.get("epoch", "")
        return self

    def session(
        self,
        name: str | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        confirmations: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> Session:
        """Opens a session; each of its bounds can only narrow what the configuration says.

        ::

            engine.session("s1", capabilities={"tools": ["Read"], "fs": ["r:docs"]}, limits={"session_calls": 100})
        """
        core = self._running()
        name = name or f"session-{next(self._numbers)}"
        core.request(
            "open", session=name, capabilities=capabilities, confirmations=confirmations, limits=limits
        ).result()
        return Session(LocalBackend(core), Place(name))

    def register(self, tool: Tool[Any]) -> None:
        """Makes one more function a tool; one of the same name is replaced."""
        self._running().register(tool).result()

    def unregister(self, name: str) -> None:
        """Takes a function away. Calls of it that run go on."""
        self._running().unregister(name).result()

    def close(self, timeout: float = 30.0) -> None:
        """Ends the program: waits so many seconds for turns that are open, then cancels them, which takes 5 s at most.

        A program that does not end then is made to. Does nothing a second time.
        """
        with self._lock:
            core, self._core, self._closed = self._core, None, True
        if core is None:
            return
        try:
            if timeout > 0:
                wait([_said(core)], timeout)
        finally:
            core.end()

    def __enter__(self) -> Engine:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Who leaves by an exception does not wait for what runs.
        self.close() if error is None else self.close(timeout=0)

    def _running(self) -> Core:
        if self._core is None:
            raise Closed("the engine was closed" if self._closed else "the engine is not started: use it in a `with`")
        return self._core


def _said(core: Core) -> Future[Any]:
    try:
        return core.bye()
    except Disconnected:
        # Who waits for turns that went with it hears why.
        return _done()


def _done() -> Future[Any]:
    done: Future[Any] = Future()
    done.set_result(None)
    return done
