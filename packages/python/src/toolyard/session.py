"""A session: whose calls share their lease, budgets, keys and approvals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from .calls import BatchEntry, Call, make_call
from .errors import Closed
from .outcome import Delta, Outcome, Turn
from .place import Place
from .running import GrowingTurn, RunningTurn

Format = Literal["neutral", "openai-chat", "openai-responses", "anthropic", "gemini"]


class Backend(ABC):
    """What a session needs of where it is: a program that this one has started, or a server."""

    @abstractmethod
    def respond(
        self, place: Place, response: Any, *, format: str | None, to: str | None, deltas: bool
    ) -> RunningTurn: ...

    @abstractmethod
    def run(self, place: Place, calls: Iterable[BatchEntry], *, deltas: bool) -> RunningTurn: ...

    @abstractmethod
    def grow(self, place: Place, *, deltas: bool) -> GrowingTurn: ...

    @abstractmethod
    def fork(self, place: Place, fields: dict[str, Any]) -> Place: ...

    @abstractmethod
    def definitions(self, place: Place, to: str) -> list[dict[str, Any]]: ...

    @abstractmethod
    def close_session(self, place: Place) -> None: ...


class Session:
    """Makes calls, and runs those of a model. Made by ``engine.session(…)``; may be used by all threads.

    ::

        with engine.session("order-17") as session:
            answer = client.messages.create(tools=session.definitions("anthropic"), …)
            turn = session.dispatch(answer)
            messages += [{"role": "assistant", "content": answer.content}, *turn.messages]
    """

    def __init__(self, backend: Backend, place: Place) -> None:
        self._backend = backend
        self._place = place
        self._closed = False

    @property
    def name(self) -> str:
        return self._place.session

    @property
    def agent(self) -> str:
        """The path of the agent that makes the calls: ``root``, or that of a fork."""
        return self._place.agent

    def __repr__(self) -> str:
        return f"<session {self.name} {self.agent}>"

    def _open_place(self) -> Place:
        # A call would open another session of this name, without the bounds of this one.
        if self._closed:
            raise Closed(f"the session {self.name} was closed")
        return self._place

    def dispatch(
        self,
        response: Any,
        *,
        format: Format | None = None,
        to: Format | None = None,
        on_delta: Callable[[Delta], object] | None = None,
    ) -> Turn:
        """Runs the calls of a model's answer in the order that the model meant, and waits for all of them.

        ``response`` is what the provider's API has returned, whole or its message alone: an object, or an SDK's object.
        ``format`` is detected if it is left out; ``to`` is that of ``turn.messages``. A failed call is a message for
        the model and an outcome, and never an exception.
        """
        return self._finish(self.start(response, format=format, to=to, deltas=on_delta is not None), on_delta)

    def start(
        self, response: Any, *, format: Format | None = None, to: Format | None = None, deltas: bool = False
    ) -> RunningTurn:
        """:meth:`dispatch` without the waiting."""
        return self._backend.respond(self._open_place(), response, format=format, to=to, deltas=deltas)

    def call(self, tool: str | Call, args: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """Calls a tool, and waits for what it gives; raises :class:`toolyard.CallError` if that fails.

        ::

            text = session.call("Read", path="notes.md")
            text = session.call("Read", {"path": "notes.md"})
            session.call(Call("charge", {"amount": 5}, key="order-17", timeout=30))
        """
        turn = self._backend.run(self._open_place(), [make_call(tool, args, named)], deltas=False)
        return self._finish(turn).outcomes[0].unwrap()

    def batch(
        self,
        calls: Iterable[BatchEntry],
        *,
        raise_errors: bool = False,
        on_delta: Callable[[Delta], object] | None = None,
    ) -> list[Any]:
        """Calls tools together, with the effect of one after another; a value or a ``CallError`` for each, in order.

        ::

            a, b = session.batch([("Read", {"path": "a"}), Call("Read", {"path": "b"}, timeout=5)])

        With ``raise_errors`` the first error is raised, when all calls have ended.
        """
        outcomes = self.outcomes(calls, on_delta=on_delta)
        return [outcome.unwrap() if raise_errors else outcome.value_or_error for outcome in outcomes]

    def outcomes(
        self, calls: Iterable[BatchEntry], *, on_delta: Callable[[Delta], object] | None = None
    ) -> list[Outcome]:
        """:meth:`batch`, with what the engine knows of each call."""
        turn = self._backend.run(self._open_place(), list(calls), deltas=on_delta is not None)
        return self._finish(turn, on_delta).outcomes

    def turn(self, *, deltas: bool = False) -> GrowingTurn:
        """A turn to which calls are added while others run."""
        return self._backend.grow(self._open_place(), deltas=deltas)

    def fork(
        self,
        name: str | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        only_tools: Sequence[str] | None = None,
    ) -> Session:
        """A sub-agent: the same session for an agent that may do less."""
        fields = {"name": name, "capabilities": capabilities, "only_tools": only_tools}
        given = {field: value for field, value in fields.items() if value is not None}
        return Session(self._backend, self._backend.fork(self._open_place(), given))

    def definitions(
        self, to: Literal["neutral", "openai-chat", "openai-responses", "anthropic", "gemini", "mcp"] = "neutral"
    ) -> list[dict[str, Any]]:
        """The tools that may be called here, as the provider's API takes them."""
        return self._backend.definitions(self._open_place(), to)

    def close(self) -> None:
        """Cancels what runs in the session, and lets go of it. Does nothing for a fork, which ends with its session."""
        if self.agent == "root":
            self._closed = True
            self._backend.close_session(self._place)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _finish(self, turn: RunningTurn, on_delta: Callable[[Delta], object] | None = None) -> Turn:
        try:
            if on_delta is not None:
                for delta in turn.deltas():
                    on_delta(delta)
            return turn.result()
        except BaseException:
            # Who was interrupted does not look at what comes of it.
            turn.cancel()
            raise
