"""Sessions on a server: against `toolyard serve`, and a scripted server for what happens rarely."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from support import RealProgram, setUpModule, tearDownModule

import toolyard
from toolyard import Call, CallError, Deny, Disconnected, ProtocolError, Refused

TOKENS = """
[server.tokens.caller]
sha256 = "{caller}"
scopes = ["call"]

[server.tokens.ada]
sha256 = "{ada}"
scopes = ["approve"]
"""


class Served(RealProgram):
    def setUp(self) -> None:
        super().setUp()
        tokens = {name: self.new_token(name) for name in ("caller", "ada")}
        self.config.write_text(TOKENS.format(**{name: digest for name, (_, digest) in tokens.items()}))
        command = [self.program, "serve", "--json", "--http", "127.0.0.1:0", "--config", str(self.config),
                   "--workspace", str(self.workspace)]  # fmt: skip
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        assert server.stdout is not None
        self.addCleanup(server.stdout.close)
        self.url = json.loads(server.stdout.readline())["address"]
        self.tokens = {name: token for name, (token, _) in tokens.items()}
        (self.workspace / "a.txt").write_text("hi\n")

    def new_token(self, name: str) -> tuple[str, str]:
        import hashlib
        import secrets

        token = f"toolyard_{secrets.token_urlsafe(32)}"
        return token, hashlib.sha256(token.encode()).hexdigest()

    def test_calls(self) -> None:
        with toolyard.connect(self.url, self.tokens["caller"]) as engine, engine.session("s") as session:
            self.assertEqual(session.call("read_file", path="a.txt")["content"], "hi\n")
            good, unknown, bad = session.batch(
                [("echo", {"text": "x"}), "nope", Call("read_file", {"path": "../x"}, key="k", timeout=5)]
            )
            self.assertEqual(good["text"], "x")
            self.assertIsInstance(unknown, toolyard.ToolNotFound)
            self.assertEqual((unknown.code, unknown.outcome, unknown.retryable), ("not_found", "not_started", False))
            self.assertIsInstance(bad, CallError)
            with self.assertRaises(toolyard.InvalidArgs):
                session.call("read_file", path=1)

    def test_a_models_answer(self) -> None:
        function = {"name": "read_file", "arguments": json.dumps({"path": "a.txt"})}
        message = {"role": "assistant", "tool_calls": [{"id": "x", "type": "function", "function": function}]}
        with toolyard.connect(self.url, self.tokens["caller"]) as engine, engine.session() as session:
            turn = session.dispatch({"choices": [{"message": message}]})
            self.assertEqual(turn.messages, [{"role": "tool", "tool_call_id": "x", "content": "hi\n"}])
            self.assertEqual([one.tool for one in turn.outcomes], ["read_file"])
            turn = session.dispatch(message, format="openai-chat", to="anthropic")
            self.assertEqual(turn.messages[0]["content"][0]["tool_use_id"], "x")

    def test_forks_and_definitions(self) -> None:
        with toolyard.connect(self.url, self.tokens["caller"]) as engine, engine.session() as session:
            child = session.fork("child", only_tools=["echo"])
            self.assertEqual([one["function"]["name"] for one in child.definitions("openai-chat")], ["echo"])
            with self.assertRaises(toolyard.ToolNotFound):
                child.call("read_file", path="a.txt")

    def test_questions(self) -> None:
        caller = toolyard.connect(self.url, self.tokens["caller"])
        ada = toolyard.connect(self.url, self.tokens["ada"])
        with caller.session() as session:
            for answer, kind in ((Deny("not on a Friday"), toolyard.PermissionDenied), (True, None)):
                turn = session._backend.run(
                    session._place, [("write_file", {"path": "b", "content": "x"})], deltas=False
                )
                with self.assertRaises(TimeoutError):
                    turn.result(1)
                self.assertFalse(turn.done())
                while not (questions := ada.questions()):
                    continue
                (question,) = questions
                self.assertEqual((question.tool, question.arguments["path"]), ("write_file", "b"))
                ada.answer(question, answer)
                (outcome,) = turn.result().outcomes
                self.assertEqual(type(outcome.error), kind or type(None))
                with self.assertRaises(Refused) as raised:
                    ada.answer(question, True)
                self.assertIn(raised.exception.code, ("already_resolved", "not_found", "withdrawn"))
        self.assertEqual((self.workspace / "b").read_text(), "x")

    def test_cancel(self) -> None:
        engine = toolyard.connect(self.url, self.tokens["caller"])
        with engine.session() as session:
            turn = session._backend.run(session._place, [("write_file", {"path": "b", "content": "x"})], deltas=False)
            turn.cancel("1")
            error = turn.result().outcomes[0].error
            self.assertEqual(error and error.code, "cancelled")

    def test_what_is_refused(self) -> None:
        engine = toolyard.connect(self.url, "toolyard_wrong")
        with self.assertRaises(Refused) as raised:
            engine.session()
        self.assertEqual(raised.exception.code, "unknown_token")
        engine = toolyard.connect(self.url, self.tokens["caller"])
        with engine.session("s") as session:
            with self.assertRaises(Refused):
                engine.session("s")
            with self.assertRaises(RuntimeError):
                session.turn()


class Scripted(unittest.TestCase):
    """What a server does rarely."""

    def serve(self, *answers: Any) -> tuple[toolyard.RemoteEngine, list[Any]]:
        seen: list[Any] = []
        left = list(answers)

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                seen.append((self.command, self.path, self.headers.get("Idempotency-Key"), self.rfile.read(length)))
                answer = left.pop(0)
                if answer is None:
                    return self.connection.shutdown(socket.SHUT_RDWR)
                status, headers, body = answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *_: Any) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return toolyard.connect(f"http://127.0.0.1:{server.server_address[1]}/", "t"), seen

    def test_a_lost_answer_is_asked_for_again_under_its_key(self) -> None:
        opened = (201, {}, b'{"id": "s"}')
        results = {
            "results": [{"call_id": "c", "name": "echo", "status": "ok", "content": [{"type": "text", "text": "a"}]}]
        }
        ended = {"turn": 1, "state": "ended", "format": "neutral", "results": results}
        engine, seen = self.serve(opened, None, (200, {}, json.dumps(ended).encode()))
        self.assertEqual(engine.session().call("echo", text="a"), "a")
        (_, first, second) = seen
        self.assertEqual(first, second)
        self.assertTrue(first[2])

    def test_answers_that_are_none(self) -> None:
        engine, _ = self.serve(
            (200, {}, b"<html>"), (502, {}, b"<html>"), (307, {"Location": "http://127.0.0.1:1/"}, b""), None
        )
        with self.assertRaisesRegex(ProtocolError, "no JSON"):
            engine.session()
        for status in (502, 307):
            with self.assertRaises(Refused) as raised:
                engine.session()
            self.assertEqual(raised.exception.code, f"http_{status}")
        with self.assertRaises(Disconnected):
            engine.session()

    def test_addresses(self) -> None:
        with self.assertRaises(ValueError):
            toolyard.connect("127.0.0.1:8080")
        with self.assertRaisesRegex(Disconnected, "does not answer"):
            toolyard.connect("http://127.0.0.1:1").session()


if __name__ == "__main__":
    unittest.main()
