"""Calls that this program makes itself, and the answers of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union


@dataclass(frozen=True)
class Call:
    """A call with how it is to be run: ``session.call(Call("charge", {"amount": 5}, key="order-17", timeout=30))``."""

    tool: str
    args: Any = None
    key: str | None = None
    """Calls of one tool with one key run once, over all turns of a session."""
    timeout: float | None = None
    """Seconds, of each attempt."""
    deadline: float | None = None
    """Seconds, of all of the call, its wait included."""
    id: str | None = None
    """Its name in its turn; it is given one otherwise."""

    def meta(self) -> dict[str, Any] | None:
        """As the engine reads it."""
        given = {
            "idempotency_key": self.key,
            "timeout_ms": _milliseconds(self.timeout),
            "deadline_ms": _milliseconds(self.deadline),
        }
        return {name: value for name, value in given.items() if value is not None} or None


BatchEntry = Union[Call, tuple[str, Mapping[str, Any]], str]
"""A :class:`Call`, a tool with its arguments, or a tool that takes none."""


def as_call(entry: BatchEntry) -> Call:
    if isinstance(entry, Call):
        return entry
    return Call(entry) if isinstance(entry, str) else Call(*entry)


def as_calls(entries: Iterable[BatchEntry]) -> list[Call]:
    return [as_call(entry) for entry in entries]


def make_call(tool: str | Call, args: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Call:
    """The call of ``call("Read", path="a")``, ``call("Read", {"path": "a"})`` or ``call(Call(…))``."""
    if isinstance(tool, str):
        return Call(tool, {**(args or {}), **named})
    if args is not None or named:
        raise TypeError("a Call has its arguments already")
    return tool


def as_message(response: Any) -> Any:
    """A provider's answer as JSON: an object as it is, or what an SDK's object says of itself."""
    if isinstance(response, (Mapping, list)):
        return response
    for dump in ("model_dump", "to_dict"):
        if hasattr(response, dump):
            # Some have names of their own in Python; JSON mode has the provider's.
            return _dumped(response) if dump == "model_dump" else response.to_dict()
    raise TypeError(
        f"a provider's answer is an object, or has `model_dump()` or `to_dict()`; this is {type(response)!r}"
    )


def _dumped(response: Any) -> Any:
    return response.model_dump(mode="json", by_alias=True, exclude_none=True)


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))
