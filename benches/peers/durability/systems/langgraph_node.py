"""LangGraph, graph API: a model (scripted here) and a ToolNode in a loop.

Two forms: `node` hands a whole batch to the ToolNode, as the examples with `tools_condition` do; `send` hands it one call
at a time with Send, as the prebuilt agent does (`create_react_agent`, version "v2"), so that each result is stored on its own.
Resumed as documented for a run that failed: the same thread id, None as input.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.prebuilt.tool_node import ToolCallWithContext
from langgraph.types import Send

from work import Job, perform

# Two steps a batch; the default limit of steps is for loops that do not end. Threads for ten calls and for storing results:
# the default, cores + 4, would leave them waiting for each other on a small machine.
CONFIG = {"configurable": {"thread_id": "session"}, "recursion_limit": 1000, "max_concurrency": 16}


def each_call(state):
    calls = state["messages"][-1].tool_calls
    if not calls:
        return END
    return [Send("tools", ToolCallWithContext(__type="tool_call_with_context", tool_call=call, state=state)) for call in calls]


def program(job, saver, form):
    calls = {call["id"]: call for batch in job.batches for call in batch}

    @tool
    def call_tool(id: str) -> str:
        """Runs the call of this id."""
        return perform(job, calls[id])

    def model(state: MessagesState):
        turn = sum(isinstance(message, AIMessage) for message in state["messages"])
        batch = job.batches[turn] if turn < len(job.batches) else []
        tool_calls = [{"id": call["id"], "name": "call_tool", "args": {"id": call["id"]}, "type": "tool_call"} for call in batch]
        return {"messages": [AIMessage(content="" if batch else "done", tool_calls=tool_calls)]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([call_tool]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition if form == "node" else each_call, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def main(form, verb, path):
    job = Job(path)
    with SqliteSaver.from_conn_string(str(job.state_dir / "checkpoints.sqlite")) as saver:
        graph = program(job, saver, form)
        stored = verb == "resume" and saver.get_tuple(CONFIG) is not None
        begin = {"messages": [HumanMessage("go")]}
        state = graph.invoke(None if stored else begin, CONFIG, durability="sync")
        # A call without a stored result has no message or one of an error.
        found = [m for m in state["messages"] if isinstance(m, ToolMessage) and m.status == "success"]
        job.write_results({message.tool_call_id: message.content for message in found})


if __name__ == "__main__":
    main(*sys.argv[1:])
