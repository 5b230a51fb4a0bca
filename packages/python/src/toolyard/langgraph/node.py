"""The node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Union, cast

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables.config import RunnableConfig, get_config_list
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode as OwnToolNode
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime

from ..aio.engine import AsyncEngine
from ..aio.session import AsyncSession
from ..aio.waiting import result_of
from ..calls import Call
from ..core import Core
from ..engine import Engine
from ..errors import Refused
from ..outcome import Outcome, Turn
from ..place import Place
from ..session import Session
from ..wire.turn import TurnState
from .adapt import as_function, is_command
from .content import message_of, with_what_was_changed
from .kept import KeptResults
from .requests import Request, requests_of
from .sessions import OneSession, Sessions

_DEFAULT: Any = object()
Key = Callable[[ToolCall], Union[str, None]]


class ToolNode(OwnToolNode):
    """A drop-in for ``langgraph.prebuilt.ToolNode``: LangChain tools and functions, run by the engine.

    ``engine`` is one that runs; each thread of the graph (``thread_id``) has a session of its own in it, which may
    call these tools alone. With ``session`` in its place all threads share that one, and its other tools may be called too.

    ``options`` has for each tool what ``@toolyard.tool`` takes: ``{"send": {"side_effects": "write", "timeout": 30}}``.
    LangChain's tools declare no side effects: one of which nothing is said is taken to only read, overlaps others, is
    asked about by nobody, and is tried once. ``key`` gives a call its
    idempotency key, ``lambda call: call["id"]`` for example: calls of a tool with one key run once, also when the graph
    runs the node again after an interrupt.

    A failed call is a ``ToolMessage`` with the status ``error``. Of an exception that is no ``ToolError`` or
    ``ToolException`` the model learns nothing but that it happened. With ``handle_tool_errors`` exceptions of tools are
    treated as LangGraph does. ``InjectedState``, ``InjectedStore``, ``ToolRuntime``, ``Command``, artifacts,
    ``interrupt()`` and ``wrap_tool_call`` work as they do there.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        engine: Engine | AsyncEngine | None = None,
        session: Session | AsyncSession | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        key: Key | None = None,
        handle_tool_errors: Any = _DEFAULT,
        **more: Any,
    ) -> None:
        raises = handle_tool_errors is not _DEFAULT
        super().__init__(tools, handle_tool_errors=handle_tool_errors if raises else False, **more)
        unknown = set(options or {}) - set(self.tools_by_name)
        if unknown:
            raise ValueError(f"there are options for tools that the node has not: {', '.join(sorted(unknown))}")
        core, place = _where(engine, session)
        self._core = core
        self._requests = requests_of(core)
        self._key = key
        self._kept = KeptResults()
        self._sessions = Sessions(core, list(self.tools_by_name)) if place is None else OneSession(place)
        functions = [
            as_function(one, (options or {}).get(name, {}), self._requests, raises=raises)
            for name, one in self.tools_by_name.items()
        ]
        self._registered = [core.register(function) for function in functions]

    def _func(self, input: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        requests, input_type, thread = self._prepare(input, config, runtime, None)
        with self._session(thread) as (place, opened):
            for answer in [*self._registered, opened]:
                answer.result()
            state, finish = self._begin(place, requests)
            try:
                turn = state.ended.result()
            except BaseException:
                self._core.cancel(state)
                raise
        return self._combine_tool_outputs(finish(turn), input_type)

    async def _afunc(self, input: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        loop = asyncio.get_running_loop()
        requests, input_type, thread = self._prepare(input, config, runtime, loop)
        with self._session(thread) as (place, opened):
            for answer in [*self._registered, opened]:
                await result_of(answer)
            state, finish = self._begin(place, requests)
            turn = await result_of(state.ended, partial(self._core.cancel, state))
        return self._combine_tool_outputs(finish(turn), input_type)

    @contextmanager
    def _session(self, thread: str) -> Iterator[tuple[Place, Future[Any]]]:
        """The session of a thread of the graph, and the answer to its opening."""
        place, opened = self._sessions.enter(thread)
        try:
            yield place, opened
        except Refused as error:
            if error.code == "session_closed":
                self._sessions.renew(thread, place)
            raise
        finally:
            self._sessions.leave(thread)

    def _prepare(
        self, input: Any, config: RunnableConfig, runtime: Runtime[Any], loop: asyncio.AbstractEventLoop | None
    ) -> tuple[list[Request], Any, str]:
        """The calls of the last message, each with what its tool needs of the graph."""
        calls, input_type = self._parse_input(input)
        ids = _unique([call["id"] for call in calls])
        requests = []
        for call, call_id, one in zip(calls, ids, get_config_list(config, len(calls))):
            tool_runtime = self._runtime(input, call, one, runtime)
            run = partial(self._run_with, self._run_one, call, input_type, tool_runtime)
            arun = partial(self._run_with, self._arun_one, call, input_type, tool_runtime)
            requests.append(Request(dict(call), call_id, run, arun, loop))
        return requests, input_type, str(config.get("configurable", {}).get("thread_id", ""))

    def _runtime(self, input: Any, call: ToolCall, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        return ToolRuntime(
            state=self._extract_state(input, config),
            tool_call_id=call["id"],
            config=config,
            context=runtime.context,
            store=runtime.store,
            stream_writer=runtime.stream_writer,
            tools=list(self.tools_by_name.values()),
            execution_info=runtime.execution_info,
            server_info=runtime.server_info,
        )

    @staticmethod
    def _run_with(run: Callable[..., Any], call: ToolCall, input_type: Any, runtime: Any, args: dict[str, Any]) -> Any:
        # The arguments as they came to the function: who approves may have changed them.
        return run({**call, "args": args}, input_type, runtime)

    def _begin(self, place: Place, requests: list[Request]) -> tuple[TurnState, Callable[[Turn], list[Any]]]:
        """Sends the calls, and gives what is to be awaited and what is then made of it."""
        keys = [None if self._key is None else self._key(cast(ToolCall, request.call)) for request in requests]
        calls = [
            Call(request.call["name"], request.call["args"], key=key, id=request.id)
            for request, key in zip(requests, keys)
        ]
        names: list[str] = []

        def named(turn: str) -> None:
            names.append(turn)
            self._requests.add(turn, requests)

        try:
            state, _ = self._core.begin(place, calls, more=False, deltas=False, named=named)
        except BaseException:
            self._requests.remove(names[0], requests)
            raise
        state.ended.add_done_callback(lambda _: self._requests.remove(state.name, requests))
        return state, partial(self._finish, place, requests, keys)

    def _finish(self, place: Place, requests: list[Request], keys: list[str | None], turn: Turn) -> list[Any]:
        """What the graph is given; raises what is for the graph."""
        for request in requests:
            if request.error is not None:
                raise request.error
        return [
            self._output(place.session, request, key, outcome)
            for request, key, outcome in zip(requests, keys, turn.outcomes)
        ]

    def _output(self, session: str, request: Request, key: str | None, outcome: Outcome) -> Any:
        name = request.call["name"]
        if not outcome.ok:
            said = request.result
            handled = isinstance(said, ToolMessage) and said.status == "error"
            return said if handled else message_of(outcome, request.call)
        if request.result is None:
            # It ran before, under the same key.
            result = self._kept.find(session, name, key)
        else:
            result = request.result
            self._kept.keep(session, name, key, result)
        if result is None:
            return message_of(outcome, request.call)
        if is_command(result):
            return result
        message = result[0] if isinstance(result, list) and len(result) == 1 else result
        if not isinstance(message, ToolMessage):
            return result
        update = {"tool_call_id": request.call["id"]}
        return with_what_was_changed(message, outcome).model_copy(update=update)


def _where(engine: Any, session: Any) -> tuple[Core, Place | None]:
    if (engine is None) == (session is None):
        raise TypeError("a node needs an engine or a session, and not both")
    if isinstance(engine, (Engine, AsyncEngine)):
        return engine._running(), None
    if isinstance(session, AsyncSession):
        return session._core, session._place
    core = getattr(getattr(session, "_backend", None), "_core", None)
    if not isinstance(core, Core):
        raise TypeError("functions are tools of an engine that this program has started, and of no server")
    return core, session._place


def _unique(ids: list[Any]) -> list[str]:
    """Ids that differ; a message may have one twice, or none."""
    given: list[str] = []
    for number, one in enumerate(ids):
        name = str(one) if one else f"call_{number}"
        given.append(name if name not in given else f"{name}#{number}")
    return given
