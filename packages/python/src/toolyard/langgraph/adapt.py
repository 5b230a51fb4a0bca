"""A LangChain tool as a function of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolInvocationError
from langgraph.types import Command

from ..errors import CallError, ToolError
from ..functions.context import Context
from ..functions.tool import Tool, tool
from .content import content_of
from .requests import Request, Requests


def as_function(one: BaseTool, options: Mapping[str, Any], requests: Requests, *, raises: bool) -> Tool[Any]:
    """The tool's schema and description, and a function that runs it for the node whose call it is."""
    schema: Any = one.tool_call_schema
    schema = schema if isinstance(schema, dict) else schema.model_json_schema()
    made = tool(name=one.name, description=one.description, schema=schema, **options_of(options))
    is_async = getattr(one, "coroutine", None) is not None
    return made(_async_function(one, requests, raises) if is_async else _function(one, requests, raises))


def options_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """LangChain's tools declare no side effects: one of which nothing is said is taken to read, and tried once."""
    return dict(options) if "side_effects" in options else {"side_effects": "read", "attempts": 1, **options}


def _function(one: BaseTool, requests: Requests, raises: bool) -> Any:
    def run(context: Context, **args: Any) -> Any:
        request = requests.find(context.turn, context.call_id)
        if request is None:
            return one.invoke(args)
        request.begin()
        try:
            return _given(request, request.context.copy().run(request.run, args))
        except BaseException as error:
            raise _failed(request, error, raises) from error

    return run


def _async_function(one: BaseTool, requests: Requests, raises: bool) -> Any:
    async def run(context: Context, **args: Any) -> Any:
        request = requests.find(context.turn, context.call_id)
        if request is None:
            return await one.ainvoke(args)
        request.begin()
        try:
            return _given(request, await _on_its_loop(request, args))
        except (Exception, GraphBubbleUp) as error:
            raise _failed(request, error, raises) from error

    return run


async def _on_its_loop(request: Request, args: dict[str, Any]) -> Any:
    here = asyncio.get_running_loop()
    loop = request.loop or here
    if loop is here:
        return await request.context.copy().run(asyncio.ensure_future, request.arun(args))
    return await asyncio.wrap_future(
        request.context.copy().run(asyncio.run_coroutine_threadsafe, request.arun(args), loop)
    )


def _given(request: Request, result: Any) -> Any:
    """What the engine is given of a result; the result itself stays with the request."""
    request.result = result
    if isinstance(result, ToolMessage) and result.status == "error":
        raise ToolError(str(result.content))
    return content_of(result, request.call["id"])


def _failed(request: Request, error: BaseException, raises: bool) -> BaseException:
    """What the engine is told of an exception."""
    if isinstance(error, GraphBubbleUp):
        request.error = error
        # Neither kept for its key nor tried again: the graph will run it anew.
        return ToolError("the graph was interrupted", kind="permission_denied", outcome="failed")
    if raises and not isinstance(error, ToolError):
        request.error = error
    if isinstance(error, ToolInvocationError):
        return ToolError(str(error), kind="invalid_input", outcome="failed")
    if isinstance(error, ToolException):
        return ToolError(str(error))
    if raises and not isinstance(error, (ToolError, CallError)):
        return ToolError(f"{type(error).__name__}: {error}", kind="internal")
    return error


def is_command(result: Any) -> bool:
    """Whether a result is more than messages."""
    return isinstance(result, Command) or (isinstance(result, list) and any(isinstance(one, Command) for one in result))
