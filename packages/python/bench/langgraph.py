"""LangGraph's own ToolNode beside the one of this package: what a call costs, and what becomes of tools that misbehave.

usage: python bench/langgraph.py [--rounds N]     prints tables in Markdown

The rounds of both nodes take turns, so that what else the machine does falls on both; what is measured while it does
much else is marked, and is no figure to keep. The program is found as always.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

# Else this file would be taken for the framework.
sys.path.pop(0)

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode as OwnToolNode

from toolyard import Engine
from toolyard.langgraph import ToolNode

SIZES = (1, 10, 100)
QUIET = 0.3
"""Load above which times say more of the others than of what is measured."""
RELEASE = threading.Event()
RAN: list[str] = []


@tool
def nothing(number: int) -> str:
    "Does nothing."
    return "done"


@tool
def broken() -> str:
    "Raises."
    raise KeyError("secret")


@tool
def hang() -> str:
    "Hangs."
    RELEASE.wait(5)
    return "late"


@tool
def charge(amount: int) -> str:
    "Charges."
    RAN.append("charge")
    return f"charged {amount}"


def message(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    made = [{"name": name, "args": args, "id": f"call_{at}"} for at, (name, args) in enumerate(calls)]
    return AIMessage("", tool_calls=made)


def graph_of(node: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    return graph.compile()


def results(graph: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    return list(graph.invoke({"messages": [message(*calls)]})["messages"][1:])


def cost(graph: Any, size: int) -> float:
    """Microseconds per call, of messages with so many calls, and 200 calls in all."""
    given = {"messages": [message(*(("nothing", {"number": n}) for n in range(size)))]}
    repeats = max(1, 200 // size)
    began = time.perf_counter()
    for _ in range(repeats):
        graph.invoke(given)
    return (time.perf_counter() - began) / (repeats * size) * 1e6


def load() -> float | None:
    """How many programs want a processor, over the last minute, where the system says it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def costs(own: Any, ours: Any, rounds: int) -> None:
    before = load()
    if before is None or before > QUIET:
        print(f"Not to be kept: the machine was not quiet, or did not say so (load {before}).\n")
    print("| calls in a message | LangGraph's own, µs per call | this one | ratio, and its range |")
    print("|---|---|---|---|")
    for size in SIZES:
        for graph in (own, ours):
            cost(graph, size)
        pairs = [(cost(own, size), cost(ours, size)) for _ in range(rounds)]
        ratios = sorted(second / first for first, second in pairs)
        first, second = (statistics.median(one[place] for one in pairs) for place in (0, 1))
        shown = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"| {size} | {first:.0f} | {second:.0f} | {shown} |")


def what_happens(graph: Any, *calls: tuple[str, dict[str, Any]]) -> str:
    began = time.perf_counter()
    try:
        said = ", ".join(f"{one.status}: {one.content.splitlines()[0]}" for one in results(graph, *calls))
    except Exception as error:
        said = f"the graph fails: {error!r}"
    return f"{said}, after {time.perf_counter() - began:.1f} s"


def charged(graph: Any) -> str:
    RAN.clear()
    for _ in range(2):
        results(graph, ("charge", {"amount": 5}))
    return f"runs {len(RAN)} times"


def behaviours(own: Any, handled: Any, ours: Any) -> None:
    both = [("broken", {}), ("nothing", {"number": 1})]
    hangs = [("hang", {}), ("nothing", {"number": 1})]
    rows: list[tuple[str, Callable[[Any], str]]] = [
        ("a tool raises, beside another", lambda graph: what_happens(graph, *both)),
        ("a tool hangs for 5 s, beside another; its timeout is 0.2 s", lambda graph: what_happens(graph, *hangs)),
        ("the same call again, under one key", charged),
    ]
    print("| | LangGraph's own | its own with `handle_tool_errors=True` | this one |")
    print("|---|---|---|---|")
    for name, act in rows:
        cells = [act(graph).replace("|", "\\|") for graph in (own, handled, ours)]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    logging.getLogger("toolyard").setLevel(logging.CRITICAL)
    tools = [nothing, broken, hang, charge]
    options = {"hang": {"timeout": 0.2}, "charge": {"side_effects": "write"}}
    with tempfile.TemporaryDirectory() as workspace:
        with Engine(workspace=workspace, approve=lambda question: True) as engine:
            key = lambda call: "order-17" if call["name"] == "charge" else None
            ours = graph_of(ToolNode(tools, engine=engine, options=options, key=key))
            own, handled = (graph_of(OwnToolNode(tools, **more)) for more in ({}, {"handle_tool_errors": True}))
            costs(own, ours, rounds)
            print()
            behaviours(own, handled, ours)
            RELEASE.set()


if __name__ == "__main__":
    main()
