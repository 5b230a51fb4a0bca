"""Agents that are written with toolyard_agent: under the real program, and against a scripted peer.

``TOOLYARD`` names the program; without it the first kind is skipped, and fails where ``CI`` is ``true``. What a
supervisor does rarely, such as half a line or an end in the middle of a call, a scripted peer does over two pipes.
They are AG-1 to AG-4 as an agent sees them.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import toolyard_agent
from toolyard_agent import Disconnected, FsDenied, ProtocolError, Shutdown, ToolError, ToolFailed, ToolNotFound

HERE = Path(__file__).resolve().parent

WAIT_MAX_S = 120

WELCOME = {
    "op": "welcome",
    "protocol": 1,
    "agent": "root/writer",
    "input": {"task": "x"},
    "tools": [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}, "side_effects": "read"}],
}


def setUpModule() -> None:
    faulthandler.dump_traceback_later(3 * WAIT_MAX_S, exit=True)


def tearDownModule() -> None:
    faulthandler.cancel_dump_traceback_later()


class Peer:
    """The other end of a channel, which does what its script says."""

    def __init__(self, reads: IO[bytes], writes: IO[bytes]) -> None:
        self._reads = reads
        self._writes = writes

    def read(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(next(line for line in self._reads if line != b"\n"))
        return message

    def read_all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._reads]

    def send(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        self._writes.write(data)
        self._writes.flush()

    def answer(self, call: dict[str, Any], result: Any = None, **more: Any) -> None:
        result = call["args"] if result is None else result
        self.send({"op": "tool_response", "tool_call_id": call["tool_call_id"], "ok": True, "result": result, **more})

    def deny(self, call: dict[str, Any], slug: str, message: str = "no", **more: Any) -> None:
        answer = {"op": "tool_response", "tool_call_id": call["tool_call_id"], "ok": False, "error": slug}
        self.send({**answer, "message": message, **more})

    def refuse(self, op: str, message: dict[str, Any], line: int = 9) -> None:
        about = {"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}
        self.send({"op": "error", "message": "no", "line": line, "refused": op, **about})

    def welcome(self) -> dict[str, Any]:
        hello = self.read()
        self.send(WELCOME)
        return hello

    def close(self) -> None:
        """Ends the agent's input."""
        self._writes.close()

    def close_all(self) -> None:
        self._writes.close()
        self._reads.close()


class Pipes(Peer):
    """A peer over two pipes."""

    def __init__(self) -> None:
        self.agent_reads, writes = os.pipe()
        reads, self.agent_writes = os.pipe()
        super().__init__(os.fdopen(reads, "rb"), os.fdopen(writes, "wb"))


Script = Callable[[Peer], Any]


class Scripted:
    """Runs a script against the agent of a test; leaving it waits for the script and raises what went wrong in it."""

    def __init__(self, script: Script) -> None:
        self.peer = Pipes()
        self.said: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(script,))

    def _run(self, script: Script) -> None:
        try:
            self.said = script(self.peer)
        except BaseException as error:
            self._error = error
        finally:
            self.peer.close()

    @property
    def channel(self) -> tuple[int, int]:
        return self.peer.agent_reads, self.peer.agent_writes

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._thread.join()
        self.peer.close_all()
        if self._error is not None:
            raise self._error


def counted(agent: Any) -> list[int]:
    """How many calls are in flight, each time that one is opened."""
    protocol, open_one = agent._protocol, agent._protocol.open
    counts: list[int] = []

    def opening(call: Any) -> None:
        open_one(call)
        counts.append(len(protocol.pending))

    protocol.open = opening
    return counts


class Threads(unittest.TestCase):
    """The agent for threads, against a scripted peer."""

    def agent(self, script: Script, **options: Any) -> tuple[toolyard_agent.Agent, Scripted]:
        """An agent that was welcomed by a peer, which then does what the script says."""

        def welcoming(peer: Peer) -> Any:
            peer.welcome()
            return script(peer)

        scripted = self.enter(Scripted(welcoming))
        agent = toolyard_agent.connect(channel=scripted.channel, **options)
        self.addCleanup(os.close, scripted.peer.agent_writes)
        self.addCleanup(os.close, scripted.peer.agent_reads)
        # The reader ends with its input; only then its descriptor may be closed.
        self.addCleanup(agent._reader.join)
        return agent, scripted

    def enter(self, scripted: Scripted) -> Scripted:
        scripted.__enter__()
        self.addCleanup(scripted.__exit__, None, None, None)
        return scripted

    def test_the_welcome_tells_who_the_agent_is(self) -> None:
        agent, _ = self.agent(lambda peer: None)
        self.assertEqual((agent.name, agent.input), ("root/writer", {"task": "x"}))
        self.assertEqual(list(agent.tools), ["Read"])
        self.assertEqual(agent.tools["Read"]["side_effects"], "read")

    def test_a_call_gives_its_result_and_its_meta(self) -> None:
        def script(peer: Peer) -> Any:
            call = peer.read()
            peer.answer(call, {"content": "milk"}, meta={"attempts": 2}, note="changed")
            return call

        agent, scripted = self.agent(script)
        call = agent.tools.start("Read", path="/a", meta={"timeout_ms": 5, "idempotency_key": "k"})
        self.assertEqual(call.result(), {"content": "milk"})
        self.assertEqual((call.meta, call.note), ({"attempts": 2}, "changed"))
        self.assertFalse(call.cancel(), "it has been answered")
        scripted._thread.join()
        self.assertEqual(
            scripted.said,
            {
                "op": "tool_call",
                "tool_call_id": call.id,
                "tool": "Read",
                "args": {"path": "/a"},
                "meta": {"timeout_ms": 5, "idempotency_key": "k"},
            },
        )

    def test_each_word_for_a_failure_has_its_exception(self) -> None:
        words = {
            "tool_not_found": toolyard_agent.ToolNotFound,
            "permission_denied": toolyard_agent.PermissionDenied,
            "fs_denied": toolyard_agent.FsDenied,
            "invalid_args": toolyard_agent.InvalidArgs,
            "tool_failed": toolyard_agent.ToolFailed,
            "a_later_word": toolyard_agent.ToolFailed,
        }
        meta = {"code": "timeout", "outcome": "unknown", "retryable": True, "retry_after_ms": 7, "attempts": 3}

        def script(peer: Peer) -> None:
            for word in words:
                peer.deny(peer.read(), word, f"told by {word}", meta=meta)

        agent, _ = self.agent(script)
        for word, kind in words.items():
            with self.assertRaises(ToolError) as raised:
                agent.call("Read")
            error = raised.exception
            self.assertIs(type(error), kind)
            self.assertEqual((error.slug, error.message, str(error)), (word, f"told by {word}", f"told by {word}"))
            self.assertEqual((error.code, error.outcome, error.retryable), ("timeout", "unknown", True))
            self.assertEqual((error.retry_after_ms, error.meta["attempts"], error.tool), (7, 3, "Read"))

    def test_a_batch_is_in_the_order_of_its_calls_whatever_the_order_of_answers(self) -> None:
        def script(peer: Peer) -> None:
            for _ in range(2):
                first, second, third = peer.read(), peer.read(), peer.read()
                peer.answer(third)
                peer.deny(second, "fs_denied")
                peer.answer(first)

        agent, _ = self.agent(script)
        batch: list[toolyard_agent.BatchEntry] = [
            ("Read", {"n": 1}),
            ("Read", {"n": 2}),
            ("Read", {"n": 3}, {"meta": {"timeout_ms": 1}}),
        ]
        one, two, three = agent.tools.batch(batch)
        self.assertEqual((one, three), ({"n": 1}, {"n": 3}))
        self.assertIsInstance(two, FsDenied)
        with self.assertRaises(FsDenied):
            agent.tools.batch(batch, raise_errors=True)

    def test_all_calls_are_sent_before_the_first_answer_is_read(self) -> None:
        count = toolyard_agent.IN_FLIGHT_MAX

        def script(peer: Peer) -> None:
            for call in [peer.read() for _ in range(count)]:
                peer.answer(call)

        agent, _ = self.agent(script)
        results = agent.tools.batch([("Echo", {"n": n, "text": "x" * 2_000}) for n in range(count)])
        self.assertEqual([result["n"] for result in results], list(range(count)))

    def test_a_call_for_which_there_is_no_room_waits_for_an_answer(self) -> None:
        count = toolyard_agent.IN_FLIGHT_MAX
        full = threading.Event()

        def script(peer: Peer) -> None:
            calls = [peer.read() for _ in range(count)]
            full.wait()
            peer.answer(calls.pop())
            for call in [*calls, peer.read()]:
                peer.answer(call)

        agent, _ = self.agent(script)
        in_flight = counted(agent)
        calls = [agent.tools.start("Echo") for _ in range(count)]
        full.set()
        calls.append(agent.tools.start("Echo"))
        self.assertEqual(max(in_flight), count)
        self.assertEqual([call.result() for call in calls], [{}] * (count + 1))

    def test_threads_share_an_agent(self) -> None:
        def script(peer: Peer) -> None:
            for _ in range(400):
                peer.answer(peer.read())

        agent, _ = self.agent(script)
        wrong: list[Any] = []

        def work(thread: int) -> None:
            for n in range(50):
                args = {"thread": thread, "n": n, "text": "y" * 5_000}
                if agent.call("Echo", args) != args:
                    wrong.append(args)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_lines_may_come_in_pieces_and_end_in_other_ways(self) -> None:
        def script(peer: Peer) -> None:
            call = peer.read()
            answer = {
                "op": "tool_response",
                "tool_call_id": call["tool_call_id"],
                "ok": True,
                "result": {"text": "é" * 9},
            }
            data = b"\n\r\n" + json.dumps(answer, ensure_ascii=False).encode() + b"\r\n"
            for byte in data:
                peer.send_bytes(bytes([byte]))
            first, second = peer.read(), peer.read()
            both = [{"op": "tool_response", "tool_call_id": one["tool_call_id"], "ok": True} for one in (first, second)]
            peer.send_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in both) + b'{"op":"tool_resp')

        agent, _ = self.agent(script)
        self.assertEqual(agent.call("Echo"), {"text": "é" * 9})
        self.assertEqual(agent.tools.batch([("Echo", {}), ("Echo", {})]), [{}, {}])

    def test_what_a_later_supervisor_may_say_is_ignored(self) -> None:
        def script(peer: Peer) -> None:
            peer.send({"op": "news", "text": "…"})
            peer.answer(peer.read(), more=1)

        agent, _ = self.agent(script)
        self.assertEqual(agent.call("Echo", {"a": 1}), {"a": 1})

    def test_an_answer_to_no_call_is_told_and_changes_nothing(self) -> None:
        def script(peer: Peer) -> None:
            call = peer.read()
            peer.answer({"tool_call_id": "nobody", "args": {}})
            peer.answer(call)

        agent, _ = self.agent(script)
        with self.assertLogs("toolyard_agent") as logs:
            self.assertEqual(agent.call("Echo", {"a": 1}), {"a": 1})
        self.assertIn("nobody", logs.output[0])

    def test_a_refused_line_ends_its_call(self) -> None:
        def script(peer: Peer) -> None:
            peer.refuse("tool_call", peer.read(), line=3)
            peer.answer(peer.read())

        agent, _ = self.agent(script)
        with self.assertRaises(ProtocolError) as raised:
            agent.call("Echo")
        self.assertEqual((str(raised.exception), raised.exception.line), ("no", 3))
        self.assertEqual(agent.call("Echo", {"a": 1}), {"a": 1})

    def test_a_refused_cancel_does_not_end_its_call_and_is_sent_once(self) -> None:
        def script(peer: Peer) -> Any:
            call, cancel, turn_end = peer.read(), peer.read(), peer.read()
            peer.refuse("cancel", call)
            peer.answer(call)
            return [cancel["op"], turn_end["op"]]

        agent, scripted = self.agent(script)
        with self.assertLogs("toolyard_agent"):
            call = agent.tools.start("Echo", a=1)
            self.assertTrue(call.cancel())
            self.assertTrue(call.cancel())
            agent.turn_end()
            self.assertEqual(call.result(), {"a": 1})
        scripted._thread.join()
        self.assertEqual(scripted.said, ["cancel", "turn_end"])

    def test_a_supervisor_that_does_not_welcome_is_an_error(self) -> None:
        scripted = self.enter(Scripted(lambda peer: peer.refuse("hello", peer.read())))
        with self.assertRaisesRegex(ProtocolError, "no"):
            toolyard_agent.connect(channel=scripted.channel)
        scripted = self.enter(Scripted(lambda peer: peer.read()))
        with self.assertRaises(Disconnected):
            toolyard_agent.connect(channel=scripted.channel)

    def test_what_was_printed_before_is_refused_and_harms_nothing(self) -> None:
        def script(peer: Peer) -> None:
            if peer._reads.readline() == b"loading\n":
                peer.send({"op": "error", "message": "no JSON", "line": 1})
            peer.welcome()

        scripted = self.enter(Scripted(script))
        os.write(scripted.peer.agent_writes, b"loading")
        with self.assertLogs("toolyard_agent"):
            self.assertEqual(toolyard_agent.connect(channel=scripted.channel).name, "root/writer")

    def test_the_end_of_input_reaches_everyone_who_waits(self) -> None:
        def script(peer: Peer) -> None:
            for _ in range(3):
                peer.read()

        agent, _ = self.agent(script)
        calls = [agent.tools.start("Echo") for _ in range(3)]
        for call in calls:
            with self.assertRaisesRegex(Disconnected, "closed the channel"):
                call.result()
        self.assertEqual(list(calls[0].deltas()), [])
        with self.assertRaises(Disconnected):
            agent.call("Echo")
        with self.assertRaises(Disconnected):
            agent.tools.batch([("Echo", {})])

    def test_after_a_shutdown_what_runs_is_answered_and_only_a_bye_may_follow(self) -> None:
        def script(peer: Peer) -> Any:
            call = peer.read()
            peer.send({"op": "shutdown", "grace_ms": 3_000})
            peer.deny(call, "tool_failed", meta={"code": "cancelled"}, note="changed")
            peer.close()
            return peer.read()

        agent, scripted = self.agent(script)
        with self.assertRaises(ToolFailed) as raised:
            agent.call("Echo")
        self.assertEqual((raised.exception.code, raised.exception.note), ("cancelled", "changed"))
        with self.assertRaises(Shutdown) as stopped, agent:
            agent.call("Echo")
        with agent:
            agent.bye({"partial": 1})
        scripted._thread.join()
        self.assertEqual(scripted.said, {"op": "bye", "result": {"partial": 1}})
        self.assertEqual(stopped.exception.grace_ms, 3_000)
        assert agent.stopping is not None
        self.assertEqual(agent.stopping.grace_ms, 3_000)

    def test_the_end_of_input_after_a_shutdown_is_a_shutdown(self) -> None:
        def script(peer: Peer) -> None:
            peer.read()
            peer.send({"op": "shutdown", "grace_ms": 1})

        agent, _ = self.agent(script)
        with self.assertRaises(Shutdown):
            agent.call("Echo")

    def test_a_supervisor_that_does_not_read_is_told_of(self) -> None:
        closed = threading.Event()

        def script(peer: Peer) -> None:
            call = peer.read()
            peer._reads.close()
            closed.set()
            peer.answer(call)

        agent, _ = self.agent(script)
        call = agent.tools.start("Echo", a=1)
        closed.wait()
        with self.assertRaisesRegex(Disconnected, "does not read|closed the channel"):
            agent.turn_end()
        self.assertEqual(call.result(), {"a": 1}, "what it has answered before is read")

    def test_a_line_that_is_none_of_the_protocol_ends_all_calls(self) -> None:
        for line in (b"what?\n", b"[1]\n", b'{"no":"op"}\n', b"\xff\n", b"[" * 100_000 + b"\n"):

            def script(peer: Peer, line: bytes = line) -> None:
                peer.read()
                peer.send_bytes(line)

            agent, _ = self.agent(script)
            with self.assertRaisesRegex(ProtocolError, "none of the protocol"):
                agent.call("Echo")

    def test_deltas_come_before_the_end(self) -> None:
        def script(peer: Peer) -> None:
            for _ in range(2):
                call = peer.read()
                for text in ("a", "b"):
                    peer.send({"op": "tool_delta", "tool_call_id": call["tool_call_id"], "text": text})
                peer.answer(call)
            peer.send({"op": "tool_delta", "tool_call_id": "nobody", "text": "c"})

        agent, _ = self.agent(script, deltas=True)
        texts: list[str] = []
        agent.tools.call("Build", on_delta=texts.append)
        call = agent.tools.start("Build")
        self.assertEqual((texts, list(call.deltas()), call.result()), (["a", "b"], ["a", "b"], {}))

    def test_deltas_have_to_be_asked_for(self) -> None:
        agent, _ = self.agent(lambda peer: None)
        with self.assertRaisesRegex(ValueError, "deltas=True"):
            agent.tools.call("Build", on_delta=print)

    def test_a_call_that_nobody_waits_for_any_more_is_cancelled(self) -> None:
        def script(peer: Peer) -> Any:
            call = peer.read()
            peer.send({"op": "tool_delta", "tool_call_id": call["tool_call_id"], "text": "a"})
            cancel = peer.read()
            peer.deny(call, "tool_failed")
            return cancel == {"op": "cancel", "tool_call_id": call["tool_call_id"]}

        agent, scripted = self.agent(script, deltas=True)

        def interrupt(_: str) -> None:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            agent.tools.call("Build", on_delta=interrupt)
        scripted._thread.join()
        self.assertTrue(scripted.said)

    def test_after_names_the_calls_that_have_not_been_answered(self) -> None:
        def script(peer: Peer) -> Any:
            peer.answer(peer.read())
            calls = [peer.read() for _ in range(4)]
            for call in calls:
                peer.answer(call)
            return [call.get("after", "none") for call in calls]

        agent, scripted = self.agent(script)
        done = agent.tools.start("Echo")
        done.result()
        one = agent.tools.start("Echo")
        agent.tools.start("Echo", after=[done, one, "mine"])
        agent.tools.start("Echo", {"after": "an argument"}, after=[])
        agent.tools.start("Echo").result()
        scripted._thread.join()
        self.assertEqual(scripted.said, ["none", [one.id, "mine"], [], "none"])

    def test_a_with_block_says_bye_unless_it_fails(self) -> None:
        agent, scripted = self.agent(lambda peer: peer.read())
        with agent:
            pass
        scripted._thread.join()
        self.assertEqual(scripted.said, {"op": "bye"})

        def both(peer: Peer) -> Any:
            return [message["op"] for message in (peer.read() for _ in range(5))]

        agent, scripted = self.agent(both)
        with self.assertRaises(ZeroDivisionError), agent:
            raise ZeroDivisionError
        with agent:
            agent.turn_end()
            call = agent.tools.start("Echo")
            agent.turn_end()
            agent.bye(None)
            for send in (agent.bye, agent.turn_end, lambda: agent.call("Echo")):
                with self.assertRaisesRegex(ProtocolError, "has said bye"):
                    send()
            self.assertTrue(call.cancel(), "what runs may still be cancelled")
        scripted._thread.join()
        self.assertEqual(scripted.said, ["turn_end", "tool_call", "turn_end", "bye", "cancel"])

    def test_what_makes_no_line_is_not_sent(self) -> None:
        agent, _ = self.agent(lambda peer: peer.answer(peer.read()))
        for args in ({"n": float("nan")}, {"text": "\ud800"}, {"text": "x" * toolyard_agent.LINE_MAX}):
            with self.assertRaises(ValueError):
                agent.call("Echo", args)
        with self.assertRaises(TypeError):
            agent.call("Echo", thing=object())
        self.assertEqual(agent.call("Echo", {"a": 1}), {"a": 1})

    def test_a_callback_on_the_reading_thread_must_not_send(self) -> None:
        answer = threading.Event()

        def script(peer: Peer) -> None:
            call = peer.read()
            answer.wait()
            peer.answer(call)

        agent, _ = self.agent(script)
        raised: list[BaseException] = []
        ended = threading.Event()

        def back(_: Any) -> None:
            try:
                agent.call("Echo")
            except RuntimeError as error:
                raised.append(error)
            ended.set()

        call = agent.tools.start("Echo")
        call.add_done_callback(back)
        answer.set()
        ended.wait()
        self.assertRegex(str(raised[0]), "must not send")


class Tasks(unittest.IsolatedAsyncioTestCase):
    """The agent for asyncio, against a scripted peer."""

    async def asyncSetUp(self) -> None:
        # These tests run in the debug mode of asyncio, which would tell of each slow step.
        asyncio.get_running_loop().slow_callback_duration = 60

    def connect(self, script: Script, **options: Any) -> Any:
        def welcoming(peer: Peer) -> Any:
            peer.welcome()
            return script(peer)

        self.scripted = Scripted(welcoming)
        self.scripted.__enter__()
        self.addCleanup(self.scripted.__exit__, None, None, None)
        return toolyard_agent.aconnect(channel=self.scripted.channel, **options)

    def said(self) -> Any:
        self.scripted._thread.join()
        return self.scripted.said

    async def test_calls_run_together_and_keep_the_order_of_their_tasks(self) -> None:
        count = toolyard_agent.IN_FLIGHT_MAX

        def script(peer: Peer) -> Any:
            calls = [peer.read() for _ in range(count)]
            for call in reversed(calls):
                peer.answer(call)
            calls += [peer.read() for _ in range(500)]
            for call in calls[count:]:
                peer.answer(call)
            return [call["args"]["n"] for call in calls]

        async with self.connect(script) as agent:
            self.assertEqual((agent.name, list(agent.tools)), ("root/writer", ["Read"]))
            in_flight = counted(agent)
            tasks = [agent.call("Echo", n=n, text="x" * 2_000) for n in range(count + 500)]
            results = await asyncio.gather(*tasks)
        self.assertEqual(max(in_flight), count)
        self.assertEqual([result["n"] for result in results], list(range(count + 500)))
        self.assertEqual(self.said(), list(range(count + 500)))

    async def test_a_cancelled_task_cancels_its_call(self) -> None:
        sent = threading.Event()

        def script(peer: Peer) -> Any:
            call = peer.read()
            sent.set()
            cancel = peer.read()
            peer.deny(call, "tool_failed")
            peer.answer(peer.read())
            return cancel == {"op": "cancel", "tool_call_id": call["tool_call_id"]}

        async with self.connect(script) as agent:
            task = asyncio.ensure_future(agent.call("Echo"))
            await asyncio.get_running_loop().run_in_executor(None, sent.wait)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(await agent.call("Echo", {"a": 1}), {"a": 1})
        self.assertTrue(self.said())

    async def test_two_may_wait_for_one_call(self) -> None:
        def script(peer: Peer) -> None:
            call = peer.read()
            peer.read()
            peer.answer(call)

        async with self.connect(script) as agent:
            call = await agent.tools.start("Echo", a=1)

            async def wait() -> Any:
                return await call

            first, second = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
            await asyncio.wait([first], timeout=0)
            first.cancel()
            self.assertEqual(await second, {"a": 1})
            self.assertTrue(first.cancelled() and call.done())
            self.assertFalse(call.cancel())

    async def test_a_batch_has_results_and_errors_in_the_order_of_its_calls(self) -> None:
        def script(peer: Peer) -> None:
            for _ in range(2):
                first, second = peer.read(), peer.read()
                peer.deny(second, "tool_not_found")
                peer.answer(first)

        async with self.connect(script) as agent:
            first, second = await agent.tools.batch([("Echo", {"a": 1}), ("Nope", {})])
            self.assertEqual(first, {"a": 1})
            self.assertIsInstance(second, ToolNotFound)
            with self.assertRaises(ToolNotFound):
                await agent.tools.batch([("Echo", {}), ("Nope", {}, {"after": []})], raise_errors=True)
            self.assertEqual(await agent.tools.batch([]), [])

    async def test_deltas_come_before_the_end(self) -> None:
        def script(peer: Peer) -> None:
            for _ in range(2):
                call = peer.read()
                for text in ("a", "b"):
                    peer.send({"op": "tool_delta", "tool_call_id": call["tool_call_id"], "text": text})
                peer.answer(call)

        async with self.connect(script, deltas=True) as agent:
            texts: list[str] = []
            await agent.call("Build", on_delta=texts.append)
            call = await agent.tools.start("Build")
            self.assertEqual((texts, [text async for text in call.deltas()]), (["a", "b"], ["a", "b"]))
            self.assertEqual(await call, {})

    async def test_the_end_of_input_reaches_everyone_who_waits(self) -> None:
        def script(peer: Peer) -> None:
            for _ in range(3):
                peer.read()

        async with self.connect(script) as agent:
            ended = await asyncio.gather(*(agent.call("Echo") for _ in range(3)), return_exceptions=True)
            self.assertEqual([type(one) for one in ended], [Disconnected] * 3)
            with self.assertRaises(Disconnected):
                await agent.call("Echo")

    async def test_after_a_shutdown_what_runs_is_answered_and_only_a_bye_may_follow(self) -> None:
        def script(peer: Peer) -> Any:
            call = peer.read()
            peer.send({"op": "shutdown", "grace_ms": 3_000})
            peer.deny(call, "tool_failed")
            peer.close()
            return peer.read()

        async with self.connect(script) as agent:
            with self.assertRaises(ToolFailed):
                await agent.call("Echo")
            with self.assertRaises(Shutdown):
                await agent.call("Echo")
            self.assertEqual(agent.stopping.grace_ms, 3_000)
            await agent.bye({"partial": 1})
        self.assertEqual(self.said(), {"op": "bye", "result": {"partial": 1}})

    async def test_a_line_that_is_none_of_the_protocol_ends_all_calls(self) -> None:
        def script(peer: Peer) -> None:
            peer.read()
            peer.send_bytes(b"what?\n")

        async with self.connect(script) as agent:
            with self.assertRaisesRegex(ProtocolError, "none of the protocol"):
                await agent.call("Echo")

    async def test_a_supervisor_that_does_not_welcome_is_an_error(self) -> None:
        with Scripted(lambda peer: peer.refuse("hello", peer.read())) as scripted:
            with self.assertRaisesRegex(ProtocolError, "no"):
                await toolyard_agent.aconnect(channel=scripted.channel)

    async def test_a_block_says_bye_with_or_without_a_result(self) -> None:
        async with self.connect(lambda peer: peer.read_all()) as agent:
            await agent.turn_end()
            await agent.bye({"n": 1})
        self.assertEqual(self.said(), [{"op": "turn_end"}, {"op": "bye", "result": {"n": 1}}])
        async with self.connect(lambda peer: peer.read_all()):
            pass
        self.assertEqual(self.said(), [{"op": "bye"}])
        with self.assertRaises(ZeroDivisionError):
            async with self.connect(lambda peer: peer.read_all()):
                raise ZeroDivisionError
        self.assertEqual(self.said(), [])


class OnDescriptorThree(unittest.TestCase):
    """An agent as a process of its own, whose channel is a socket, against a scripted peer."""

    def check(self, source: str) -> None:
        ours, theirs = socket.socketpair()
        # As an event loop of a supervisor may leave it.
        theirs.setblocking(False)
        with ours, theirs, tempfile.TemporaryFile() as printed:
            begin = f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
            # The shell moves the socket to descriptor 3, where the process of this test has something else.
            command = ["sh", "-c", f'exec 3<&{theirs.fileno()} "$@"', "sh", sys.executable, "-B", "-W", "error", "-c"]
            agent = subprocess.Popen(
                [*command, begin + textwrap.dedent(source)],
                pass_fds=[theirs.fileno()],
                stdout=printed,
                env={**os.environ, "TOOLYARD_CHANNEL": "fd3"},
            )
            theirs.close()
            with agent, ours.makefile("rb") as reads, ours.makefile("wb") as writes:
                self.play(Peer(reads, writes), lambda: ours.shutdown(socket.SHUT_WR))
            printed.seek(0)
            self.assertEqual((agent.returncode, printed.read()), (0, b"printed\n"))

    def play(self, peer: Peer, end_of_input: Callable[[], None]) -> None:
        peer.welcome()
        for call in [peer.read() for _ in range(200)]:
            peer.answer(call)
        call, _ = peer.read(), peer.read()
        peer.send({"op": "shutdown", "grace_ms": 3_000})
        peer.deny(call, "tool_failed")
        end_of_input()
        self.assertEqual(peer.read(), {"op": "bye", "result": [200, "ToolFailed", "Shutdown"]})

    def test_threads(self) -> None:
        self.check("""
            import toolyard_agent

            with toolyard_agent.connect() as agent:
                print("printed")
                results = agent.tools.batch([("Echo", {"text": "x" * 5_000})] * 200, raise_errors=True)
                calls = [agent.tools.start("Echo") for _ in range(2)]
                agent.bye([len(results), *(type(call.exception()).__name__ for call in calls)])
        """)

    def test_tasks(self) -> None:
        self.check("""
            import asyncio
            import toolyard_agent

            async def main():
                async with toolyard_agent.aconnect() as agent:
                    print("printed")
                    results = await asyncio.gather(*(agent.call("Echo", text="x" * 5_000) for _ in range(200)))
                    calls = [agent.call("Echo") for _ in range(2)]
                    ended = await asyncio.gather(*calls, return_exceptions=True)
                    await agent.bye([len(results), *(type(one).__name__ for one in ended)])

            asyncio.run(main())
        """)


PROGRAM = os.environ.get("TOOLYARD")


class Supervised(unittest.TestCase):
    """Agents under the real program. What an agent tells is the result of its bye, which stands in the report."""

    @classmethod
    def setUpClass(cls) -> None:
        if PROGRAM is None:
            if os.environ.get("CI") == "true":
                raise AssertionError("TOOLYARD has to name the program `toolyard`")
            raise unittest.SkipTest("TOOLYARD does not name the program `toolyard`")

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.data = self.folder / "data"
        self.data.mkdir()

    def start(self, source: str, *options: str, tools: str = "Echo,Read,Write") -> subprocess.Popen[str]:
        """Starts an agent of this source, in which `data` is the folder that its calls may use."""
        may = ["--tools", tools, "--fs", f"rw:{self.data}", "--read", str(HERE), "--read", sys.base_prefix]
        return self.supervise(*may, *options, "--", *self.command(source))

    def command(self, source: str) -> list[str]:
        begin = f"import sys; sys.path.insert(0, {str(HERE)!r}); data = {str(self.data)!r}\n"
        agent = self.folder / "agent.py"
        agent.write_text(begin + textwrap.dedent(source))
        return [sys.executable, "-B", "-W", "error", str(agent)]

    def supervise(self, *args: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [str(PROGRAM), "supervise", "--report", "json", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TOOLYARD_LOG": "toolyard_agents=info"},
            text=True,
            cwd=self.folder,
        )
        # An agent that waits for ever fails its test, and leaves no supervisor.
        guard = threading.Timer(WAIT_MAX_S, program.kill)
        guard.start()
        self.addCleanup(guard.cancel)
        return program

    def run_agent(self, source: str, *options: str, **more: Any) -> tuple[dict[str, Any], str]:
        """The report on an agent that has ended well, and the log."""
        with self.start(source, *options, **more) as program:
            report, log = program.communicate()
        self.assertEqual(program.returncode, 0, log)
        return self.told_by(report), log

    def told_by(self, report: str) -> dict[str, Any]:
        agent: dict[str, Any] = json.loads(report)["agents"][0]
        return agent

    def test_the_agent_of_the_readme(self) -> None:
        source = (HERE.parent / "README.md").read_text().split("```python\n")[1].split("```")[0]
        notes = self.data / "notes.md"
        notes.write_text("milk eggs milk")
        report, log = self.run_agent(source, "--input", json.dumps({"path": str(notes)}), tools="Read,Write")
        self.assertEqual(report["result"], {"words": 2, "failed": 0})
        self.assertEqual((self.data / "milk.txt").read_text(), "2")
        self.assertIn('line="root/agent may call Read, Write"', log)
        self.assertIn('line="fs_denied, not_started: This agent may not read', log)

    def test_an_agent_reads_and_writes(self) -> None:
        report, _ = self.run_agent(
            """
            import toolyard_agent

            with toolyard_agent.connect() as agent:
                path = data + "/notes.md"
                size = agent.tools.call("Write", path=path, content="milk\\n")
                read = agent.tools.call("Read", path=path)
                agent.bye([agent.name, agent.input, sorted(agent.tools), size, read])
            """,
            "--input",
            '{"task": 1}',
        )
        tools = ["Echo", "Read", "Write"]
        self.assertEqual(
            report["result"], ["root/agent", {"task": 1}, tools, {"size": 5}, {"content": "milk\n", "size": 5}]
        )
        self.assertEqual((report["end"], report["refused_lines"]), ("ended", 0))

    def test_what_is_refused_is_an_exception_and_the_agent_goes_on(self) -> None:
        report, _ = self.run_agent(
            """
            import toolyard_agent

            calls = [
                ("Nothing", {}), ("Write", {"path": data + "/a", "content": ""}), ("Read", {"path": "/etc/passwd"}),
                ("Read", {"path": 1}), ("Read", {"path": data + "/none"}), ("Echo", {"text": "x"}),
            ]
            with toolyard_agent.connect() as agent:
                told = []
                for tool, args in calls:
                    try:
                        told.append(agent.call(tool, args))
                    except toolyard_agent.ToolError as error:
                        told.append([type(error).__name__, error.slug, error.code, error.outcome, error.retryable])
                agent.bye(told)
            """,
            tools="Echo,Read",
        )
        self.assertEqual(
            report["result"],
            [
                ["ToolNotFound", "tool_not_found", "not_found", "not_started", False],
                ["PermissionDenied", "permission_denied", "permission_denied", "not_started", False],
                ["FsDenied", "fs_denied", "fs_denied", "not_started", False],
                ["InvalidArgs", "invalid_args", "invalid_input", "not_started", False],
                ["ToolFailed", "tool_failed", "execution_error", "failed", False],
                {"text": "x"},
            ],
        )

    def test_print_does_no_harm_nor_does_a_subprocess(self) -> None:
        report, log = self.run_agent(
            """
            import os
            import subprocess
            import toolyard_agent

            os.write(1, b"printed too early")
            with toolyard_agent.connect() as agent:
                print("printed")
                print('{"op":"bye"}', flush=True)
                os.write(1, b"written\\n")
                taken = subprocess.run(["cat"], stdout=subprocess.PIPE).stdout.decode()
                subprocess.run(["echo", "from a subprocess"])
                agent.bye([taken, agent.call("Echo", text="x")])
            """
        )
        self.assertEqual((report["result"], report["refused_lines"]), (["", {"text": "x"}], 1))
        for text in ("printed", "written", "from a subprocess"):
            self.assertIn(f'line="{text}"', log)

    def test_the_channel_may_be_a_socket(self) -> None:
        source = """
            import toolyard_agent

            with toolyard_agent.connect() as agent:
                print("printed", flush=True)
                agent.bye(agent.call("Echo", text="x"))
            """
        # A string and a list of JSON are ones of TOML, too.
        command, read = json.dumps(self.command(source)), json.dumps([str(HERE), sys.base_prefix])
        config = f'[agents.a]\ncommand = {command}\nread = {read}\nchannel = "fd3"\ntools = ["Echo"]\n'
        (self.folder / "agents.toml").write_text(config)
        with self.supervise("agents.toml") as program:
            report, log = program.communicate()
        self.assertEqual(program.returncode, 0, log)
        told = self.told_by(report)
        self.assertEqual((told["result"], told["refused_lines"]), ({"text": "x"}, 0))
        self.assertIn('line="printed"', log)

    def test_more_calls_than_may_be_in_flight_are_answered_in_their_order(self) -> None:
        report, _ = self.run_agent(
            """
            import toolyard_agent

            with toolyard_agent.connect() as agent:
                results = agent.tools.batch([("Echo", {"text": str(n) + "x" * 1_000}) for n in range(2_500)])
                agent.bye([len(results), all(one["text"].startswith(f"{n}x") for n, one in enumerate(results))])
            """
        )
        self.assertEqual(report["result"], [2_500, True])

    def test_calls_have_the_effect_of_one_after_another(self) -> None:
        report, _ = self.run_agent(
            """
            import toolyard_agent

            with toolyard_agent.connect() as agent:
                path = data + "/a"
                write, read = ("Write", {"path": path, "content": "1"}), ("Read", {"path": path})
                agent.tools.batch([write])
                old, _, new = agent.tools.batch([read, ("Write", {"path": path, "content": "2"}), read])
                agent.turn_end()
                last = agent.tools.start("Write", path=path, content="3")
                after = agent.tools.call("Read", path=path, after=[last])
                agent.bye([old["content"], new["content"], after["content"]])
            """
        )
        self.assertEqual(report["result"], ["1", "2", "3"])

    def test_threads_and_tasks(self) -> None:
        report, _ = self.run_agent(
            """
            import toolyard_agent
            from concurrent.futures import ThreadPoolExecutor

            with toolyard_agent.connect() as agent, ThreadPoolExecutor(8) as pool:
                texts = [str(n) for n in range(200)]
                results = pool.map(lambda text: agent.call("Echo", text=text)["text"], texts)
                agent.bye(list(results) == texts)
            """
        )
        self.assertEqual(report["result"], True)
        report, _ = self.run_agent(
            """
            import asyncio
            import toolyard_agent

            async def main():
                async with toolyard_agent.aconnect() as agent:
                    print("printed")
                    texts = [str(n) for n in range(1_500)]
                    results = await asyncio.gather(*(agent.call("Echo", text=text) for text in texts))
                    denied = (await agent.tools.batch([("Read", {"path": "/etc/passwd"})]))[0].slug
                    await agent.bye([[one["text"] for one in results] == texts, denied])

            asyncio.run(main())
            """
        )
        self.assertEqual(report["result"], [True, "fs_denied"])

    def test_a_key_runs_a_call_once(self) -> None:
        report, _ = self.run_agent(
            """
            import toolyard_agent

            with toolyard_agent.connect() as agent:
                args = {"path": data + "/a", "content": "x"}
                calls = [agent.tools.start("Write", args, meta={"idempotency_key": "k"}) for _ in range(2)]
                for call in calls:
                    call.result()
                try:
                    agent.call("Write", {**args, "content": "y"}, meta={"idempotency_key": "k"})
                except toolyard_agent.InvalidArgs as error:
                    agent.bye([call.meta["attempts"] for call in calls] + [error.code])
            """
        )
        self.assertEqual(report["result"], [1, 1, "key_mismatch"])

    def with_shell(self) -> tuple[str, ...]:
        """A shell whose workspace is the folder that calls may use."""
        (self.folder / "toolyard.toml").write_text('[builtin]\nenable = ["shell"]\n')
        return "toolyard.toml", "--workspace", str(self.data)

    def test_output_comes_before_the_end_and_a_cancel_stops_a_call(self) -> None:
        report, _ = self.run_agent(
            """
            import asyncio
            import toolyard_agent

            async def main():
                async with toolyard_agent.aconnect(deltas=True) as agent:
                    call = await agent.tools.start("shell", command="echo begun; sleep 1000")
                    async for text in call.deltas():
                        call.cancel()
                    try:
                        await call
                    except toolyard_agent.ToolFailed as error:
                        await agent.bye([text, error.code])

            asyncio.run(main())
            """,
            *self.with_shell(),
            tools="shell",
        )
        self.assertEqual(report["result"], ["begun\n", "cancelled"])

    def test_a_supervisor_that_stops_lets_the_agent_end(self) -> None:
        source = """
            import toolyard_agent

            agent = toolyard_agent.connect(deltas=True)
            told = []
            for _ in range(2):
                try:
                    agent.tools.call("shell", command="echo begun; exec sleep 1000", on_delta=lambda _: print("begun"))
                except toolyard_agent.AgentError as error:
                    told.append(type(error).__name__)
            agent.bye(told)
            """
        with self.start(source, *self.with_shell(), tools="shell") as program:
            assert program.stderr is not None and program.stdout is not None
            lines = []
            for line in program.stderr:
                lines.append(line)
                if 'line="begun"' in line:
                    program.send_signal(signal.SIGINT)
            report = program.stdout.read()
        self.assertEqual(program.returncode, 130, "".join(lines))
        self.assertEqual(self.told_by(report)["result"], ["ToolFailed", "Shutdown"], "".join(lines))

    def test_an_agent_that_fails_says_no_bye(self) -> None:
        source = """
            import toolyard_agent

            with toolyard_agent.connect() as agent:
                agent.call("Read", path="/etc/passwd")
            """
        with self.start(source) as program:
            report, log = program.communicate()
        self.assertEqual(program.returncode, 1, log)
        self.assertEqual(self.told_by(report)["end"], "failed(1)")
        self.assertIn("toolyard_agent.FsDenied: This agent may not read", log)


if __name__ == "__main__":
    unittest.main()
