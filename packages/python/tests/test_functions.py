"""Type hints and docstrings become schemas, and arguments become values of the types."""

from __future__ import annotations

import copy
import enum
import functools
import pickle
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict, Union

from support import setUpModule, tearDownModule

from toolyard import AsyncEngine, Context, Engine, Image, ProgramDied, Refused, ToolError, tool
from toolyard.errors import call_error
from toolyard.functions.content import fields_of, value_of
from toolyard.functions.docstring import read_docstring
from toolyard.functions.shape import Misfit, shape_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: Annotated[float, "upwards"] = 0.0
    tags: list[str] = field(default_factory=list)


class Options(TypedDict, total=False):
    depth: int
    mode: Literal["fast", "slow"]


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("it is odd")


@dataclass
class Node:
    children: list[Node]


UserId = NewType("UserId", int)


class Shapes(unittest.TestCase):
    def check(self, annotation: Any, schema: Any, *values: tuple[Any, Any], misfits: Sequence[Any] = ()) -> None:
        shape = shape_of(annotation)
        self.assertEqual(shape.schema, schema)
        for given, loaded in values:
            result = shape.load(given)
            self.assertEqual(result, loaded)
            self.assertIs(type(result), type(loaded))
        for value in misfits:
            with self.assertRaises(Misfit, msg=repr(value)):
                shape.load(value)

    def test_simple_types(self) -> None:
        self.check(str, {"type": "string"}, ("a", "a"), misfits=[1, None])
        self.check(int, {"type": "integer"}, (1, 1), (3.0, 3), misfits=[True, 1.5, "1"])
        self.check(float, {"type": "number"}, (1, 1.0), (1.5, 1.5), misfits=[False, "1", float("inf")])
        self.check(bool, {"type": "boolean"}, (True, True), misfits=[1, "true"])
        self.check(None, {"type": "null"}, (None, None), misfits=[0])
        self.check(Any, {}, ({"a": [1]}, {"a": [1]}))
        self.check(Path, {"type": "string"}, ("a/b", Path("a/b")), misfits=[1])
        self.check(UserId, {"type": "integer"}, (7, 7))

    def test_choices(self) -> None:
        self.check(Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, ("a", "a"), misfits=["c", 1])
        self.check(Literal[1, "a", None], {"enum": [1, "a", None]}, (None, None), (1, 1), misfits=[True, 2])
        self.check(Colour, {"enum": ["red", "blue"], "type": "string"}, ("red", Colour.RED), misfits=["RED"])
        both = {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}
        self.check(Optional[Union[int, str]], both, (1, 1), ("1", "1"), (None, None), misfits=[[], True])

    def test_collections(self) -> None:
        self.check(list[int], {"type": "array", "items": {"type": "integer"}}, ([1, 2], [1, 2]), misfits=[["a"], "a"])
        self.check(list, {"type": "array", "items": {}}, ([1, "a"], [1, "a"]))
        self.check(Sequence[str], {"type": "array", "items": {"type": "string"}}, (["a"], ["a"]))
        self.check(tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, ([1], (1,)))
        pair = {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}]}
        self.check(tuple[int, str], pair, ([1, "a"], (1, "a")), misfits=[[1], ["a", 1], [1, "a", 2]])
        unique = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        self.check(set[str], unique, (["a", "b"], {"a", "b"}))
        counts = {"type": "object", "additionalProperties": {"type": "integer"}}
        self.check(dict[str, int], counts, ({"a": 1}, {"a": 1}), misfits=[{"a": "b"}, []])
        self.check(dict, {"type": "object", "additionalProperties": True}, ({"a": []}, {"a": []}))
        self.check(Mapping[str, Colour], {"type": "object", "additionalProperties": {"enum": ["red", "blue"], "type": "string"}},
                   ({"a": "red"}, {"a": Colour.RED}))  # fmt: skip

    def test_objects(self) -> None:
        point = {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "number", "description": "upwards", "default": 0.0},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["x"],
            "additionalProperties": False,
        }
        self.check(Point, point, ({"x": 1}, Point(1)), ({"x": 1, "y": 2, "tags": ["a"]}, Point(1, 2.0, ["a"])),
                   misfits=[{}, {"x": 1, "z": 1}, {"x": "1"}, 1])  # fmt: skip
        options = {
            "type": "object",
            "properties": {"depth": {"type": "integer"}, "mode": {"enum": ["fast", "slow"], "type": "string"}},
            "additionalProperties": False,
        }
        self.check(Options, options, ({}, {}), ({"depth": 1}, {"depth": 1}), misfits=[{"mode": "x"}])

    def test_what_json_has_no_values_for_is_refused_with_advice(self) -> None:
        for annotation in (bytes, complex, Node, dict[int, str], "a text"):
            with self.assertRaises(TypeError):
                shape_of(annotation)
        with self.assertRaisesRegex(TypeError, "contains itself; give `schema="):
            shape_of(Node)

    def test_a_misfit_says_where(self) -> None:
        with self.assertRaisesRegex(Misfit, r"tags: 1: 2 is not of type string"):
            shape_of(Point).load({"x": 1, "tags": ["a", 2]})

    def test_a_class_like_those_of_pydantic(self) -> None:
        class Model:
            @classmethod
            def model_json_schema(cls) -> Any:
                return {"type": "object", "title": "Model"}

            @classmethod
            def model_validate(cls, value: Any) -> Any:
                if value == "bad":
                    raise ValueError("no")
                return (cls, value)

        shape = shape_of(Model)
        self.assertEqual(shape.schema, {"type": "object", "title": "Model"})
        self.assertEqual(shape.load({}), (Model, {}))
        with self.assertRaises(Misfit):
            shape.load("bad")


class Tools(unittest.TestCase):
    def test_a_function_is_a_definition_and_stays_a_function(self) -> None:
        @tool(side_effects="read")
        def move(to: Point, /, speed: float = 1, *, why: Annotated[str, "for the log"] = "") -> str:
            """Moves.

            As fast as it can.

            Args:
                to (Point): where
                speed: how fast,
                    in metres

            Returns:
                what was done
            """
            return f"{to} {speed} {why}"

        self.assertEqual(move.name, "move")
        self.assertEqual(move.__doc__, move.function.__doc__)
        definition = move.definition
        self.assertEqual(definition["description"], "Moves.\n\nAs fast as it can.")
        self.assertEqual((definition["side_effects"], "attempts" in definition), ("read", False))
        schema = definition["input_schema"]
        self.assertEqual(schema["required"], ["to"])
        self.assertEqual(schema["properties"]["to"]["description"], "where")
        self.assertEqual(schema["properties"]["speed"],
                         {"type": "number", "description": "how fast, in metres", "default": 1})  # fmt: skip
        self.assertEqual(schema["properties"]["why"], {"type": "string", "description": "for the log", "default": ""})
        self.assertEqual(move(Point(1), why="x"), f"{Point(1)} 1 x")
        context: Any = None
        self.assertEqual(move.bind({"to": {"x": 1}, "speed": 2}, context)(), f"{Point(1)} 2.0 ")

    def test_options(self) -> None:
        @tool(name="Pay", description="d", side_effects="network", timeout=1.5, grace=0.5, attempts=3, idempotent=True,
              concurrency="concurrent", max_concurrency=2, cost=5, version="2", recursive=False)  # fmt: skip
        def pay() -> None: ...

        expected = {"name": "Pay", "description": "d", "side_effects": "network", "class": "concurrent",
                    "recursive": False, "idempotent": True, "timeout_ms": 1500, "grace_ms": 500, "attempts": 3,
                    "max_concurrency": 2, "cost": 5, "version": "2",
                    "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}  # fmt: skip
        self.assertEqual(pay.definition, expected)

    def test_a_tool_says_what_it_can_do(self) -> None:
        def delete(path: str) -> None: ...

        unsaid: Any = tool
        given: Any = delete
        for define in (
            lambda: unsaid(delete),
            lambda: unsaid()(delete),
            lambda: unsaid(name="x"),
            lambda: unsaid(delete, side_effects="writes"),
            lambda: Engine([given]),
            lambda: AsyncEngine([given]),
        ):
            with self.assertRaisesRegex(TypeError, r'write @tool\(side_effects="…"\)'):
                define()

    def test_two_tools_of_one_name(self) -> None:
        def delete() -> None: ...

        first, second = tool(delete, side_effects="write"), tool(delete, side_effects="write")
        with self.assertRaisesRegex(ValueError, "several tools have the name delete"):
            Engine([first, second])

    def test_the_context_is_no_argument(self) -> None:
        @tool(side_effects="read")
        def look(context: Context, at: str) -> Any:
            return (context, at)

        self.assertEqual(list(look.definition["input_schema"]["properties"]), ["at"])
        given: Any = object()
        self.assertEqual(look.bind({"at": "x"}, given)(), (given, "x"))
        with self.assertRaises(Misfit):
            look.bind({"at": "x", "context": 1}, given)

    def test_a_schema_of_ones_own_and_arguments_as_they_come(self) -> None:
        schema = {"type": "object", "properties": {"when": {"type": "string", "format": "date"}}}

        @tool(side_effects="read", schema=schema)
        def book(when: bytes) -> Any:
            return when

        self.assertEqual(book.definition["input_schema"], schema)
        context: Any = None
        self.assertEqual(book.bind({"when": "today"}, context)(), "today")

    def test_any_names(self) -> None:
        @tool(side_effects="read")
        def ask(url: str, **more: int) -> Any:
            return (url, more)

        self.assertEqual(ask.definition["input_schema"]["additionalProperties"], {"type": "integer"})
        context: Any = None
        self.assertEqual(ask.bind({"url": "a", "b": 1}, context)(), ("a", {"b": 1}))

    def test_what_cannot_be_a_tool(self) -> None:
        def many(*names: str) -> None: ...

        class Owner:
            @tool(side_effects="read")
            def method(self) -> None: ...

        with self.assertRaisesRegex(TypeError, "make it a list"):
            tool(many, side_effects="none")
        with self.assertRaisesRegex(TypeError, "make a tool of a bound one"):
            Owner().method()

    def test_a_bound_method_and_a_callable_object(self) -> None:
        class Store:
            def find(self, name: str) -> str:
                "Finds."
                return name

            def __call__(self, key: int) -> int:
                return key

        self.assertEqual(tool(Store().find, side_effects="read").definition["description"], "Finds.")
        self.assertEqual(tool(Store(), side_effects="read").name, "Store")

    def test_a_partial_function_shows_nothing_of_what_it_was_given(self) -> None:
        def find(store: str, name: str, context: Context, *, token: str = "", limit: int = 3) -> Any:
            "Finds."
            return (store, name, token, limit, context)

        made = tool(functools.partial(find, "s", token="secret"), side_effects="read")
        self.assertEqual((made.name, made.definition["description"]), ("find", "Finds."))
        self.assertEqual(list(made.definition["input_schema"]["properties"]), ["name", "limit"])
        self.assertNotIn("secret", str(made.definition))
        given: Any = object()
        self.assertEqual(made.bind({"name": "n"}, given)(), ("s", "n", "secret", 3, given))

    def test_functions_that_are_refused_where_they_are_defined(self) -> None:
        def lines() -> Any:
            yield "a"

        async def alines() -> Any:
            yield "a"

        def typed(what: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        class Bytes(enum.Enum):
            A = b"a"

        def coloured(what: Bytes) -> None: ...

        coloured.__annotations__["what"] = Bytes
        for function, about in (
            (lines, "yields: return a list"),
            (alines, "yields"),
            (functools.partial(lines), "yields"),
            (lambda: 1, "give one to the decorator"),
            (typed, "'Missing' is not defined. What they name has to be at the top"),
            (coloured, "values that JSON has not"),
        ):
            with self.assertRaisesRegex(TypeError, about):
                tool(function, side_effects="none")
        made = tool(typed, side_effects="none", schema={"type": "object"})
        self.assertEqual(made.definition["input_schema"], {"type": "object"})

    def test_a_context_that_may_be_none_and_a_tool_in_a_class(self) -> None:
        @tool(side_effects="none")
        def look(context: Optional[Context] = None) -> Any:
            return context

        class Agent:
            looks = look

        self.assertEqual(look.definition["input_schema"]["properties"], {})
        given: Any = object()
        self.assertIs(Agent().looks.bind({}, given)(), given)

    def test_a_dataclass_that_checks_its_fields(self) -> None:
        with self.assertRaisesRegex(Misfit, "it is odd"):
            shape_of(Even).load({"number": 3})

    def test_docstrings_with_fields(self) -> None:
        def function() -> None:
            """Does it.

            :param a: the first
                of two
            :param int b: the second
            :returns: nothing
            """

        self.assertEqual(read_docstring(function), ("Does it.", {"a": "the first of two", "b": "the second"}))


class Errors(unittest.TestCase):
    def test_they_go_to_other_processes(self) -> None:
        meta = {"code": "timeout", "retry_after_ms": 1500, "attempts": 2}
        failed = call_error("fs_denied", "no", tool="Read", call_id="c1", meta=meta, note="n")
        died = ProgramDied("it has ended", returncode=7, stderr="log")
        refused = Refused("no", code="too_many", errors=[{"pointer": "/a", "detail": "d"}])
        for error in (failed, died, refused, ToolError("busy", kind="transient", retry_after=2)):
            for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertEqual((type(again), str(again), vars(again)), (type(error), str(error), vars(error)))


class Results(unittest.TestCase):
    def there_and_back(self, value: Any) -> Any:
        fields = fields_of(value)
        result = fields.get("structured", fields.get("result"))
        return value_of(result if isinstance(result, dict) else {"content": [], "text": result}, ours=True)

    def test_values_come_back_as_they_were(self) -> None:
        for value in (3, 1.5, True, None, "3", [1, "a"], {"a": 1}, {"result": 1}, {"result": {"result": 2}}, [], {}):
            with self.subTest(value=value):
                self.assertEqual(self.there_and_back(value), value)

    def test_what_the_model_reads(self) -> None:
        self.assertEqual(fields_of("3"), {"result": "3"})
        self.assertEqual(fields_of({"a": 1}), {"result": {"a": 1}})
        three = {"content": [{"type": "text", "text": "3"}], "structured": {"result": 3}}
        self.assertEqual(fields_of(3), three)
        image = {"type": "image", "media_type": "image/png", "data": "AAE="}
        self.assertEqual(fields_of(Image(b"\0\1", "image/png")), {"content": [image]})
        self.assertEqual(
            fields_of(["a", Image(b"\0\1", "image/png")]), {"content": [{"type": "text", "text": "a"}, image]}
        )

    def test_types_with_a_form_in_json(self) -> None:
        self.assertEqual(self.there_and_back(Point(1)), {"x": 1, "y": 0.0, "tags": []})
        self.assertEqual(self.there_and_back([Colour.RED, Path("a")]), ["red", "a"])

    def test_what_is_no_json_is_the_tools_fault(self) -> None:
        for value in (object(), {1, object()}, float("nan"), {"a": b""}, [Image(b"", "a/b"), object()]):
            with self.assertRaises(ToolError) as raised:
                fields_of(value)
            self.assertEqual(raised.exception.kind, "output_invalid")

    def test_what_other_tools_give(self) -> None:
        self.assertEqual(value_of({"size": 3}, ours=False), {"size": 3})
        self.assertEqual(value_of({"result": 3}, ours=False), {"result": 3})
        self.assertEqual(value_of({"content": [{}], "text": "a"}, ours=False), "a")
        self.assertEqual(value_of({"content": [{"type": "image"}]}, ours=False), [{"type": "image"}])
        self.assertEqual(value_of({"content": "a file's", "size": 1}, ours=False), {"content": "a file's", "size": 1})


if __name__ == "__main__":
    unittest.main()
