"""The engine, for asyncio."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from ..core import Core
from ..errors import Closed, ToolyardError
from ..events import OnEvent
from ..functions.loops import Loop
from ..functions.tool import Tool, tools_of
from ..options import Options, StrPath
from ..place import Place
from ..question import Approve
from .session import AsyncSession
from .waiting import result_of

START_S = 60.0


class Opening:
    """A session that is to be opened: awaited, or entered."""

    def __init__(self, core: Core, place: Place, bounds: Mapping[str, Any]) -> None:
        self._core = core
        self._place = place
        self._bounds = bounds
        self._session: AsyncSession | None = None

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._open().__await__()

    async def _open(self) -> AsyncSession:
        core, name = self._core, self._place.session
        # Who gives up meanwhile has no session that could be closed.
        await result_of(core.request("open", session=name, **self._bounds), lambda: core.request("close", session=name))
        self._session = AsyncSession(self._core, self._place)
        return self._session

    async def __aenter__(self) -> AsyncSession:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()


class AsyncEngine:
    """The whole engine, in a program that this one starts. What it takes is as in :class:`toolyard.Engine`.

    ::

        async with AsyncEngine(tools=[add], approve=ask) as engine, engine.session() as session:
            turn = await session.dispatch(answer_of_the_model)

    Coroutine functions run on the event loop in which it was entered, all others on threads.
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
        self._numbers = itertools.count(1)
        self.version = ""
        """That of the program."""
        self.epoch = ""
        """The name of this life of the engine."""

    async def start(self) -> AsyncEngine:
        """Starts the program, and waits until it has taken the tools. ``async with`` does this itself."""
        if self._core is not None or self._closed:
            raise RuntimeError("an engine is started once")
        loop = Loop(asyncio.get_running_loop())
        self._core = core = await asyncio.to_thread(Core, self._options, loop)
        try:
            answers = [result_of(answer) for answer in core.greet()]
            welcome, *_ = await asyncio.wait_for(asyncio.gather(*answers), START_S)
        except BaseException:
            self._closed = True
            await asyncio.to_thread(core.end)
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
    ) -> Opening:
        """Opens a session: ``await engine.session("s1")``, or ``async with engine.session("s1") as session``."""
        bounds = {"capabilities": capabilities, "confirmations": confirmations, "limits": limits}
        return Opening(self._running(), Place(name or f"session-{next(self._numbers)}"), bounds)

    async def register(self, tool: Tool[Any]) -> None:
        """Makes one more function a tool; one of the same name is replaced."""
        await result_of(self._running().register(tool))

    async def unregister(self, name: str) -> None:
        """Takes a function away. Calls of it that run go on."""
        await result_of(self._running().unregister(name))

    async def close(self, timeout: float = 30.0) -> None:
        """Ends the program: waits so many seconds for turns that are open, then cancels them, which takes 5 s at most.

        A program that does not end then is made to. Does nothing a second time.
        """
        core, self._closed = self._core, True
        if core is None:
            return
        self._core = None
        try:
            if timeout > 0:
                await asyncio.wait_for(result_of(core.bye()), timeout)
        except (asyncio.TimeoutError, ToolyardError):
            # Who waits for turns that went with it hears why.
            pass
        finally:
            await asyncio.to_thread(core.end)

    async def __aenter__(self) -> AsyncEngine:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.close() if error is None else self.close(timeout=0))

    def _running(self) -> Core:
        if self._core is None:
            raise Closed(
                "the engine was closed" if self._closed else "the engine is not started: use it in `async with`"
            )
        return self._core
