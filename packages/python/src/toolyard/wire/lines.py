"""Lines of the protocol: one JSON object each."""

from __future__ import annotations

import json
from typing import Any

from ..errors import ProtocolError

LINE_MAX = 64 * 1024 * 1024
"""Bytes of a line without its end. The program ends the conversation at a longer one."""

DEPTH_MAX = 128


def encode(message: dict[str, Any]) -> bytes:
    """A line; raises :class:`ValueError` for what the program could not read, and ``TypeError`` for what is no JSON."""
    try:
        # What is left out and what is null mean the same.
        given = {name: value for name, value in message.items() if value is not None or name in _NULLABLE}
        data = json.dumps(given, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a text has half a character in it, which UTF-8 cannot express") from None
    except RecursionError:
        raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep") from None
    if len(data) > LINE_MAX:
        raise ValueError(f"a line has at most {LINE_MAX} bytes, and this one has {len(data)}")
    return data + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """The object of a line, or None for an empty one."""
    if not line.strip():
        return None
    try:
        message = json.loads(line.decode("utf-8"))
        if not isinstance(message, dict) or not isinstance(message.get("op"), str):
            raise ValueError("it has no op")
    except (ValueError, RecursionError):
        raise ProtocolError(f"the program has written a line that is none of the protocol: {line[:200]!r}") from None
    return message


_NULLABLE = frozenset({"result"})
