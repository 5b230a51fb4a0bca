"""The parameters of a function: their JSON Schema, and its arguments as the types that it declares."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .context import Context
from .docstring import read_docstring
from .shape import JsonSchema, Shape, fields_shape, shape_of, with_default

_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class Signature:
    """What a function takes."""

    description: str
    schema: JsonSchema
    _load: Callable[[Any], dict[str, Any]]
    _by_place: tuple[str, ...]
    _context: str | None

    def bind(self, args: Any, context: Context) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, to be given by place and by name; raises ``Misfit`` for what does not fit."""
        named = self._load(args)
        if self._context is not None:
            named[self._context] = context
        # What follows a parameter that is left out cannot be given by place.
        placed = [named.pop(name) for name in self._by_place if name in named]
        return placed, named


def read_signature(function: Callable[..., Any], schema: Mapping[str, Any] | None = None) -> Signature:
    """Reads type hints and docstring; with ``schema`` the arguments are given as they come."""
    plain, given = _without_given(function)
    description, about = read_docstring(plain)
    hints = _hints(plain, strict=schema is None)
    parameters = list(inspect.signature(function).parameters.values())
    context = next((one.name for one in parameters if _is_context(hints.get(one.name, one.annotation))), None)
    # What a partial function is given by name is nothing that a model may know or change.
    parameters = [one for one in parameters if one.name != context and one.name not in given]
    by_place = tuple(one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_ONLY)
    if schema is not None:
        return Signature(description, dict(schema), _as_they_come, by_place, context)
    shape = _shape(parameters, hints, about)
    return Signature(description, shape.schema, shape.load, by_place, context)


def _as_they_come(args: Any) -> dict[str, Any]:
    return dict(args)


def _without_given(function: Any) -> tuple[Any, set[str]]:
    """The function within a partial one, and what that gives it by name."""
    given: set[str] = set()
    while isinstance(function, functools.partial):
        given |= set(function.keywords)
        function = function.func
    return function, given


def _is_context(hint: Any) -> bool:
    if isinstance(hint, str):
        return hint.rpartition(".")[2] == Context.__name__
    return hint is Context or Context in typing.get_args(hint)


def _hints(function: Any, *, strict: bool) -> dict[str, Any]:
    if isinstance(function, type):
        target = vars(function).get("__init__", function)
    else:
        target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as reason:
        if not strict:
            return {}
        raise TypeError(
            f"the type hints of {function!r} cannot be read: {reason}. What they name has to be at the top of its "
            "module, and imported for more than type checkers; or give `schema=` to the decorator"
        ) from reason


def _shape(parameters: list[inspect.Parameter], hints: dict[str, Any], about: dict[str, str]) -> Shape:
    shapes: dict[str, Shape] = {}
    required: set[str] = set()
    rest: Shape | None = None
    for one in parameters:
        shape = shape_of(hints.get(one.name, Any))
        if one.kind is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError(f"*{one.name} has no name that a model could give; make it a list")
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            rest = shape
            continue
        if one.name in about and "description" not in shape.schema:
            shape = Shape({**shape.schema, "description": about[one.name]}, shape.load)
        shapes[one.name] = shape if one.default is _EMPTY else with_default(shape, one.default)
        if one.default is _EMPTY:
            required.add(one.name)
    return fields_shape(shapes, required, dict) if rest is None else _with_rest(shapes, required, rest)


def _with_rest(shapes: dict[str, Shape], required: set[str], rest: Shape) -> Shape:
    known = fields_shape(shapes, required, dict)

    def load(value: Any) -> Any:
        more = {name: rest.load(one) for name, one in value.items() if name not in shapes}
        return {**known.load({name: one for name, one in value.items() if name in shapes}), **more}

    return Shape({**known.schema, "additionalProperties": rest.schema or True}, load)
