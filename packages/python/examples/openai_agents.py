"""An agent of the OpenAI Agents SDK whose tools run in the engine, with a scripted model."""

import asyncio
import json
from functools import partial
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

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


async def invoke(turn: AsyncGrowingTurn, name: str, context: ToolContext[Any], arguments: str) -> str:
    call = await turn.call(Call(name, json.loads(arguments), key=context.tool_call_id))
    outcome = await call.outcome()
    return str(outcome.error) if outcome.error else json.dumps(outcome.value)


async def function_tools(session: AsyncSession, turn: AsyncGrowingTurn) -> list[FunctionTool]:
    """The tools of a session. All calls go into one turn, which orders them as the model meant."""
    return [
        FunctionTool(
            name=one["name"],
            description=one.get("description", ""),
            params_json_schema=one["input_schema"],
            on_invoke_tool=partial(invoke, turn, one["name"]),
            strict_json_schema=False,
        )
        for one in await session.definitions()
    ]


class Scripted(Model):
    """Plays a model."""

    def __init__(self, *outputs: list[Any]) -> None:
        self.outputs = list(outputs)

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        for item in input if isinstance(input, list) else []:
            if item.get("type") == "function_call_output":
                print("the model reads:", item["output"])
        return ModelResponse(output=self.outputs.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def call(call_id: str, name: str, **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=json.dumps(arguments))


async def main() -> None:
    text = ResponseOutputText(type="output_text", text="It is 3, and saved.", annotations=[])
    said = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
    model = Scripted([call("1", "add", a=1, b=2), call("2", "save", text="3")], [said])
    async with AsyncEngine([add, save], approve=approve) as engine:
        async with engine.session(capabilities={"tools": ["add", "save"]}) as session, session.turn() as turn:
            agent = Agent(name="clerk", model=model, tools=await function_tools(session, turn))
            result = await Runner.run(agent, "What is 1 + 2? Save it.", run_config=RunConfig(tracing_disabled=True))
            print(result.final_output)


asyncio.run(main())
