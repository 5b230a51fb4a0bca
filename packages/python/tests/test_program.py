"""The engine under the real program: AG-14 as a parent sees it."""

from __future__ import annotations

import asyncio
import enum
import functools
import os
import signal
import threading
import unittest
from dataclasses import dataclass
from typing import Any, Optional, Union

from support import WAIT_MAX_S, RealProgram, answer, setUpModule, tearDownModule

import toolyard
from toolyard import Call, CallError, Context, Deny, Edit, Image, ProgramDied, Question, Refused, ToolError, tool


class Unit(enum.Enum):
    METRE = "m"
    FOOT = "ft"


@dataclass
class Length:
    value: float
    unit: Unit = Unit.METRE


@tool(side_effects="none")
def add(a: int, b: int = 2) -> int:
    "Adds two numbers."
    return a + b


@tool(side_effects="read")
def measure(length: Length, scale: Optional[float] = None, name: Union[int, str] = 0) -> list[Any]:
    "Measures."
    return [length.value * (scale or 1), length.unit, name]


@tool(side_effects="write")
def save(text: str) -> str:
    "Saves a text."
    return f"saved {text}"


class Calls(RealProgram):
    def test_a_models_answer(self) -> None:
        with self.engine(add, measure) as engine, engine.session() as session:
            turn = session.dispatch(answer(("t1", "add", {"a": 1}), ("t2", "nope", {}), ("t3", "add", {"a": "x"})))
            (message,) = turn.messages
            self.assertEqual([part["tool_use_id"] for part in message["content"]], ["t1", "t2", "t3"])
            self.assertEqual(message["content"][0]["content"], "3")
            self.assertEqual([(one.call_id, one.tool, one.value) for one in turn.outcomes],
                             [("t1", "add", 3), ("t2", "nope", None), ("t3", "add", None)])  # fmt: skip
            self.assertEqual([type(one.error) for one in turn.failed], [toolyard.ToolNotFound, toolyard.InvalidArgs])
            self.assertEqual(turn.outcomes[0].meta["attempts"], 1)
            neutral = session.dispatch(answer(("t1", "add", {"a": 1})), to="neutral").messages
            self.assertEqual(neutral[0]["status"], "ok")

    def test_two_calls_of_one_id(self) -> None:
        with self.engine(add) as engine, engine.session() as session:
            turn = session.dispatch(answer(("t", "add", {"a": 1}), ("t", "add", {"a": 2})))
            self.assertEqual([(one.value, type(one.error)) for one in turn.outcomes],
                             [(3, type(None)), (None, toolyard.InvalidArgs)])  # fmt: skip

    def test_values_of_the_declared_types(self) -> None:
        with self.engine(measure) as engine, engine.session() as session:
            self.assertEqual(session.call("measure", length={"value": 2, "unit": "ft"}, scale=3), [6.0, "ft", 0])
            self.assertEqual(session.call("measure", length={"value": 2}, name="x"), [2.0, "m", "x"])
            with self.assertRaises(toolyard.InvalidArgs):
                session.call("measure", length={"value": 2, "unit": "mile"})
            (definition,) = [one for one in session.definitions("anthropic") if one["name"] == "measure"]
            self.assertEqual((definition["description"], definition["input_schema"]),
                             ("Measures.", measure.definition["input_schema"]))  # fmt: skip

    def test_values_come_back_as_they_were(self) -> None:
        values: dict[str, Any] = {"int": 3, "none": None, "text": "3", "list": [1, "a"], "object": {"result": 1}}

        @tool(side_effects="read")
        def get(name: str) -> Any:
            return values[name]

        with self.engine(get) as engine, engine.session() as session:
            for name, value in values.items():
                self.assertEqual(session.call("get", name=name), value)

    def test_pictures(self) -> None:
        @tool(side_effects="read")
        def draw() -> Any:
            return ["a picture", Image(b"\x89PNG", "image/png")]

        with self.engine(draw) as engine, engine.session() as session:
            (message,) = session.dispatch(answer(("t1", "draw", {}))).messages
            self.assertEqual([part["type"] for part in message["content"][0]["content"]], ["text", "image"])
            self.assertEqual([part["type"] for part in session.call("draw")], ["text", "image"])

    def test_a_key_runs_once_over_turns(self) -> None:
        ran: list[str] = []

        @tool(side_effects="network")
        def charge(amount: int, context: Context) -> str:
            ran.append(context.key or "")
            return f"charged {amount}"

        with self.engine(charge, approve=lambda question: True) as engine, engine.session() as session:
            for expected in ("fresh", "replayed"):
                (outcome,) = session.outcomes([Call("charge", {"amount": 5}, key="order-17")])
                self.assertEqual((outcome.value, outcome.meta["dedupe"]), ("charged 5", expected))
            with self.assertRaises(toolyard.InvalidArgs):
                session.call(Call("charge", {"amount": 6}, key="order-17"))
        self.assertEqual(ran, ["order-17"])

    def test_reads_overlap_and_writes_do_not(self) -> None:
        together = threading.Barrier(2, timeout=WAIT_MAX_S)
        running: list[int] = []

        @tool(side_effects="read")
        def look() -> int:
            return together.wait() >= 0

        @tool(side_effects="write")
        def change() -> int:
            running.append(1)
            count = len(running)
            running.pop()
            return count

        with self.engine(look, change, approve=lambda question: True) as engine, engine.session() as session:
            self.assertEqual(session.batch(["look", "look", *["change"] * 5]), [True, True, 1, 1, 1, 1, 1])

    def test_a_turn_that_grows(self) -> None:
        with self.engine(add) as engine, engine.session() as session:
            with session.turn() as turn:
                first = turn.call("add", a=1)
                self.assertEqual(first.result(WAIT_MAX_S), 3)
                second = turn.call("add", a=first.result())
                self.assertEqual(second.result(WAIT_MAX_S), 5)
                with self.assertRaises(CallError):
                    turn.call("nope").result(WAIT_MAX_S)
            self.assertEqual([one.value for one in turn.result().outcomes], [3, 5, None])
            with session.turn() as turn:
                pass
            self.assertEqual((turn.result().outcomes, session.batch([])), ([], []))

    def test_a_turn_that_has_ended_takes_no_more(self) -> None:
        with self.engine(add) as engine, engine.session() as session:
            for act in (lambda turn: turn.cancel(), lambda turn: session.close()):
                turn = session.turn()
                self.assertEqual(turn.call("add", a=1).result(WAIT_MAX_S), 3)
                act(turn)
                with self.assertRaises(Refused) as raised:
                    turn.call("add", a=1).result(WAIT_MAX_S)
                self.assertIn(raised.exception.code, ("turn_closed", "not_found"))
                self.assertEqual(len(turn.result(WAIT_MAX_S).outcomes), 1)
                turn.end()
            session.close()

    def test_tools_that_call_tools(self) -> None:
        @tool(side_effects="read")
        def deep(n: int, context: Context) -> int:
            return 0 if n == 0 else 1 + int(context.call("deep", n=n - 1))

        @tool(side_effects="read")
        async def adeep(n: int, context: Context) -> int:
            return 0 if n == 0 else 1 + int(await context.acall("adeep", n=n - 1))

        with self.engine(deep, adeep, threads=2) as engine, engine.session() as session:
            self.assertEqual(session.batch([("deep", {"n": 8}), ("adeep", {"n": 8})]), [8, 8])

    def test_failures(self) -> None:
        attempts: list[int] = []

        @tool(side_effects="read", attempts=2)
        def flaky(context: Context) -> int:
            attempts.append(context.attempt)
            raise ToolError("HTTP 503", kind="transient", retry_after=0.001)

        @tool(side_effects="read")
        def broken() -> None:
            raise KeyError("secret")

        @tool(side_effects="read")
        def invalid() -> Any:
            return object()

        with self.engine(flaky, broken, invalid) as engine, engine.session() as session:
            transient, internal, output = session.batch(["flaky", "broken", "invalid"])
        self.assertEqual((transient.code, transient.attempts, attempts), ("transient", 2, [1, 2]))
        self.assertIn("HTTP 503", transient.message)
        self.assertEqual((output.code, output.slug), ("output_invalid", "tool_failed"))
        self.assertNotIn("secret", internal.message)

    def test_an_answer_that_is_nested_too_deep(self) -> None:
        @tool(side_effects="none")
        def nest(depth: int) -> Any:
            return functools.reduce(lambda inner, _: [inner], range(depth), 1)

        with self.engine(nest) as engine, engine.session() as session:
            for depth in (200, 100_000):
                with self.assertRaises(toolyard.ToolFailed) as raised:
                    session.call("nest", depth=depth)
                self.assertEqual(raised.exception.code, "output_invalid")
                self.assertLess(len(raised.exception.message), 1_000)

    def test_a_function_that_hangs_ends_at_its_timeout(self) -> None:
        stopped = threading.Event()

        @tool(side_effects="none", timeout=0.05, attempts=1)
        def hang(context: Context) -> None:
            if context.cancelled.wait(WAIT_MAX_S):
                stopped.set()

        with self.engine(hang, add, threads=1) as engine, engine.session() as session:
            error, three = session.batch(["hang", ("add", {"a": 1})])
            self.assertEqual((error.code, three), ("timeout", 3))
            self.assertTrue(stopped.wait(WAIT_MAX_S))

    def test_cancel(self) -> None:
        begun = threading.Event()

        @tool(side_effects="read")
        async def hang() -> None:
            begun.set()
            await asyncio.sleep(WAIT_MAX_S)

        with self.engine(hang) as engine, engine.session() as session:
            turn = session.start(answer(("t1", "hang", {})))
            begun.wait(WAIT_MAX_S)
            turn.cancel()
            error = turn.result(WAIT_MAX_S).outcomes[0].error
            self.assertEqual(error and error.code, "cancelled")

    def test_output_before_the_end(self) -> None:
        @tool(side_effects="read")
        def build(context: Context) -> str:
            context.emit("a")
            return "built"

        with self.engine(build) as engine, engine.session() as session:
            pieces: list[str] = []
            session.dispatch(answer(("t1", "build", {})), on_delta=lambda delta: pieces.append(delta.text))
            self.assertEqual(pieces, ["a"])

    def test_bounds_and_forks(self) -> None:
        with self.engine(add, measure) as engine:
            with engine.session("s", capabilities={"tools": ["add"]}, limits={"session_calls": 2}) as session:
                child = session.fork("child", only_tools=["add"])
                self.assertEqual((child.agent, child.call("add", a=1)), ("root/child", 3))
                with self.assertRaises(toolyard.PermissionDenied):
                    session.call("measure", length={"value": 1})
                with self.assertRaises(Refused) as raised:
                    engine.session("s")
                self.assertEqual(raised.exception.code, "session_open")
            for use in (lambda: session.call("add", a=1), lambda: session.turn(), session.fork, session.definitions):
                with self.assertRaisesRegex(toolyard.Closed, "the session s was closed"):
                    use()
            session.close()
            engine.session("s").close()
            with self.assertRaises(Refused) as raised:
                engine.session("t", limits={"no_such": 1})
            self.assertTrue(raised.exception.errors)

    def test_functions_come_and_go(self) -> None:
        with self.engine() as engine, engine.session() as session:
            engine.register(add)
            self.assertEqual(session.call("add", a=1), 3)
            engine.unregister("add")
            with self.assertRaises(toolyard.ToolNotFound):
                session.call("add", a=1)
            with self.assertRaises(Refused):
                engine.register(tool(name="read_file", side_effects="none")(add.function))

    def test_many_at_once(self) -> None:
        wrong: list[Any] = []
        with self.engine(add) as engine:

            def work(base: int) -> None:
                with engine.session() as session:
                    for n in range(10):
                        got = session.batch([("add", {"a": base, "b": one}) for one in range(n)])
                        wrong.extend(one for one in zip(got, range(n)) if one[0] != base + one[1])

            threads = [threading.Thread(target=work, args=(base,)) for base in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WAIT_MAX_S)
        self.assertEqual(wrong, [])

    def test_large_results(self) -> None:
        @tool(side_effects="read")
        def large(size: int) -> dict[str, str]:
            return {"text": "ä" * size}

        with self.engine(large) as engine, engine.session() as session:
            self.assertEqual(
                [len(one["text"]) for one in session.batch([("large", {"size": 200_000})] * 20)], [200_000] * 20
            )


class Approvals(RealProgram):
    def ask(self, *answers: Any) -> tuple[list[Any], list[Question]]:
        questions: list[Question] = []
        left = list(answers)

        def approve(question: Question) -> Any:
            questions.append(question)
            return left.pop(0)

        with self.engine(save, approve=approve) as engine, engine.session() as session:
            return [session.batch([("save", {"text": "a"})])[0] for _ in answers], questions

    def test_answers(self) -> None:
        results, (question, *_) = self.ask(True, Edit({"text": "b"}), False, Deny("not on a Friday"))
        self.assertEqual(results[:2], ["saved a", "saved b"])
        self.assertEqual(
            [(type(one), one.code) for one in results[2:]], [(toolyard.PermissionDenied, "user_denied")] * 2
        )
        self.assertIn("not on a Friday", results[3].message)
        self.assertEqual((question.tool, question.side_effects, question.arguments), ("save", "write", {"text": "a"}))
        self.assertIn("save", str(question))

    def test_always(self) -> None:
        with self.engine(save, approve=lambda question: next(answers)) as engine, engine.session() as session:
            answers = iter(["always"])
            self.assertEqual([session.call("save", text="a") for _ in range(3)], ["saved a"] * 3)

    def test_arguments_that_may_not_run_are_asked_about_again(self) -> None:
        questions: list[Question] = []

        def approve(question: Question) -> Any:
            questions.append(question)
            return Edit({"text": 1}) if len(questions) == 1 else True

        with self.engine(save, approve=approve) as engine, engine.session() as session:
            self.assertEqual(session.call("save", text="a"), "saved a")
        self.assertIsNone(questions[0].refused)
        self.assertIsNotNone(questions[1].refused)

    def test_without_approve_nobody_is_asked(self) -> None:
        with self.engine(save) as engine, engine.session() as session:
            with self.assertRaises(toolyard.PermissionDenied):
                session.call("save", text="a")

    def test_a_question_that_is_withdrawn(self) -> None:
        asked = threading.Event()
        withdrawn: list[bool] = []

        def approve(question: Question) -> bool:
            asked.set()
            withdrawn.append(question.ended.wait(WAIT_MAX_S))
            return True

        with self.engine(save, approve=approve) as engine, engine.session() as session:
            turn = session.start(answer(("t1", "save", {"text": "a"})))
            asked.wait(WAIT_MAX_S)
            turn.cancel()
            error = turn.result(WAIT_MAX_S).outcomes[0].error
            self.assertEqual(error and error.code, "cancelled")
        self.assertEqual(withdrawn, [True])

    def test_what_a_file_tool_would_change(self) -> None:
        seen: list[Question] = []

        def approve(question: Question) -> bool:
            seen.append(question)
            return True

        with self.engine(approve=approve) as engine, engine.session() as session:
            session.call("write_file", path="a.txt", content="hello\n")
        self.assertIn("hello", seen[0].changes or "")
        self.assertEqual((self.workspace / "a.txt").read_text(), "hello\n")


class Events(RealProgram):
    def test_events_of_a_call(self) -> None:
        kinds: list[str] = []
        with self.engine(add, on_event=lambda event: kinds.append(event["event"]),
                         events=["tool.called", "tool.completed"]) as engine:  # fmt: skip
            engine.session().call("add", a=1)
        self.assertEqual(kinds, ["tool.called", "tool.completed"])


class Ends(RealProgram):
    def test_a_configuration_that_is_wrong(self) -> None:
        self.config.write_text("[pools]\nraed = 3\n")
        with self.assertRaisesRegex(ProgramDied, "raed") as raised:
            self.engine().start()
        self.assertEqual(raised.exception.returncode, 2)

    @unittest.skipUnless(hasattr(signal, "SIGKILL"), "needs signals")
    def test_a_program_that_is_killed(self) -> None:
        begun = threading.Event()

        @tool(side_effects="read")
        def hang(context: Context) -> None:
            begun.set()
            context.cancelled.wait(WAIT_MAX_S)

        with self.assertRaises(ProgramDied), self.engine(hang) as engine:
            turn = engine.session().start(answer(("t1", "hang", {})))
            begun.wait(WAIT_MAX_S)
            assert engine._core is not None
            os.kill(engine._core._process._popen.pid, signal.SIGKILL)
            turn.result(WAIT_MAX_S)

    def test_the_end_waits_for_turns(self) -> None:
        release = threading.Event()
        begun = threading.Event()

        @tool(side_effects="read")
        def slow() -> str:
            begun.set()
            release.wait(WAIT_MAX_S)
            return "done"

        with self.engine(slow) as engine:
            turn = engine.session().start(answer(("t1", "slow", {})))
            begun.wait(WAIT_MAX_S)
            threading.Timer(0, release.set).start()
        self.assertEqual(turn.result(WAIT_MAX_S).outcomes[0].value, "done")


class Async(RealProgram, unittest.IsolatedAsyncioTestCase):
    async def test_calls(self) -> None:
        @tool(side_effects="read")
        async def aadd(a: int, b: int = 2) -> int:
            await asyncio.sleep(0)
            return a + b

        async def approve(question: Question) -> Any:
            return True

        async with self.aengine(aadd, save, approve=approve) as engine, engine.session() as session:
            turn = await session.dispatch(answer(("t1", "aadd", {"a": 1}), ("t2", "save", {"text": "x"})))
            self.assertEqual([one.value for one in turn.outcomes], [3, "saved x"])
            self.assertEqual(
                await asyncio.gather(*(session.call("aadd", a=n) for n in range(50))), [n + 2 for n in range(50)]
            )
            async with session.turn() as growing:
                self.assertEqual(await (await growing.call("aadd", a=1)), 3)
        with self.assertRaises(toolyard.Closed):
            await session.call("aadd", a=1)

    async def test_a_task_that_is_cancelled(self) -> None:
        begun = asyncio.Event()
        stopped = asyncio.Event()

        @tool(side_effects="read")
        async def hang() -> None:
            begun.set()
            try:
                await asyncio.sleep(WAIT_MAX_S)
            finally:
                stopped.set()

        async with self.aengine(hang) as engine, engine.session() as session:
            task = asyncio.ensure_future(session.call("hang"))
            await begun.wait()
            task.cancel()
            await stopped.wait()


if __name__ == "__main__":
    unittest.main()
