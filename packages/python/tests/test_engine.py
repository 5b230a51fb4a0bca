"""The engine with threads, against a scripted peer: what happens rarely, and what a program does to it."""

from __future__ import annotations

import asyncio
import sys
import threading
import unittest
from typing import Any
from unittest import mock

from support import WAIT_MAX_S, answer, scripted, setUpModule, tearDownModule

import toolyard
from toolyard import (
    Call,
    CallError,
    Context,
    Deny,
    Edit,
    Outcome,
    ProgramDied,
    Question,
    Refused,
    ToolError,
    tool,
)


@tool(side_effects="read")
def add(a: int, b: int = 2) -> int:
    return a + b


@tool(side_effects="read")
async def wait_for_cancel() -> None:
    await asyncio.sleep(WAIT_MAX_S)


class Calls(unittest.TestCase):
    def test_call_batch_dispatch(self) -> None:
        with scripted("Plain", add) as engine, engine.session("s") as session:
            self.assertEqual((engine.version, engine.epoch, session.name, session.agent), ("0.0.0", "e", "s", "root"))
            self.assertEqual(session.call("add", a=1), 3)
            self.assertEqual(session.call("add", {"a": 1}, b=5), 6)
            self.assertEqual(session.call(Call("add", {"a": 1})), 3)
            self.assertEqual(session.batch([("add", {"a": 1}), Call("add", {"a": 2}, id="x")]), [3, 4])
            turn = session.dispatch(answer(("t1", "add", {"a": 1}), ("t2", "add", {"a": 5})))
            self.assertEqual(turn.messages, [{"role": "user"}])
            self.assertEqual([(one.call_id, one.tool, one.value) for one in turn.outcomes],
                             [("t1", "add", 3), ("t2", "add", 7)])  # fmt: skip
            self.assertEqual(turn.failed, [])

    def test_answers_of_sdks(self) -> None:
        class Pydantic:
            def model_dump(self, **options: Any) -> Any:
                assert options["mode"] == "json"
                return answer(("t1", "add", {"a": 1}))

        class Other:
            def to_dict(self) -> Any:
                return answer(("t1", "add", {"a": 1}))

        with scripted("Plain", add) as engine, engine.session() as session:
            for response in (Pydantic(), Other()):
                self.assertEqual(session.dispatch(response).outcomes[0].value, 3)
            with self.assertRaises(TypeError):
                session.dispatch("a text")

    def test_errors_of_calls(self) -> None:
        @tool(side_effects="read")
        def busy() -> None:
            raise ToolError("HTTP 503", kind="transient", retry_after=1.5, outcome="failed")

        @tool(side_effects="read")
        def broken() -> None:
            raise KeyError("secret")

        with scripted("Plain", add, busy, broken) as engine, engine.session() as session:
            with self.assertRaises(toolyard.ToolFailed) as raised:
                session.call("busy")
            error = raised.exception
            self.assertEqual((error.slug, error.code, error.outcome, error.retry_after, error.attempts, error.message),
                             ("tool_failed", "transient", "failed", 1.5, 1, "HTTP 503"))  # fmt: skip
            with self.assertRaises(CallError) as raised:
                session.call("broken")
            self.assertEqual(raised.exception.code, "internal")
            mixed = session.batch([("add", {"a": 1}), "busy", ("add", {"a": "1"})])
            self.assertEqual(mixed[0], 3)
            self.assertEqual([one.code for one in mixed[1:]], ["transient", "invalid_input"])
            with self.assertRaises(CallError):
                session.batch(["busy"], raise_errors=True)
            with self.assertRaisesRegex(ValueError, "once"):
                session.batch([Call("add", {"a": 1}, id="x"), Call("add", {"a": 2}, id="x")])
            with self.assertRaises(TypeError):
                session.call("add", a=object())
            self.assertEqual(session.call("add", a=1), 3)

    def test_what_a_function_knows_of_its_call(self) -> None:
        seen: list[Any] = []

        @tool(side_effects="read")
        def look(context: Context) -> None:
            left = context.remaining or 0
            seen.append((context.call_id, context.tool, context.session, context.agent, context.attempt, context.key))
            seen.append(0 < left <= 30 and not context.cancelled.is_set())

        with scripted("Plain", look) as engine, engine.session("s") as session:
            session.fork("child").call(Call("look", key="k", timeout=30, id="c9"))
        self.assertEqual(seen, [("c9", "look", "s", "root/child", 1, "k"), True])

    def test_a_call_that_is_tried_again(self) -> None:
        attempts: list[int] = []

        @tool(side_effects="read")
        def flaky(context: Context) -> int:
            attempts.append(context.attempt)
            if context.attempt == 1:
                raise ToolError("again", kind="transient")
            return context.attempt

        with scripted("TriesTwice", flaky) as engine, engine.session() as session:
            self.assertEqual(session.call("flaky"), 2)
        self.assertEqual(attempts, [1, 2])

    def test_tools_that_call_tools_hold_no_thread(self) -> None:
        @tool(side_effects="read")
        def deep(n: int, context: Context) -> int:
            if n == 0:
                return 0
            below, error = context.dispatch([("deep", {"n": n - 1}), ("add", {"a": "x"})])
            assert isinstance(error, CallError)
            return 1 + int(below)

        with scripted("Plain", deep, add, threads=2) as engine, engine.session() as session:
            self.assertEqual(session.call("deep", n=12), 12)

    def test_a_turn_that_grows(self) -> None:
        with scripted("Plain", add, wait_for_cancel) as engine, engine.session() as session:
            with session.turn() as turn:
                first = turn.call("add", a=1)
                more = turn.add([("add", {"a": 2}), Call("add", {"a": 3}, id="mine")])
                self.assertEqual([first.result(), *(one.result() for one in more)], [3, 4, 5])
                self.assertEqual([one.id for one in more], ["2", "mine"])
            self.assertEqual(len(turn.result().outcomes), 3)
            with self.assertRaises(RuntimeError):
                turn.call("add", a=1)
            with self.assertRaises(KeyError), session.turn() as turn:
                hanging = turn.call("wait_for_cancel")
                raise KeyError
            self.assertEqual(self.failed(hanging.outcome(WAIT_MAX_S)).code, "cancelled")

    def test_what_is_refused_of_a_turn_that_grows_is_that_line_alone(self) -> None:
        with scripted("RefusesWhatIsAdded", add) as engine, engine.session() as session:
            with session.turn() as turn:
                first = turn.call("add", a=1)
                with self.assertRaises(Refused):
                    turn.call("bad").result()
                self.assertEqual((first.result(), turn.call("add", a=2).result()), (3, 4))

    def test_what_comes_too_late_for_a_turn_that_grows(self) -> None:
        with scripted("EndsMeanwhile", add) as engine, engine.session() as session, session.turn() as turn:
            late = turn.add([("add", {"a": 1}), ("add", {"a": 2})])
            for call in late:
                with self.assertRaises(Refused) as raised:
                    call.result(WAIT_MAX_S)
                self.assertEqual(raised.exception.code, "turn_closed")
            self.assertEqual(turn.result(WAIT_MAX_S).outcomes, [])
            with self.assertRaises(Refused):
                turn.call("add", a=1)

    def test_a_turn_that_is_cancelled_while_it_grows_ends_with_its_calls(self) -> None:
        with scripted("Plain", add, wait_for_cancel) as engine, engine.session() as session:
            turn = session.turn()
            added = turn.add([("add", {"a": 1}), ("wait_for_cancel", {})])
            self.assertEqual(added[0].result(WAIT_MAX_S), 3)
            turn.cancel()
            turn.end()
            self.assertEqual([one.ok for one in turn.result(WAIT_MAX_S).outcomes], [True, False])
            with session.turn() as turn:
                turn.cancel()

    def test_a_session_that_somebody_else_has_closed(self) -> None:
        with scripted("IsClosed", add) as engine, engine.session("s") as session:
            for use in (
                lambda: session.call("add", a=1),
                lambda: session.dispatch(answer(("t1", "add", {"a": 1}))),
                lambda: session.turn().result(WAIT_MAX_S),
                session.definitions,
            ):
                with self.assertRaises(Refused) as raised:
                    use()
                self.assertEqual(raised.exception.code, "session_closed")
            session.close()
            self.assertEqual(engine.session("s").call("add", a=1), 3)

    def test_functions_that_end_as_none_should(self) -> None:
        class Unspeakable(Exception):
            def __str__(self) -> str:
                raise KeyError("no text")

        errors = {
            "exit": SystemExit(3),
            "interrupt": KeyboardInterrupt(),
            "base": BaseException("base"),
            "unspeakable": Unspeakable(),
            "never": ToolError("busy", kind="transient", retry_after=float("inf")),
            "half": ToolError("half a character: \ud800"),
        }

        @tool(side_effects="none")
        def fail(how: str) -> None:
            raise errors[how]

        @tool(side_effects="none")
        async def afail(how: str) -> None:
            raise errors[how]

        with scripted("Plain", fail, afail, add) as engine, engine.session() as session:
            for name in ("fail", "afail"):
                for how in errors:
                    with self.subTest(name=name, how=how), self.assertRaises(CallError):
                        session.call(name, how=how)
            self.assertEqual(session.call("add", a=1), 3)

    def test_an_answer_that_the_engine_refuses_is_a_failure(self) -> None:
        @tool(side_effects="none")
        def busy() -> None:
            raise ToolError("busy", kind="bussy")  # type: ignore[arg-type]

        with scripted("RefusesAnswers", busy, add) as engine, engine.session() as session:
            for name in ("busy", "add"):
                with self.assertRaisesRegex(CallError, "cannot be sent: no such"):
                    session.call(name, {"a": 1} if name == "add" else {})

    def test_a_function_that_is_refused_changes_nothing(self) -> None:
        other = tool(name="add", side_effects="none")(lambda a: -1)
        with scripted("RefusesTheSecond", add) as engine, engine.session() as session:
            with self.assertRaises(Refused):
                engine.register(other)
            with self.assertRaises(Refused):
                engine.register(tool(name="other", side_effects="none")(lambda a: -1))
            self.assertEqual(session.call("add", a=1), 3)
            with self.assertRaisesRegex(CallError, "no function"):
                session.call("other")

    def test_cancel(self) -> None:
        gone = threading.Event()

        @tool(side_effects="read")
        def hang(context: Context) -> None:
            context.cancelled.wait(WAIT_MAX_S)
            gone.set()

        with scripted("Plain", hang, wait_for_cancel, threads=1) as engine, engine.session() as session:
            for name in ("hang", "wait_for_cancel"):
                turn = session.start(answer(("t1", name, {})))
                with self.assertRaises(TimeoutError):
                    turn.result(timeout=0.01)
                turn.cancel("t1")
                self.assertEqual(self.failed(turn.result().outcomes[0]).code, "cancelled")
                turn.cancel()
            self.assertTrue(gone.wait(WAIT_MAX_S))

    def test_a_function_that_hangs_takes_no_thread_from_the_others(self) -> None:
        release = threading.Event()
        started = threading.Event()

        @tool(side_effects="read")
        def stuck() -> None:
            started.set()
            release.wait(WAIT_MAX_S)

        with scripted("Plain", stuck, add, threads=1) as engine, engine.session() as session:
            turn = session.start(answer(("t1", "stuck", {})))
            started.wait(WAIT_MAX_S)
            turn.cancel()
            turn.result()
            self.assertEqual(session.call("add", a=1), 3)
            release.set()
            self.assertEqual(session.batch([("add", {"a": n}) for n in range(20)]), [n + 2 for n in range(20)])

    def test_output_before_the_end(self) -> None:
        @tool(side_effects="read")
        def build(context: Context) -> str:
            context.emit("a")
            context.emit("b")
            return "built"

        with scripted("Plain", build) as engine, engine.session() as session:
            pieces: list[str] = []
            turn = session.dispatch(answer(("t1", "build", {})), on_delta=lambda delta: pieces.append(delta.text))
            self.assertEqual((pieces, turn.outcomes[0].value), (["a", "b"], "built"))
            running = session.start(answer(("t1", "build", {})), deltas=True)
            self.assertEqual([(one.call_id, one.text) for one in running.deltas()], [("t1", "a"), ("t1", "b")])
            with self.assertRaises(RuntimeError):
                session.start(answer(("t1", "build", {}))).deltas()

    def test_many_threads_and_many_turns(self) -> None:
        results: list[Any] = []

        with scripted("Plain", add) as engine, engine.session() as session:

            def work(base: int) -> None:
                for n in range(20):
                    results.append(session.call("add", a=base, b=n) == base + n)

            threads = [threading.Thread(target=work, args=(base,)) for base in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WAIT_MAX_S)
        self.assertEqual(results, [True] * 320)

    def test_large_things(self) -> None:
        @tool(side_effects="read")
        def echo(text: str) -> str:
            return text

        @tool(side_effects="read")
        def enormous() -> str:
            return "x" * (65 * 1024 * 1024)

        with scripted("Slow", echo, enormous) as engine, engine.session() as session:
            text = "ä" * 4_000_000
            self.assertEqual([one == text for one in session.batch([("echo", {"text": text})] * 4)], [True] * 4)
            with self.assertRaisesRegex(CallError, "cannot be sent: a line has at most"):
                session.call("enormous")
            with self.assertRaisesRegex(ValueError, "half a character"):
                session.call("echo", text="\ud800")
            self.assertEqual(session.call("echo", text="still there"), "still there")

    def test_who_sends_waits_while_too_much_has_not_been_written(self) -> None:
        with mock.patch("toolyard.wire.outbox.ROOM", 1), scripted("Slow", add) as engine, engine.session() as session:
            turns = [session.start(answer(("t1", "add", {"a": n, "b": 10**9}))) for n in range(200)]
            self.assertEqual([turn.result().outcomes[0].value for turn in turns], [n + 10**9 for n in range(200)])

    def test_a_program_that_dies_in_the_block_of_a_turn(self) -> None:
        with self.assertRaises(ProgramDied), scripted("DiesInTheMiddle", add) as engine:
            with engine.session() as session, session.turn() as turn:
                turn.call("add", a=1).result()

    def test_definitions_forks_and_bounds(self) -> None:
        with scripted("Plain") as engine:
            session = engine.session("s", capabilities={"tools": ["Read"]}, limits={"session_calls": 1})
            child = session.fork("child", only_tools=["Read"]).fork()
            self.assertEqual(child.agent, "root/child/1")
            (asked,) = child.definitions("anthropic")
            self.assertEqual((asked["asked"]["to"], asked["asked"]["agent"]), ("anthropic", "root/child/1"))
            child.close()
            session.close()

    def test_functions_come_and_go(self) -> None:
        with scripted("Plain") as engine, engine.session() as session:
            with self.assertRaisesRegex(CallError, "no function"):
                session.call("add", a=1)
            engine.register(add)
            self.assertEqual(session.call("add", a=1), 3)
            engine.unregister("add")
            with self.assertRaisesRegex(CallError, "no function"):
                session.call("add", a=1)

    def failed(self, outcome: Outcome) -> CallError:
        self.assertIsNotNone(outcome.error)
        assert outcome.error is not None
        return outcome.error


class Approvals(unittest.TestCase):
    def ask(self, script: str, *answers: Any) -> tuple[Outcome, list[Question]]:
        questions: list[Question] = []
        left = list(answers)

        def approve(question: Question) -> Any:
            questions.append(question)
            given = left.pop(0)
            return given(question) if callable(given) else given

        with scripted(script, add, approve=approve) as engine, engine.session() as session:
            return session.outcomes([("add", {"a": 1})])[0], questions

    def test_answers(self) -> None:
        for given, value in ((True, 3), ("always", 3), (Edit({"a": 10}), 12)):
            outcome, (question,) = self.ask("Asks", given)
            self.assertEqual(outcome.value, value)
        self.assertEqual((question.tool, question.arguments, question.changes, question.always),
                         ("add", {"a": 1}, "+ x", "add(*)"))  # fmt: skip
        self.assertEqual(str(question), "tool: add")
        for given, text in ((False, "denied: None"), (Deny("not on a Friday"), "denied: not on a Friday")):
            outcome, _ = self.ask("Asks", given)
            self.assertEqual((type(outcome.error), str(outcome.error)), (toolyard.PermissionDenied, text))

    def test_arguments_that_may_not_run_are_asked_about_again(self) -> None:
        outcome, questions = self.ask("Asks", Edit({"bad": True}), True)
        self.assertEqual([question.refused for question in questions], [None, "these may not run"])
        self.assertEqual(outcome.value, 3)

    def test_nothing_but_a_yes_is_a_yes(self) -> None:
        def raises(question: Question) -> Any:
            raise OSError("no terminal")

        def exits(question: Question) -> Any:
            sys.exit(1)

        for given in (None, 1, "yes", raises, exits, Edit(object())):
            outcome, _ = self.ask("Asks", given)
            self.assertIsInstance(outcome.error, toolyard.PermissionDenied, msg=repr(given))

    def test_a_question_that_ends_by_itself(self) -> None:
        outcome, questions = self.ask("Withdraws", lambda question: question.ended.wait(WAIT_MAX_S))
        self.assertEqual(str(outcome.error), "withdrawn")
        self.assertTrue(all(question.ended.wait(WAIT_MAX_S) for question in questions))

    def test_a_coroutine(self) -> None:
        async def approve(question: Question) -> bool:
            return True

        async def exits(question: Question) -> bool:
            sys.exit(1)

        # The second one is no coroutine function, and returns a coroutine all the same.
        for ask in (approve, lambda question: approve(question)):
            with scripted("Asks", add, approve=ask) as engine, engine.session() as session:
                self.assertEqual(session.call("add", a=1), 3)
        with scripted("Asks", add, approve=exits) as engine, engine.session() as session:
            with self.assertRaises(toolyard.PermissionDenied):
                session.call("add", a=1)


class Events(unittest.TestCase):
    def test_events_in_order_and_what_was_missed(self) -> None:
        seen: list[Any] = []

        def on_event(event: dict[str, Any]) -> None:
            seen.append((event["event"], event.get("seq"), event["cursor"]))
            raise SystemExit("is logged")

        with scripted("TellsEvents", add, on_event=on_event, events=["tool.called"]) as engine:
            engine.session().call("add", a=1)
        called = [("tool.called", number, f"e.{number}") for number in range(3)]
        self.assertEqual(seen, [*called, ("reset", None, "e.9")])


if __name__ == "__main__":
    unittest.main()
