"""Questions about calls that need approval, and the answers to them."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union


@dataclass(frozen=True)
class Edit:
    """A yes, with other arguments than those of the call. They are checked as the call's own were."""

    arguments: Any


@dataclass(frozen=True)
class Deny:
    """A no, with a reason that the model reads."""

    reason: str | None = None


Answer = Union[bool, Literal["always", "never"], Edit, Deny]
"""Yes, no, yes or no to all calls of the pattern in the session (``question.always``), yes with other arguments, no with
a reason."""

Approve = Callable[["Question"], Union[Answer, Awaitable[Answer]]]


@dataclass(frozen=True)
class Question:
    """May this call run? Everything that a person should see of it; ``str(question)`` shows it."""

    request_id: str
    session: str
    agent: str
    turn: str | None
    """The name or number of the turn; None for a call that another client has made."""
    call_id: str
    tool: str
    side_effects: str
    arguments: Any
    digest: str
    """Of what will run. An answer is for what was shown, and counts for nothing else."""
    changes: str | None
    """What the call would change, if its tool can tell."""
    sheet: list[tuple[str, list[str]]]
    """The question line by line: a label, and its lines, in which nothing is hidden."""
    always: str
    """What ``"always"`` and ``"never"`` would cover."""
    links: list[Any]
    """Paths that are links, and where they lead."""
    refused: str | None
    """Why the arguments of the last answer, an :class:`Edit`, may not run."""
    asked_ms: int
    expires_ms: int
    """Milliseconds since 1970: when it ends as ``confirmation_timeout``."""
    ended: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    """Set when it need not be answered any more. A coroutine that answers is cancelled then."""

    def __str__(self) -> str:
        return "\n".join(f"{label}: {f'{chr(10)}  '.join(lines)}" for label, lines in self.sheet)


def read_question(message: Mapping[str, Any]) -> Question:
    """The question of a ``confirm`` line, or of the HTTP interface."""
    return Question(
        request_id=message["request_id"],
        session=message.get("session", ""),
        agent=message.get("agent", "root"),
        turn=message.get("turn"),
        call_id=message.get("call_id", ""),
        tool=message.get("tool", ""),
        side_effects=message.get("side_effects", ""),
        arguments=message.get("arguments"),
        digest=message["digest"],
        changes=message.get("changes"),
        sheet=[(row.get("label", ""), list(row.get("lines", []))) for row in message.get("sheet") or []],
        always=message.get("always", ""),
        links=message.get("links") or [],
        refused=message.get("refused"),
        asked_ms=message.get("asked_ms", 0),
        expires_ms=message.get("expires_ms", 0),
    )


def decision(answer: Any) -> dict[str, Any]:
    """The fields of an answer; raises :class:`TypeError` for what is none, so that nothing but a yes is a yes."""
    if isinstance(answer, Edit):
        return {"decision": "allow", "arguments": answer.arguments}
    if isinstance(answer, Deny):
        return {"decision": "deny", "reason": answer.reason}
    if answer is True or answer is False:
        return {"decision": "allow" if answer else "deny"}
    if answer in ("always", "never"):
        return {"decision": answer}
    raise TypeError(f'an answer is True, False, "always", "never", Edit(…) or Deny(…), and not {answer!r}')
