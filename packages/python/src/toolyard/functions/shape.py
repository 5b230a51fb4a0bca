"""The shape of a type: its JSON Schema, and how a JSON value becomes a value of it.

Values are converted strictly (``"5"`` is no ``int``), so that of a ``Union`` the first member that fits is meant.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
import typing
from collections import abc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal, Union, get_args, get_origin

JsonSchema = dict[str, Any]


class Misfit(ValueError):
    """A value is not of a type."""


@dataclass(frozen=True)
class Shape:
    """A JSON Schema, and the conversion of what fits it; the conversion raises :class:`Misfit` for what does not."""

    schema: JsonSchema
    load: Callable[[Any], Any]


def shape_of(annotation: Any, within: tuple[Any, ...] = ()) -> Shape:
    """The shape of a type; raises :class:`TypeError` for one that JSON has no values for.

    ``within`` are the types that contain this one.
    """
    plain = _PLAIN.get(annotation) if isinstance(annotation, abc.Hashable) else None
    if plain is not None:
        return plain
    origin, args = get_origin(annotation), get_args(annotation)
    make = _BY_ORIGIN.get(origin) if origin is not None else None
    if make is not None:
        return make(args, within)
    if isinstance(annotation, type):
        return _class(annotation, within)
    if hasattr(annotation, "__supertype__"):
        return shape_of(annotation.__supertype__, within)
    raise TypeError(f"there is no JSON Schema for {annotation!r}; give `schema=` to the decorator")


def _class(annotation: type, within: tuple[Any, ...]) -> Shape:
    if annotation in within:
        raise TypeError(f"{annotation.__name__} contains itself; give `schema=` to the decorator")
    within = (*within, annotation)
    if issubclass(annotation, enum.Enum):
        return _enum(annotation)
    if dataclasses.is_dataclass(annotation):
        return _dataclass(annotation, within)
    if is_typed_dict(annotation):
        return _typed_dict(annotation, within)
    if hasattr(annotation, "model_validate") and hasattr(annotation, "model_json_schema"):
        return _pydantic(annotation)
    make = _BY_ORIGIN.get(annotation)
    if make is not None:
        return make((), within)
    raise TypeError(f"there is no JSON Schema for {annotation.__name__}; give `schema=` to the decorator")


def _of_type(kind: type, name: str) -> Callable[[Any], Any]:
    def load(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise Misfit(f"{_shown(value)} is not of type {name}")
        return value

    return load


def _integer(value: Any) -> int:
    # 3.0 is an integer to JSON Schema.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    loaded: int = _of_type(int, "integer")(value)
    return loaded


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Misfit(f"{_shown(value)} is not of type number")
    return float(value)


def _null(value: Any) -> None:
    if value is not None:
        raise Misfit(f"{_shown(value)} is not null")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _annotated(args: tuple[Any, ...], within: tuple[Any, ...]) -> Shape:
    shape = shape_of(args[0], within)
    texts = (one if isinstance(one, str) else getattr(one, "description", None) for one in args[1:])
    description = next((text for text in texts if isinstance(text, str)), None)
    return shape if description is None else Shape({**shape.schema, "description": description}, shape.load)


def _union(args: tuple[Any, ...], within: tuple[Any, ...]) -> Shape:
    shapes = [shape_of(one, within) for one in args]

    def load(value: Any) -> Any:
        reasons = []
        for shape in shapes:
            try:
                return shape.load(value)
            except Misfit as reason:
                reasons.append(str(reason))
        raise Misfit(", and ".join(reasons))

    return Shape({"anyOf": [shape.schema for shape in shapes]}, load)


def _literal(args: tuple[Any, ...], _within: tuple[Any, ...]) -> Shape:
    return _one_of(list(args), list(args))


def _enum(annotation: type[enum.Enum]) -> Shape:
    members = list(annotation)
    if not all(member.value is None or isinstance(member.value, (bool, int, float, str)) for member in members):
        raise TypeError(f"{annotation.__name__} has values that JSON has not; give `schema=` to the decorator")
    return _one_of([member.value for member in members], members)


def _one_of(values: list[Any], meant: list[Any]) -> Shape:
    kinds = {bool: "boolean", int: "integer", str: "string", type(None): "null"}
    types = {kinds.get(type(value)) for value in values}
    schema: JsonSchema = {"enum": values}
    if len(types) == 1 and None not in types:
        schema["type"] = types.pop()

    def load(value: Any) -> Any:
        for one, means in zip(values, meant):
            # True is 1 to Python, and not to JSON.
            if one == value and isinstance(one, bool) == isinstance(value, bool):
                return means
        raise Misfit(f"{_shown(value)} is none of {', '.join(map(repr, values))}")

    return Shape(schema, load)


def _items(make: Callable[[list[Any]], Any], unique: bool) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]:
    def shape(args: tuple[Any, ...], within: tuple[Any, ...]) -> Shape:
        item = shape_of(args[0] if args else Any, within)
        schema: JsonSchema = {"type": "array", "items": item.schema, **({"uniqueItems": True} if unique else {})}

        def load(value: Any) -> Any:
            return make([_at(item, one, index) for index, one in enumerate(_array(value))])

        return Shape(schema, load)

    return shape


def _tuple(args: tuple[Any, ...], within: tuple[Any, ...]) -> Shape:
    if not args or args[-1] is Ellipsis:
        return _items(tuple, False)(args[:1], within)
    shapes = [] if args == ((),) else [shape_of(one, within) for one in args]
    schema: JsonSchema = {"type": "array", "minItems": len(shapes), "maxItems": len(shapes)}
    if shapes:
        schema["prefixItems"] = [shape.schema for shape in shapes]

    def load(value: Any) -> Any:
        if len(_array(value)) != len(shapes):
            raise Misfit(f"{_shown(value)} has not {len(shapes)} items")
        return tuple(_at(shape, one, index) for index, (shape, one) in enumerate(zip(shapes, value)))

    return Shape(schema, load)


def _array(value: Any) -> list[Any]:
    loaded: list[Any] = _of_type(list, "array")(value)
    return loaded


def _at(shape: Shape, value: Any, place: int | str) -> Any:
    try:
        return shape.load(value)
    except Misfit as reason:
        raise Misfit(f"{place}: {reason}") from None


def _mapping(args: tuple[Any, ...], within: tuple[Any, ...]) -> Shape:
    key, item = args if args else (str, Any)
    if key not in (str, Any):
        raise TypeError(f"the names in a JSON object are text, and not {key!r}")
    shape = shape_of(item, within)

    def load(value: Any) -> Any:
        return {name: _at(shape, one, name) for name, one in _of_type(dict, "object")(value).items()}

    return Shape({"type": "object", "additionalProperties": shape.schema or True}, load)


def _dataclass(annotation: type, within: tuple[Any, ...]) -> Shape:
    hints = typing.get_type_hints(annotation, include_extras=True)
    fields = [field for field in dataclasses.fields(annotation) if field.init]
    shapes = {field.name: with_default(shape_of(hints[field.name], within), field.default) for field in fields}
    none = dataclasses.MISSING
    required = {field.name for field in fields if field.default is none and field.default_factory is none}

    def make(values: dict[str, Any]) -> Any:
        try:
            return annotation(**values)
        except ValueError as reason:
            # Its own check of its fields.
            raise Misfit(str(reason)) from reason

    return fields_shape(shapes, required, make)


def _typed_dict(annotation: Any, within: tuple[Any, ...]) -> Shape:
    hints = typing.get_type_hints(annotation, include_extras=True)
    required = set(annotation.__required_keys__)
    shapes = {}
    for name, hint in hints.items():
        # Texts of annotations hide these from `__required_keys__`.
        while getattr(get_origin(hint), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
            kind, (hint, *_) = get_origin(hint)._name, get_args(hint)
            required = (
                required | {name} if kind == "Required" else required - {name} if kind == "NotRequired" else required
            )
        shapes[name] = shape_of(hint, within)
    return fields_shape(shapes, required, dict)


def fields_shape(shapes: dict[str, Shape], required: set[str], make: Callable[[dict[str, Any]], Any]) -> Shape:
    """An object with these fields and no others."""

    def load(value: Any) -> Any:
        given = _of_type(dict, "object")(value)
        unknown, missing = set(given) - set(shapes), required - set(given)
        if unknown or missing:
            raise Misfit(f"{', '.join(sorted(unknown or missing))} is {'not known' if unknown else 'missing'}")
        return make({name: _at(shapes[name], one, name) for name, one in given.items()})

    schema: JsonSchema = {
        "type": "object",
        "properties": {name: shape.schema for name, shape in shapes.items()},
        **({"required": [name for name in shapes if name in required]} if required else {}),
        "additionalProperties": False,
    }
    return Shape(schema, load)


def with_default(shape: Shape, default: Any) -> Shape:
    """The same shape, whose schema has the default if that is a simple value."""
    default = default.value if isinstance(default, enum.Enum) else default
    if default is not None and not isinstance(default, (bool, int, float, str)):
        return shape
    return Shape({**shape.schema, "default": default}, shape.load)


def is_typed_dict(annotation: Any) -> bool:
    """Whether it is a class made with ``TypedDict``."""
    return isinstance(annotation, type) and issubclass(annotation, dict) and hasattr(annotation, "__required_keys__")


def _pydantic(annotation: Any) -> Shape:
    def load(value: Any) -> Any:
        try:
            return annotation.model_validate(value)
        except ValueError as reason:
            raise Misfit(str(reason)) from None

    return Shape(annotation.model_json_schema(), load)


def _path(value: Any) -> Path:
    return Path(_of_type(str, "string")(value))


_PLAIN: dict[Any, Shape] = {
    Any: Shape({}, lambda value: value),
    object: Shape({}, lambda value: value),
    None: Shape({"type": "null"}, _null),
    type(None): Shape({"type": "null"}, _null),
    bool: Shape({"type": "boolean"}, _of_type(bool, "boolean")),
    int: Shape({"type": "integer"}, _integer),
    float: Shape({"type": "number"}, _number),
    str: Shape({"type": "string"}, _of_type(str, "string")),
    Path: Shape({"type": "string"}, _path),
    PurePath: Shape({"type": "string"}, _path),
}

_BY_ORIGIN: dict[Any, Callable[[tuple[Any, ...], tuple[Any, ...]], Shape]] = {
    typing.Annotated: _annotated,
    Union: _union,
    Literal: _literal,
    tuple: _tuple,
    set: _items(set, True),
    frozenset: _items(frozenset, True),
    **{kind: _items(list, False) for kind in (list, abc.Sequence, abc.Iterable, abc.Collection)},
    **{kind: _mapping for kind in (dict, abc.Mapping, abc.MutableMapping)},
}
if sys.version_info >= (3, 10):
    import types

    _BY_ORIGIN[types.UnionType] = _union
