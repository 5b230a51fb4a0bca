"""Contents of messages, between LangChain and the engine."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from ..functions.content import Image
from ..outcome import Outcome


def content_of(result: Any, call_id: str | None) -> Any:
    """What a model will read of a result: a text, or a list of texts and pictures."""
    messages = [one for one in _messages(result) if isinstance(one, ToolMessage) and one.tool_call_id == call_id]
    contents = [one.content for one in messages]
    if len(contents) != 1:
        return "\n".join(str(content) for content in contents)
    (content,) = contents
    return content if isinstance(content, str) else [_part(part) for part in content]


def message_of(outcome: Outcome, call: dict[str, Any]) -> ToolMessage:
    """What became of a call, as a message."""
    if outcome.error is not None:
        return ToolMessage(str(outcome.error), name=call["name"], tool_call_id=call["id"], status="error")
    return ToolMessage(_text(outcome), name=call["name"], tool_call_id=call["id"])


def with_what_was_changed(message: ToolMessage, outcome: Outcome) -> ToolMessage:
    """The message of a tool, as the engine passes it on: without secrets, and with what the model has to be told."""
    if isinstance(message.content, str):
        return message.model_copy(update={"content": _text(outcome)})
    if outcome.note is not None:
        return message.model_copy(update={"content": [{"type": "text", "text": outcome.note}, *message.content]})
    return message


def _text(outcome: Outcome) -> str:
    text = outcome.value if isinstance(outcome.value, str) else json.dumps(outcome.value, ensure_ascii=False)
    return text if outcome.note is None else f"{outcome.note}\n{text}"


def _messages(result: Any) -> list[Any]:
    if isinstance(result, list):
        return [message for one in result for message in _messages(one)]
    if isinstance(result, Command):
        update = result.update
        lists = list(update.values()) if isinstance(update, dict) else [update]
        return [message for one in lists if isinstance(one, list) for message in one]
    return [result]


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return str(part)
    if part.get("type") == "text":
        return part["text"]
    picture = _picture(part)
    return part if picture is None else picture


def _picture(part: dict[str, Any]) -> Image | None:
    """A picture with its data, in the spelling of LangChain or of OpenAI."""
    data, media_type = part.get("base64"), part.get("mime_type")
    url = part.get("image_url")
    url = url.get("url", "") if isinstance(url, dict) else url
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
        media_type, data = url[5:].split(";base64,", 1)
    if not isinstance(data, str) or not isinstance(media_type, str) or not media_type.startswith("image/"):
        return None
    try:
        return Image(base64.b64decode(data, validate=True), media_type)
    except binascii.Error:
        return None
