"""What a function returns, as the fields of a ``tool_result``, and back again for who made the call.

A text is text, an object is data. Any other value is shown to the model as JSON, and travels beside that as
``{"result": value}``, so that who made the call gets the value and not its text.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ..errors import ToolError


@dataclass(frozen=True)
class Image:
    """A picture, as a tool's result or as an item of its list: ``return ["the chart:", Image(png, "image/png")]``."""

    data: bytes
    media_type: str


def fields_of(value: Any) -> dict[str, Any]:
    """``result``, or ``content`` and ``structured``; raises :class:`ToolError` for what is no JSON."""
    if isinstance(value, str):
        return {"result": value}
    if isinstance(value, Image):
        return {"content": [_part(value)]}
    if isinstance(value, (list, tuple)) and any(isinstance(one, Image) for one in value):
        return {"content": [_part(one) for one in value]}
    data = plain(value)
    if isinstance(data, dict) and set(data) != {"result"}:
        return {"result": data}
    if isinstance(data, str):
        return {"result": data}
    return {"content": [{"type": "text", "text": _text(data)}], "structured": {"result": data}}


def value_of(result: Mapping[str, Any] | None, *, ours: bool) -> Any:
    """What a call has given: what the function returned, if it is ``ours``; else data, a text, or a list of parts."""
    result = result or {}
    if ours and set(result) == {"result"}:
        return result["result"]
    if set(result) <= {"content", "text"} and isinstance(result.get("content"), list):
        return result.get("text", result["content"])
    return dict(result)


def plain(value: Any) -> Any:
    """The same in JSON's own types."""
    try:
        return json.loads(_text(value))
    except (TypeError, ValueError, RecursionError) as reason:
        raise ToolError(f"the tool has returned what is no JSON: {reason}", kind="output_invalid") from reason


def _text(value: Any) -> str:
    return json.dumps(value, default=_known, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _known(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (PurePath, uuid.UUID, decimal.Decimal)):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _part(value: Any) -> dict[str, Any]:
    if isinstance(value, Image):
        return {"type": "image", "media_type": value.media_type, "data": base64.b64encode(value.data).decode()}
    return {"type": "text", "text": value if isinstance(value, str) else _text(plain(value))}
