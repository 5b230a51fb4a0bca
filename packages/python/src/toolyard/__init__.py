"""Toolyard in Python: the engine that runs the tool calls of LLM agents, with functions of this program as tools.

::

    from toolyard import Engine, tool

    @tool(side_effects="none")
    def add(a: int, b: int) -> int:
        "Adds two numbers."
        return a + b

    with Engine(tools=[add]) as engine, engine.session() as session:
        turn = session.dispatch(response)   # what a provider's API has returned
        messages += turn.messages           # for the next request

:class:`AsyncEngine` is the same for asyncio; :func:`connect` gives the same sessions on a server;
``toolyard.langgraph`` has a node for LangGraph.
"""

from .aio.engine import AsyncEngine
from .aio.running import AsyncCall, AsyncGrowingTurn, AsyncRunningTurn
from .aio.session import AsyncSession
from .calls import Call
from .engine import Engine
from .errors import (
    CallError,
    Closed,
    Disconnected,
    FsDenied,
    InvalidArgs,
    PermissionDenied,
    ProgramDied,
    ProgramNotFound,
    ProtocolError,
    Refused,
    ToolError,
    ToolFailed,
    ToolNotFound,
    ToolyardError,
)
from .functions.content import Image
from .functions.context import Context
from .functions.tool import Tool, tool
from .http.engine import RemoteEngine, connect
from .outcome import Delta, Outcome, Turn
from .question import Deny, Edit, Question
from .running import GrowingTurn, PendingCall, RunningTurn
from .session import Session

__all__ = [
    "AsyncCall",
    "AsyncEngine",
    "AsyncGrowingTurn",
    "AsyncRunningTurn",
    "AsyncSession",
    "Call",
    "CallError",
    "Closed",
    "Context",
    "Delta",
    "Deny",
    "Disconnected",
    "Edit",
    "Engine",
    "FsDenied",
    "GrowingTurn",
    "Image",
    "InvalidArgs",
    "Outcome",
    "PendingCall",
    "PermissionDenied",
    "ProgramDied",
    "ProgramNotFound",
    "ProtocolError",
    "Question",
    "Refused",
    "RemoteEngine",
    "RunningTurn",
    "Session",
    "Tool",
    "ToolError",
    "ToolFailed",
    "ToolNotFound",
    "ToolyardError",
    "Turn",
    "connect",
    "tool",
]
