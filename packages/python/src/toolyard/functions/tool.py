"""``@tool``: a function that a model may call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar, cast, get_args, overload

from .context import Context
from .signature import read_signature

SideEffects = Literal["none", "read", "write", "execute", "network"]
SIDE_EFFECTS: tuple[SideEffects, ...] = get_args(SideEffects)
F = TypeVar("F", bound=Callable[..., Any])


class Tool(Generic[F]):
    """A function with what the engine has to know of it. It can still be called as the function that it is."""

    name: str
    is_async: bool
    definition: dict[str, Any]
    """What is registered, as in the line protocol."""

    def __init__(
        self,
        function: F,
        *,
        name: str | None,
        schema: Mapping[str, Any] | None,
        description: str | None,
        **options: Any,
    ) -> None:
        if inspect.isgeneratorfunction(_plain(function)) or inspect.isasyncgenfunction(_plain(function)):
            raise TypeError(
                f"{name_of(function)} yields: return a list, and give output before the end to `Context.emit`"
            )
        self.function = function
        functools.update_wrapper(cast(Any, self), function, updated=())
        self._signature = read_signature(function, schema)
        self.name = name or name_of(function)
        if self.name == "<lambda>":
            raise TypeError("a lambda has no name: give one to the decorator, `name=`")
        self.is_async = _is_async(function)
        self.definition = {
            "name": self.name,
            "description": description if description is not None else self._signature.description,
            "input_schema": self._signature.schema,
            **{option: value for option, value in options.items() if value is not None},
        }

    @property
    def __call__(self) -> F:
        return self.function

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if "self" not in self._signature.schema.get("properties", {}):
            return self
        raise TypeError(f"{self.name} is a method: make a tool of a bound one, tool(owner.{self.name}, side_effects=…)")

    def bind(self, args: Any, context: Context) -> Callable[[], Any]:
        """The invocation of the function with these arguments; raises ``Misfit`` if they are not what it takes."""
        placed, named = self._signature.bind(args, context)
        return functools.partial(self.function, *placed, **named)


@overload
def tool(
    *,
    side_effects: SideEffects,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    concurrency: Literal["read", "serial", "concurrent"] | None = None,
    recursive: bool | None = None,
    idempotent: bool | None = None,
    timeout: float | None = None,
    grace: float | None = None,
    attempts: int | None = None,
    max_concurrency: int | None = None,
    cost: int | None = None,
    version: str | None = None,
) -> Callable[[F], Tool[F]]: ...
@overload
def tool(
    function: F,
    /,
    *,
    side_effects: SideEffects,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    concurrency: Literal["read", "serial", "concurrent"] | None = None,
    recursive: bool | None = None,
    idempotent: bool | None = None,
    timeout: float | None = None,
    grace: float | None = None,
    attempts: int | None = None,
    max_concurrency: int | None = None,
    cost: int | None = None,
    version: str | None = None,
) -> Tool[F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    side_effects: SideEffects | None = None,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    concurrency: Literal["read", "serial", "concurrent"] | None = None,
    recursive: bool | None = None,
    idempotent: bool | None = None,
    timeout: float | None = None,
    grace: float | None = None,
    attempts: int | None = None,
    max_concurrency: int | None = None,
    cost: int | None = None,
    version: str | None = None,
) -> Any:
    """Makes a tool of a function or a coroutine function.

    ::

        @tool(side_effects="none")
        def add(a: int, b: int = 0) -> int:
            "Adds two numbers."
            return a + b

        @tool(side_effects="write", timeout=30)
        async def charge(amount: Annotated[float, "in euros"], context: Context) -> Receipt:
            return await bank.charge(amount, key=context.key)

        find = tool(store.find, side_effects="read")

    ``side_effects`` is the worst that the tool can do, and must be said: it decides whether calls overlap and whether
    somebody is asked. The schema is made of the type hints, the description is the docstring; ``schema`` takes the place
    of both hints and conversion.

    ``timeout`` and ``grace`` are in seconds: of each attempt, and how long it may go on after its timeout. The rest is
    as in the line protocol, ``concurrency`` being its ``class``.
    """
    if side_effects not in SIDE_EFFECTS:
        raise TypeError(_unsaid("a tool" if function is None else name_of(function), side_effects))
    options = {
        "side_effects": side_effects,
        "class": concurrency,
        "recursive": recursive,
        "idempotent": idempotent,
        "timeout_ms": _milliseconds(timeout),
        "grace_ms": _milliseconds(grace),
        "attempts": attempts,
        "max_concurrency": max_concurrency,
        "cost": cost,
        "version": version,
    }

    def make(function: F) -> Tool[F]:
        return Tool(function, name=name, schema=schema, description=description, **options)

    return make if function is None else make(function)


def as_tool(one: Any) -> Tool[Any]:
    """What ``@tool`` has made of a function; of one that is given as it is, nobody knows what it can do."""
    if isinstance(one, Tool):
        return one
    if not callable(one):
        raise TypeError(f"{one!r} is no function, and nothing that @tool has made")
    raise TypeError(_unsaid(name_of(one), None))


def tools_of(given: Iterable[Any]) -> list[Tool[Any]]:
    """Tools whose names differ."""
    tools = [as_tool(one) for one in given]
    names = [one.name for one in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"several tools have the name {', '.join(twice)}: give others to the decorator, `name=`")
    return tools


def name_of(function: Any) -> str:
    function = _plain(function)
    return str(getattr(function, "__name__", type(function).__name__))


def _plain(function: Any) -> Any:
    """The function within a partial one."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _unsaid(name: str, given: object) -> str:
    what = "does not say what it can do" if given is None else f"has the side effects {given!r}, which there are not"
    return (
        f'{name} {what}: write @tool(side_effects="…") with the worst of "none" (computes), "read", "write", '
        '"execute" (runs programs) and "network"'
    )


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))


def _is_async(function: Any) -> bool:
    function = _plain(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))
