"""How an engine with threads ends, against a scripted peer."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import unittest
from typing import Any
from unittest import mock

from support import WAIT_MAX_S, answer, scripted, setUpModule, tearDownModule

from toolyard import (
    Closed,
    Context,
    Engine,
    ProgramDied,
    ProgramNotFound,
    ProtocolError,
    Refused,
    tool,
)

KEPT = {"toolyard-tool", "toolyard-approve"}
"""Threads that wait a while for the next function, and end then."""


@tool(side_effects="read")
def add(a: int, b: int = 2) -> int:
    return a + b


@tool(side_effects="read")
async def wait_for_cancel() -> None:
    await asyncio.sleep(WAIT_MAX_S)


class Ends(unittest.TestCase):
    def test_a_program_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(ProgramNotFound, "`program` is 'no/such/program'"):
            Engine(program="no/such/program").start()
        with mock.patch.dict(os.environ, {"TOOLYARD_PROGRAM": "no/such"}):
            with self.assertRaisesRegex(ProgramNotFound, "TOOLYARD_PROGRAM is 'no/such'"):
                Engine().start()

    def test_the_program_is_found(self) -> None:
        from toolyard.wire.program import find_program

        with mock.patch.dict(os.environ, {"TOOLYARD_PROGRAM": sys.executable}):
            self.assertEqual(find_program(), sys.executable)

    def test_a_program_that_dies_says_why(self) -> None:
        with self.assertRaises(ProgramDied) as raised:
            scripted("DiesAtOnce").start()
        self.assertEqual(raised.exception.returncode, 2)
        self.assertIn("there is no such key", str(raised.exception))
        with self.assertRaises(ProgramDied) as raised, scripted("DiesInTheMiddle", add) as engine:
            with engine.session() as session:
                running = session.start(answer(("t1", "add", {"a": 1})))
                with self.assertRaises(ProgramDied):
                    running.result()
                session.call("add", a=1)
        self.assertEqual((raised.exception.returncode, raised.exception.stderr), (7, "ERROR the machine is on fire"))

    def test_garbage(self) -> None:
        with mock.patch("toolyard.core.PATIENCE_S", 0.1):
            with self.assertRaisesRegex(ProtocolError, "half a line"), scripted("WritesGarbage", add) as engine:
                engine.session().call("add", a=1)

    def test_what_is_new_is_ignored(self) -> None:
        with scripted("SaysWhatIsNew", add) as engine:
            self.assertEqual(engine.session().call("add", a=1), 3)

    def test_what_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "the name is taken"):
            scripted("RefusesToRegister", add).start()
        with scripted("RefusesTheTurn", add) as engine, engine.session() as session:
            with self.assertRaises(Refused) as raised:
                session.call("add", a=1)
            self.assertEqual((raised.exception.code, str(raised.exception)), ("too_many", "no; /turn: too many turns"))
            with self.assertRaises(Refused):
                session.dispatch(answer(("t1", "add", {"a": 1})))

    def test_use_before_and_after(self) -> None:
        engine = scripted("Plain", add)
        with self.assertRaisesRegex(Closed, "not started"):
            engine.session()
        with engine:
            session = engine.session()
        for use in (lambda: session.call("add", a=1), engine.session, lambda: session.dispatch(answer())):
            with self.assertRaisesRegex(Closed, "was closed"):
                use()
        session.close()
        engine.close()
        with self.assertRaises(RuntimeError):
            engine.start()

    def test_the_end_waits_for_turns_but_not_for_ever(self) -> None:
        started = threading.Event()

        @tool(side_effects="read")
        def slow(context: Context) -> bool:
            started.set()
            return context.cancelled.wait(WAIT_MAX_S)

        with mock.patch("toolyard.core.PATIENCE_S", 0.1):
            engine = scripted("Deaf", slow).start()
            turn = engine.session().start(answer(("t1", "slow", {})))
            started.wait(WAIT_MAX_S)
            engine.close(timeout=0.1)
        with self.assertRaises(Closed):
            turn.result(WAIT_MAX_S)

    def test_an_exception_in_the_block_waits_for_nothing(self) -> None:
        with self.assertRaises(KeyError), scripted("Plain", wait_for_cancel) as engine:
            turn = engine.session().start(answer(("t1", "wait_for_cancel", {})))
            raise KeyError
        with self.assertRaises(Closed):
            turn.result(WAIT_MAX_S)

    def test_closing_from_several_threads(self) -> None:
        engine = scripted("Plain", add).start()
        threads = [threading.Thread(target=engine.close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_MAX_S)
            self.assertFalse(thread.is_alive())

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_has_no_part_in_it(self) -> None:
        with scripted("Plain", add) as engine, engine.session() as session:
            child = os.fork()
            if child == 0:
                try:
                    session.call("add", a=1)
                except Closed:
                    os._exit(9)
                os._exit(1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 9)
            self.assertEqual(session.call("add", a=1), 3)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_does_not_keep_the_program_alive(self) -> None:
        engine = scripted("Plain", wait_for_cancel).start()
        engine.session().start(answer(("t1", "wait_for_cancel", {})))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            engine.close()
            os.read(read, 1)
            os._exit(0)
        os.close(read)
        assert engine._core is not None
        process = engine._core._process
        engine.close(timeout=0)
        # It has seen the end of its input, and no signal.
        self.assertEqual(process.wait(0), 0)
        os.close(write)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_an_engine_that_nobody_holds_ends(self) -> None:
        stopped = threading.Event()

        @tool(side_effects="none")
        async def watched() -> None:
            try:
                await asyncio.sleep(WAIT_MAX_S)
            finally:
                stopped.set()

        def use() -> tuple[Any, Any]:
            engine = scripted("Plain", add, watched, approve=lambda question: True, on_event=print).start()
            session = engine.session()
            del engine
            # Who has a session has its engine.
            self.assertEqual(session.call("add", a=1), 3)
            session.start(answer(("t1", "watched", {})))
            core = session._backend._core  # type: ignore[attr-defined]
            return core._process, core._link

        process, link = use()
        gc.collect()
        self.assertTrue(link.join(WAIT_MAX_S))
        self.assertEqual(process.wait(WAIT_MAX_S), 0)

    def test_a_program_that_ends_without_closing(self) -> None:
        text = f"""
import asyncio, sys, threading
sys.path[:0] = {sys.path!r}
from support import answer, scripted
from toolyard import tool
begun = threading.Semaphore(0)
@tool(side_effects="none")
def hang():
    begun.release(); threading.Event().wait()
@tool(side_effects="none")
async def ahang():
    begun.release(); await asyncio.sleep(600)
engine = scripted("Plain", hang, ahang, on_event=print).start()
engine.session().start(answer(("1", "hang", {{}}), ("2", "ahang", {{}})))
begun.acquire(); begun.acquire()
print("ends")
"""
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, timeout=WAIT_MAX_S, check=False
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ends\n", ""))

    def test_closing_what_has_died_is_no_error(self) -> None:
        with scripted("DiesInTheMiddle", add) as engine, engine.session() as session:
            running = session.start(answer(("t1", "add", {"a": 1})))
            with self.assertRaises(ProgramDied):
                running.result(WAIT_MAX_S)

    def test_the_log_is_passed_on(self) -> None:
        with self.assertLogs("toolyard.program", "ERROR") as logs, self.assertRaises(ProgramDied):
            with scripted("DiesInTheMiddle", add) as engine:
                engine.session().call("add", a=1)
        self.assertEqual(logs.records[0].getMessage(), "ERROR the machine is on fire")

    def test_no_thread_stays(self) -> None:
        for _ in range(3):
            with scripted("Plain", add, wait_for_cancel, on_event=print) as engine:
                engine.session().call("add", a=1)
        left = [one for one in threading.enumerate() if one.name.startswith("toolyard-") and one.name not in KEPT]
        for thread in left:
            thread.join(WAIT_MAX_S)
        self.assertEqual([thread.name for thread in left if thread.is_alive()], [])


if __name__ == "__main__":
    unittest.main()
