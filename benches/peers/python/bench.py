"""What people use in Python: asyncio.gather with a semaphore, and LangGraph's ToolNode.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt && venv/bin/python bench.py [--json]

The tools and batches are those of `cargo bench -p toolyard-bench --bench peers`: a tool that does nothing, and one that
sleeps for a millisecond; 20 calls at once if the peer can limit that. Contenders take turns; figures are the median and
the p25 over the rounds, in nanoseconds per call.
"""

import argparse
import asyncio
import json
import platform
import statistics
import time

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolNode

WIDTH = 20
TIMEOUT = 30


async def nothing(n: int) -> str:
    return ""


async def sleeps(n: int) -> str:
    await asyncio.sleep(0.001)
    return ""


async def gather(handler, calls):
    """A table of tools, a semaphore, a timeout, exceptions isolated, results in order."""
    permits = asyncio.Semaphore(WIDTH)
    tools = {"nothing": handler}

    async def one(call):
        async with permits, asyncio.timeout(TIMEOUT):
            return await tools[call["name"]](**call["args"])

    results = await asyncio.gather(*(one(call) for call in calls), return_exceptions=True)
    assert all(result == "" for result in results)


def tool_node(handler):
    """ToolNode as a graph calls it: it validates arguments against the tool's schema and turns each result into a message.
    It has no limit: all calls of a message run at once."""
    described = tool("nothing", description="Does nothing.")(handler)
    # ToolNode needs the runtime of a graph; a graph of this one node is the smallest there is.
    from langgraph.graph import START, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([described]))
    graph.add_edge(START, "tools")
    return graph.compile()


async def through_node(graph, calls):
    message = AIMessage(content="", tool_calls=[{**call, "type": "tool_call"} for call in calls])
    out = await graph.ainvoke({"messages": [message]})
    assert len(out["messages"]) == len(calls) + 1


def batch(size):
    return [{"id": f"call_{n}", "name": "nothing", "args": {"n": n}} for n in range(size)]


async def sample(run, size, per_sample):
    batches = max(1, per_sample // size)
    inputs = [batch(size) for _ in range(batches)]
    started = time.perf_counter_ns()
    for calls in inputs:
        await run(calls)
    return (time.perf_counter_ns() - started) / (batches * size)


async def measure(rounds):
    figures = []
    for what, handler, per_sample in (("ready", nothing, 1000), ("sleeping 1 ms", sleeps, 200)):
        graph = tool_node(handler)
        contenders = {
            "asyncio.gather": lambda calls, handler=handler: gather(handler, calls),
            "LangGraph ToolNode": lambda calls, graph=graph: through_node(graph, calls),
        }
        for size in (1, 8, 40, 1000):
            samples = {name: [] for name in contenders}
            for _ in range(rounds):
                for name, run in contenders.items():
                    samples[name].append(await sample(run, size, per_sample))
            for name, taken in samples.items():
                taken.sort()
                figures.append(
                    {
                        "tools": what,
                        "contender": name,
                        "calls": size,
                        "median_ns": round(statistics.median(taken)),
                        "p25_ns": round(taken[len(taken) // 4]),
                    }
                )
    return figures


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", action="store_true")
    options.add_argument("--rounds", type=int, default=9)
    options = options.parse_args()
    figures = asyncio.run(measure(options.rounds))
    if options.json:
        print(json.dumps({"python": platform.python_version(), "figures": figures}, indent=2))
        return
    print(f"Python {platform.python_version()}, {options.rounds} rounds, ns a call")
    for figure in figures:
        print("{tools:<14} {calls:>5}  {contender:<20} {median_ns:>12} {p25_ns:>12}".format(**figure))


if __name__ == "__main__":
    main()
