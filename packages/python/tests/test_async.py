"""The engine with asyncio, against a scripted peer."""

from __future__ import annotations

import asyncio
import threading
import unittest
from typing import Any
from unittest import mock

from support import WAIT_MAX_S, answer, ascripted, scripted, setUpModule, tearDownModule

from toolyard import AsyncEngine, Call, CallError, Closed, Context, Deny, ProgramDied, Question, Refused, tool


@tool(side_effects="read")
def add(a: int, b: int = 2) -> int:
    return a + b


@tool(side_effects="read")
async def aadd(a: int, b: int = 2) -> int:
    await asyncio.sleep(0)
    return a + b


@tool(side_effects="read")
async def hang() -> None:
    await asyncio.sleep(WAIT_MAX_S)


class Calls(unittest.IsolatedAsyncioTestCase):
    async def test_call_batch_dispatch(self) -> None:
        async with ascripted("Plain", add, aadd) as engine, engine.session("s") as session:
            self.assertEqual((engine.version, session.name, session.agent), ("0.0.0", "s", "root"))
            self.assertEqual(await session.call("aadd", a=1), 3)
            self.assertEqual(await session.call(Call("add", {"a": 1})), 3)
            self.assertEqual(await session.batch([("add", {"a": 1}), ("aadd", {"a": 2})]), [3, 4])
            turn = await session.dispatch(answer(("t1", "aadd", {"a": 1})))
            self.assertEqual((turn.messages, turn.outcomes[0].value), ([{"role": "user"}], 3))
            with self.assertRaises(CallError):
                await session.batch([("add", {"a": "x"})], raise_errors=True)
            several = await asyncio.gather(*(session.call("aadd", a=n) for n in range(50)))
            self.assertEqual(several, [n + 2 for n in range(50)])

    async def test_coroutines_run_on_the_loop_of_the_program(self) -> None:
        seen: list[Any] = []

        @tool(side_effects="read")
        async def where() -> None:
            seen.append(asyncio.get_running_loop())

        async with ascripted("Plain", where) as engine, engine.session() as session:
            await session.call("where")
        self.assertEqual(seen, [asyncio.get_running_loop()])

    async def test_a_turn_that_grows(self) -> None:
        async with ascripted("Plain", aadd, hang) as engine:
            session = await engine.session()
            async with session.turn() as turn:
                first = await turn.call("aadd", a=1)
                second, third = await turn.add([("aadd", {"a": 2}), Call("aadd", {"a": 3}, id="mine")])
                self.assertEqual([await first, await second, await third, third.id], [3, 4, 5, "mine"])
            self.assertEqual(len((await turn).outcomes), 3)
            with self.assertRaises(KeyError):
                async with session.turn() as turn:
                    hanging = await turn.call("hang")
                    raise KeyError
            outcome = await hanging.outcome()
            self.assertEqual(outcome.error and outcome.error.code, "cancelled")
            await session.close()

    async def test_a_growing_turn_is_not_waited_for_before_its_end(self) -> None:
        async with ascripted("Plain", aadd) as engine, engine.session() as session:
            turn = session.turn()
            with self.assertRaisesRegex(RuntimeError, "still grows"):
                await turn
            turn.end()
            self.assertEqual((await turn).outcomes, [])

    async def test_a_timeout_within_a_function_cancels_what_it_calls(self) -> None:
        stopped: list[str] = []

        @tool(side_effects="none")
        async def inner() -> None:
            try:
                await asyncio.sleep(WAIT_MAX_S)
            except asyncio.CancelledError:
                stopped.append("inner")
                raise

        @tool(side_effects="none")
        async def outer(context: Context) -> str:
            calls = asyncio.ensure_future(context.acall("inner"))
            while not calls.done():
                await asyncio.sleep(0.01)
                calls.cancel()
            while not stopped:
                await asyncio.sleep(0.01)
            return "went on"

        async with ascripted("Plain", inner, outer) as engine, engine.session() as session:
            self.assertEqual(await session.call("outer"), "went on")

    async def test_what_comes_too_late_for_a_turn_that_grows(self) -> None:
        async with ascripted("EndsMeanwhile", add) as engine, engine.session() as session, session.turn() as turn:
            late = await turn.call("add", a=1)
            with self.assertRaises(Refused) as raised:
                await late
            self.assertEqual(raised.exception.code, "turn_closed")
            with self.assertRaises(Refused):
                await turn.call("add", a=1)

    async def test_a_session_that_somebody_else_has_closed(self) -> None:
        async with ascripted("IsClosed", add) as engine, engine.session("s") as session:
            with self.assertRaises(Refused) as raised:
                await session.call("add", a=1)
            self.assertEqual(raised.exception.code, "session_closed")

    async def test_a_task_that_is_cancelled_cancels_its_calls(self) -> None:
        ended = asyncio.Event()
        begun = asyncio.Event()

        @tool(side_effects="read")
        async def watched(context: Context) -> None:
            begun.set()
            try:
                await asyncio.sleep(WAIT_MAX_S)
            finally:
                self.assertTrue(context.cancelled.is_set())
                ended.set()

        async with ascripted("Plain", watched) as engine, engine.session() as session:
            for start in (lambda: session.call("watched"), lambda: session.dispatch(answer(("t", "watched", {})))):
                task = asyncio.ensure_future(start())
                await begun.wait()
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                await ended.wait()
                begun.clear()
                ended.clear()

    async def test_output_before_the_end(self) -> None:
        @tool(side_effects="read")
        async def build(context: Context) -> str:
            context.emit("a")
            context.emit("b")
            return "built"

        async with ascripted("Plain", build) as engine, engine.session() as session:
            pieces: list[str] = []
            await session.dispatch(answer(("t1", "build", {})), on_delta=lambda delta: pieces.append(delta.text))
            running = await session.start(answer(("t1", "build", {})), deltas=True)
            pieces += [delta.text async for delta in running.deltas()]
            self.assertEqual((pieces, (await running).outcomes[0].value), (["a", "b", "a", "b"], "built"))

    async def test_tools_that_call_tools(self) -> None:
        @tool(side_effects="read")
        async def deep(n: int, context: Context) -> int:
            return 0 if n == 0 else 1 + await context.acall("deep", n=n - 1)

        @tool(side_effects="read")
        async def wrong(context: Context) -> None:
            context.call("deep", n=0)

        async with ascripted("Plain", deep, wrong) as engine, engine.session() as session:
            self.assertEqual(await session.call("deep", n=12), 12)
            with self.assertRaises(CallError) as raised:
                await session.call("wrong")
            self.assertEqual(raised.exception.code, "internal")

    async def test_approve(self) -> None:
        asked: list[str] = []

        async def approve(question: Question) -> Any:
            asked.append(question.tool)
            return Deny("no") if len(asked) > 1 else True

        async with ascripted("Asks", aadd, approve=approve) as engine, engine.session() as session:
            self.assertEqual(await session.call("aadd", a=1), 3)
            with self.assertRaisesRegex(CallError, "denied: no"):
                await session.call("aadd", a=1)

    async def test_a_coroutine_is_cancelled_when_its_question_ends(self) -> None:
        ended = asyncio.Event()

        async def approve(question: Question) -> bool:
            try:
                await asyncio.sleep(WAIT_MAX_S)
            finally:
                ended.set()
            return True

        async with ascripted("Withdraws", aadd, approve=approve) as engine, engine.session() as session:
            with self.assertRaisesRegex(CallError, "withdrawn"):
                await session.call("aadd", a=1)

    async def test_a_function_that_approves_does_not_stop_the_loop(self) -> None:
        event = threading.Event()

        def approve(question: Question) -> bool:
            return event.wait(WAIT_MAX_S)

        async with ascripted("Asks", aadd, approve=approve) as engine, engine.session() as session:
            call = asyncio.ensure_future(session.call("aadd", a=1))
            await asyncio.sleep(0)
            event.set()
            self.assertEqual(await call, 3)

    async def test_forks_definitions_functions(self) -> None:
        async with ascripted("Plain") as engine, engine.session("s") as session:
            child = await session.fork("child", only_tools=["Read"])
            (asked,) = await child.definitions("gemini")
            self.assertEqual((child.agent, asked["asked"]["to"]), ("root/child", "gemini"))
            await engine.register(aadd)
            self.assertEqual(await child.call("aadd", a=1), 3)
            await engine.unregister("aadd")
            with self.assertRaisesRegex(CallError, "no function"):
                await child.call("aadd", a=1)


class Ends(unittest.IsolatedAsyncioTestCase):
    async def test_who_sends_waits_while_too_much_has_not_been_written(self) -> None:
        with mock.patch("toolyard.wire.outbox.ROOM", 1):
            async with ascripted("Slow", aadd) as engine, engine.session() as session:
                sums = await asyncio.gather(*(session.call("aadd", a=n) for n in range(200)))
        self.assertEqual(sums, [n + 2 for n in range(200)])

    async def test_a_program_that_dies_says_why(self) -> None:
        with self.assertRaisesRegex(ProgramDied, "there is no such key"):
            await ascripted("DiesAtOnce", add).start()
        with self.assertRaisesRegex(ProgramDied, "on fire"):
            async with ascripted("DiesInTheMiddle", add) as engine:
                await (await engine.session()).call("add", a=1)

    async def test_what_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "the name is taken"):
            await ascripted("RefusesToRegister", add, aadd).start()

    async def test_use_before_and_after(self) -> None:
        engine = ascripted("Plain", add)
        with self.assertRaisesRegex(Closed, "not started"):
            await engine.session()
        async with engine:
            session = await engine.session()
        with self.assertRaisesRegex(Closed, "was closed"):
            await session.call("add", a=1)
        await session.close()
        await engine.close()

    async def test_the_end_waits_but_not_for_ever(self) -> None:
        with mock.patch("toolyard.core.PATIENCE_S", 0.1):
            engine: AsyncEngine = await ascripted("Deaf", hang).start()
            turn = await (await engine.session()).start(answer(("t1", "hang", {})))
            await engine.close(timeout=0.1)
        with self.assertRaises(Closed):
            await turn


class Loops(unittest.TestCase):
    def test_a_loop_that_is_closed_before_its_engine(self) -> None:
        async def approve(question: Question) -> bool:
            return True

        async def begin() -> tuple[AsyncEngine, Any]:
            engine = await ascripted("Plain", aadd, add, approve=approve).start()
            return engine, await engine.session()

        async def go_on(engine: AsyncEngine, session: Any) -> None:
            with self.assertRaises(CallError):
                await session.call("aadd", a=1)
            self.assertEqual(await session.call("add", a=1), 3)
            await engine.close()

        asyncio.run(go_on(*asyncio.run(begin())))


class Coroutines(unittest.TestCase):
    def test_coroutines_in_an_engine_with_threads_share_one_loop(self) -> None:
        loops: set[int] = set()

        @tool(side_effects="read")
        async def where() -> None:
            loops.add(id(asyncio.get_running_loop()))

        with scripted("Plain", where) as engine, engine.session() as session:
            session.batch(["where", "where"])
            session.call("where")
        self.assertEqual(len(loops), 1)


if __name__ == "__main__":
    unittest.main()
