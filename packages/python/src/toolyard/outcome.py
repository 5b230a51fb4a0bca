"""What became of calls and turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import CallError, call_error
from .functions.content import value_of


@dataclass(frozen=True)
class Delta:
    """A piece of a call's output that came before its end."""

    call_id: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """What became of one call."""

    call_id: str
    tool: str
    value: Any
    """What the tool has given: the value that a function has returned, data, or a text. None if it failed."""
    error: CallError | None
    note: str | None = None
    """What the model has to be told beside: that a person has changed the arguments."""
    meta: dict[str, Any] = field(default_factory=dict)
    """What the engine knows of it: attempts, times, whether it was shared with another call."""

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def value_or_error(self) -> Any:
        return self.value if self.error is None else self.error

    def unwrap(self) -> Any:
        """The value; raises the error of a call that has failed."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True)
class Turn:
    """What became of a turn."""

    messages: list[Any]
    """What the provider's API takes with the next request, behind the model's answer; empty for calls of one's own."""
    outcomes: list[Outcome]
    """Of each call, in their order."""
    number: int = 0
    """The engine's own number of it, which events have too."""

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.ok]


def read_outcome(message: Mapping[str, Any], tool: str, is_ours: Callable[[str], bool]) -> Outcome:
    """The outcome of a ``tool_response``."""
    call_id = message["tool_call_id"]
    tool = message.get("tool") or tool
    note, meta = message.get("note"), message.get("meta") or {}
    if message.get("ok"):
        return Outcome(call_id, tool, value_of(message.get("result"), ours=is_ours(tool)), None, note, meta)
    slug = message.get("error") or "tool_failed"
    text = message.get("message") or slug
    error = call_error(slug, text, tool=tool, call_id=call_id, meta=meta, note=note)
    return Outcome(call_id, tool, None, error, note, meta)
