"""An agent of Pydantic AI whose tools run in the engine, with a scripted model."""

import asyncio
from functools import partial
from typing import Any

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolyard import AsyncEngine, AsyncGrowingTurn, AsyncSession, Call, Question, tool


@tool(side_effects="none")
async def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b


@tool(side_effects="write")
def save(text: str) -> str:
    "Saves a text."
    return f"saved {text}"


async def approve(question: Question) -> bool:
    return question.tool == "save"


async def run(turn: AsyncGrowingTurn, name: str, context: RunContext[Any], **arguments: Any) -> Any:
    call = await turn.call(Call(name, arguments, key=context.tool_call_id))
    outcome = await call.outcome()
    return str(outcome.error) if outcome.error else outcome.value


async def agent_tools(session: AsyncSession, turn: AsyncGrowingTurn) -> list[Tool[Any]]:
    """The tools of a session. All calls go into one turn, which orders them as the model meant."""
    return [
        Tool.from_schema(
            partial(run, turn, one["name"]),
            name=one["name"],
            description=one.get("description"),
            json_schema=one["input_schema"],
            takes_ctx=True,
        )
        for one in await session.definitions()
    ]


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Plays a model."""
    returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    for part in returned:
        print("the model reads:", part.content)
    if returned:
        return ModelResponse([TextPart("It is 3, and saved.")])
    calls = [
        ToolCallPart("add", {"a": 1, "b": 2}, tool_call_id="1"),
        ToolCallPart("save", {"text": "3"}, tool_call_id="2"),
    ]
    return ModelResponse(calls)


async def main() -> None:
    async with AsyncEngine([add, save], approve=approve) as engine:
        async with engine.session(capabilities={"tools": ["add", "save"]}) as session, session.turn() as turn:
            agent = Agent(FunctionModel(scripted), tools=await agent_tools(session, turn))
            print((await agent.run("What is 1 + 2? Save it.")).output)


asyncio.run(main())
