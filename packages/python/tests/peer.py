"""Plays `toolyard serve --stdio`, as far as a script needs it: `python peer.py SCRIPT serve --stdio`.

``Peer`` answers as the engine does, one call after another and without its rules; a script overrides what it is about.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

Message = dict[str, Any]


class Peer:
    """Takes lines one at a time; its state is which calls wait for their functions."""

    def __init__(self) -> None:
        self.hello: Message = {}
        self.numbers = 0
        self.invoked: dict[str, tuple[Message, Message]] = {}
        self.left: dict[str, list[Message]] = {}
        self.more: set[str] = set()
        self.said: list[Message] = []

    def send(self, **message: Any) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            self.said.append(message)
            getattr(self, f"take_{message['op']}")(message)

    # Requests

    def take_hello(self, message: Message) -> None:
        self.hello = message
        self.send(op="welcome", id=message["id"], protocol=1, version="0.0.0", epoch="e", tools=[])

    def take_register(self, message: Message) -> None:
        self.send(op="registered", id=message["id"], tool=message["definition"]["name"], **{"class": "read"})

    def take_unregister(self, message: Message) -> None:
        self.send(op="unregistered", id=message["id"], tool=message["tool"])

    def take_open(self, message: Message) -> None:
        self.send(op="opened", id=message["id"], session=message["session"])

    def take_fork(self, message: Message) -> None:
        agent = f"{message.get('agent', 'root')}/{message.get('name', '1')}"
        self.send(op="forked", id=message["id"], session=message["session"], agent=agent)

    def take_close(self, message: Message) -> None:
        self.send(op="closed", id=message["id"], session=message["session"])

    def take_definitions(self, message: Message) -> None:
        self.send(op="definitions", id=message["id"], definitions=[{"asked": message}])

    def take_confirmation(self, message: Message) -> None:
        self.send(op="confirmed", id=message["id"], request_id=message["request_id"], decision=message["decision"])

    def take_bye(self, message: Message) -> None:
        self.send(op="goodbye", id=message["id"])
        sys.exit(0)

    # Turns

    def take_respond(self, message: Message) -> None:
        calls = [
            {"tool_call_id": part["id"], "tool": part["name"], "args": part["input"]}
            for part in message["message"]["content"]
            if part["type"] == "tool_use"
        ]
        self.begin({**message, "calls": calls})

    def take_tool_calls(self, message: Message) -> None:
        adds, is_open = bool(message.get("continues")), message["turn"] in self.more
        if adds != is_open:
            return self.refuse(message, "not_found" if adds else "turn_open")
        if not message.get("more"):
            self.more.discard(message["turn"])
        elif not adds:
            self.more.add(message["turn"])
        self.begin(message)

    def take_turn_end(self, message: Message) -> None:
        if message["turn"] not in self.more:
            return self.refuse(message, "turn_closed")
        self.more.discard(message["turn"])
        self.end_if_over(message)

    def refuse(self, message: Message, code: str, **more: Any) -> None:
        self.send(op="error", id=message.get("id"), turn=message.get("turn"), code=code, message="no", line=1,
                  refused=message["op"], **more)  # fmt: skip

    def take_cancel(self, message: Message) -> None:
        if "tool_call_id" not in message:
            self.more.discard(message["turn"])
        for invoked, (turn, call) in list(self.invoked.items()):
            if turn["turn"] == message["turn"] and message.get("tool_call_id") in (None, call["tool_call_id"]):
                self.send(op="tool_cancel", call_id=invoked)
                del self.invoked[invoked]
                self.respond(turn, call, ok=False, error="tool_failed", message="cancelled", meta={"code": "cancelled"})
        self.end_if_over(message)

    def begin(self, turn: Message) -> None:
        self.left.setdefault(turn["turn"], []).extend(turn["calls"])
        for place, call in enumerate(turn["calls"]):
            self.invoke({**turn, "place": place}, call)
        self.end_if_over(turn)

    def invoke(self, turn: Message, call: Message, attempt: int = 1) -> None:
        self.numbers += 1
        self.invoked[f"i{self.numbers}"] = (turn, call)
        self.send(
            op="tool_invoke",
            call_id=f"i{self.numbers}",
            tool=call["tool"],
            args=call["args"],
            attempt=attempt,
            key=call.get("meta", {}).get("idempotency_key"),
            deadline_ms=call.get("meta", {}).get("timeout_ms"),
            session=turn.get("session", "main"),
            agent=turn.get("agent") or "root",
            turn=turn["turn"],
            tool_call_id=call["tool_call_id"],
        )

    def take_tool_result(self, message: Message) -> None:
        turn, call = self.invoked.pop(message["call_id"], ({}, {}))
        if not turn:
            return
        result = message.get("structured", message.get("result"))
        if not isinstance(result, dict):
            parts = message.get("content") or [{"type": "text", "text": result}]
            result = {"content": parts}
            if all(part["type"] == "text" for part in parts):
                result["text"] = "\n".join(part["text"] for part in parts)
        self.respond(turn, call, ok=True, result=result, meta={"attempts": 1})

    def take_tool_failed(self, message: Message) -> None:
        turn, call = self.invoked.pop(message["call_id"], ({}, {}))
        if turn:
            meta = {"code": message.get("kind", "execution_error"), "outcome": message.get("outcome", "unknown"),
                    "retryable": False, "attempts": 1, "retry_after_ms": message.get("retry_after_ms")}  # fmt: skip
            self.respond(turn, call, ok=False, error="tool_failed", message=message["message"], meta=meta)

    def take_tool_delta(self, message: Message) -> None:
        turn, call = self.invoked.get(message["call_id"], ({}, {}))
        if turn and self.hello.get("deltas"):
            self.send(op="tool_delta", turn=turn["turn"], tool_call_id=call["tool_call_id"], text=message["text"])

    def respond(self, turn: Message, call: Message, **response: Any) -> None:
        self.send(op="tool_response", turn=turn["turn"], tool_call_id=call["tool_call_id"],
                  tool=call["tool"], **response)  # fmt: skip
        self.left[turn["turn"]].remove(call)
        self.end_if_over(turn)

    def end_if_over(self, turn: Message) -> None:
        if not self.left.get(turn["turn"]) and turn["turn"] not in self.more and turn["turn"] in self.left:
            del self.left[turn["turn"]]
            self.send(op="turn_ended", turn=turn["turn"], number=1, calls=1, failed=0, results=[{"role": "user"}])


class Plain(Peer):
    pass


class DiesAtOnce(Peer):
    def run(self) -> None:
        print("error: toolyard.toml: there is no such key", file=sys.stderr)
        sys.exit(2)


class DiesInTheMiddle(Peer):
    def begin(self, turn: Message) -> None:
        print("ERROR the machine is on fire", file=sys.stderr, flush=True)
        os._exit(7)


class WritesGarbage(Peer):
    def begin(self, turn: Message) -> None:
        self.send_bytes(b"{half a line\n")
        time.sleep(600)


class SaysWhatIsNew(Peer):
    def begin(self, turn: Message) -> None:
        self.send(op="something_new", turn=turn["turn"], more=[1])
        self.send_bytes(b"\r\n  \n")
        super().begin(turn)


class RefusesTheTurn(Peer):
    def begin(self, turn: Message) -> None:
        self.refuse(turn, "too_many", errors=[{"pointer": "/turn", "detail": "too many turns"}])


class RefusesWhatIsAdded(Peer):
    def begin(self, turn: Message) -> None:
        if turn["calls"] and turn["calls"][0]["tool"] == "bad":
            self.refuse(turn, "invalid")
        else:
            super().begin(turn)


class EndsMeanwhile(Peer):
    """Its turn has ended when another call comes for it, as if its session had been closed."""

    def take_tool_calls(self, message: Message) -> None:
        if message.get("continues") and message["turn"] in self.more:
            self.more.discard(message["turn"])
            self.end_if_over(message)
        super().take_tool_calls(message)


class IsClosed(Peer):
    """Its session was closed by somebody else, until it is opened again."""

    opened = 0

    def take_open(self, message: Message) -> None:
        self.opened += 1
        super().take_open(message)

    def begin(self, turn: Message) -> None:
        if self.opened == 1:
            self.refuse(turn, "session_closed")
        else:
            super().begin(turn)

    def take_definitions(self, message: Message) -> None:
        self.refuse(message, "session_closed")

    def take_close(self, message: Message) -> None:
        self.refuse(message, "not_found")


class RefusesToRegister(Peer):
    def take_register(self, message: Message) -> None:
        self.send(op="error", id=message["id"], code="invalid", message="the name is taken", refused="register", line=2)


class RefusesTheSecond(Peer):
    registered = 0

    def take_register(self, message: Message) -> None:
        self.registered += 1
        super().take_register(message) if self.registered == 1 else self.refuse(message, "invalid")


class RefusesAnswers(Peer):
    """Takes no answer that has an id, as if it were none of the protocol."""

    def take_tool_result(self, message: Message) -> None:
        self.send(op="error", id=message["id"], code="invalid", message="no such thing", refused=message["op"], line=1)

    def take_tool_failed(self, message: Message) -> None:
        self.take_tool_result(message) if "id" in message else super().take_tool_failed(message)


class Deaf(Peer):
    """Does not end when its input does, and hears no signal but the last one."""

    def run(self) -> None:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().run()
        time.sleep(600)

    def take_bye(self, message: Message) -> None:
        pass


class TriesTwice(Peer):
    def take_tool_failed(self, message: Message) -> None:
        turn, call = self.invoked[message["call_id"]]
        if call.get("again"):
            return super().take_tool_failed(message)
        del self.invoked[message["call_id"]]
        call["again"] = True
        self.invoke(turn, call, attempt=2)


class Asks(Peer):
    """Asks about each call, and runs it if that is allowed."""

    refused: Any = None

    def invoke(self, turn: Message, call: Message, attempt: int = 1) -> None:
        self.asked = (turn, call)
        self.send(op="confirm", request_id="q1", session="s", agent="root", turn=turn["turn"],
                  call_id=call["tool_call_id"], tool=call["tool"], side_effects="write", digest="d" * 64,
                  arguments=call["args"], asked_ms=1, expires_ms=2, always=f"{call['tool']}(*)", links=[],
                  refused=self.refused, changes="+ x", sheet=[{"label": "tool", "lines": [call["tool"]]}])  # fmt: skip

    def take_confirmation(self, message: Message) -> None:
        assert message["digest"] == "d" * 64
        turn, call = self.asked
        if message.get("arguments") == {"bad": True}:
            self.send(op="error", id=message["id"], code="edit_refused", message="no", refused="confirmation", line=1)
            self.refused = "these may not run"
            return self.invoke(turn, call)
        super().take_confirmation(message)
        self.send(op="confirm_ended", request_id="q1", how="answered", who="parent", decision=message["decision"])
        if message["decision"] == "deny":
            text = f"denied: {message.get('reason')}"
            return self.respond(turn, call, ok=False, error="permission_denied", message=text)
        call["args"] = message.get("arguments", call["args"])
        super().invoke(turn, call)


class Withdraws(Asks):
    def invoke(self, turn: Message, call: Message, attempt: int = 1) -> None:
        super().invoke(turn, call)
        self.send(op="confirm_ended", request_id="q1", how="withdrawn")
        self.respond(turn, call, ok=False, error="tool_failed", message="withdrawn")


class TellsEvents(Peer):
    def begin(self, turn: Message) -> None:
        for number in range(3):
            self.send(op="event", cursor=f"e.{number}", event={"event": "tool.called", "seq": number})
        self.send(op="event_reset", cursor="e.9")
        super().begin(turn)


class Slow(Peer):
    """Reads nothing for a while, so that what is sent has to wait."""

    def take_open(self, message: Message) -> None:
        super().take_open(message)
        time.sleep(0.5)


class Unknown(Peer):
    """Has a call of a function that nobody has registered."""

    def begin(self, turn: Message) -> None:
        turn["calls"][0]["tool"] = "nobody"
        super().begin(turn)


if __name__ == "__main__":
    globals()[sys.argv[1]]().run()
