"""The node in LangGraph itself, beside LangGraph's own: what one gives, the other does."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import unittest
import warnings
from typing import Annotated, Any, Optional

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.prebuilt import ToolNode as OwnToolNode
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from support import WAIT_MAX_S, RealProgram, scripted, setUpModule, tearDownModule
from typing_extensions import TypedDict

import toolyard
from toolyard import Edit, Engine, ToolError
from toolyard.langgraph import ToolNode
from toolyard.langgraph.adapt import options_of

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


@tool
def add(a: int, b: int = 2) -> int:
    "Adds two numbers."
    return a + b


@tool
async def aadd(a: int, b: int = 2) -> int:
    "Adds two numbers."
    await asyncio.sleep(0)
    return a + b


def multiply(a: int, b: Optional[int] = None) -> int:
    "Multiplies two numbers."
    return a * (b or 1)


def message(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    made = [{"name": name, "args": args, "id": f"call_{at}"} for at, (name, args) in enumerate(calls)]
    return AIMessage("", tool_calls=made)


class Node(RealProgram):
    def setUp(self) -> None:
        super().setUp()
        self.running = self.engine(approve=lambda question: True)
        self.running.start()
        self.addCleanup(self.running.close)

    def graph(self, node: Any, state: Any = MessagesState, **options: Any) -> Any:
        graph = StateGraph(state)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        return graph.compile(**options)

    def run_one(self, tools: list[Any], *calls: tuple[str, dict[str, Any]], **options: Any) -> list[ToolMessage]:
        node = ToolNode(tools, engine=self.running, **options)
        found = self.graph(node).invoke({"messages": [message(*calls)]})["messages"][1:]
        for one in found:
            self.assertIsInstance(one, ToolMessage)
        return list(found)

    def test_the_same_messages_as_langgraphs_own_node(self) -> None:
        calls = [("add", {"a": 1}), ("multiply", {"a": 2, "b": 3}), ("multiply", {"a": 2}), ("add", {"a": 5, "b": 5})]
        tools = [add, multiply]
        for given in (
            {"messages": [HumanMessage("hi"), message(*calls)]},
            [message(*calls)],
            message(*calls).tool_calls,
        ):
            results = []
            for node in (ToolNode(tools, engine=self.running), OwnToolNode(tools)):
                results.append(self.graph(node).invoke({"messages": given} if isinstance(given, list) else given)
                               if isinstance(given, dict) else self.call(node, given))  # fmt: skip
            ours, own = ([self.plain(one) for one in self.messages(result)] for result in results)
            self.assertEqual(ours, own)

    def call(self, node: Any, given: Any) -> Any:
        """A node outside of a graph, as its own tests call it."""
        from langgraph.runtime import Runtime

        return node.invoke(given, {"configurable": {"__pregel_runtime": Runtime()}})

    def messages(self, result: Any) -> list[Any]:
        found = result["messages"] if isinstance(result, dict) else result
        return [one for one in found if isinstance(one, ToolMessage)]

    def plain(self, one: ToolMessage) -> Any:
        return (one.content, one.name, one.tool_call_id, one.status, one.artifact)

    def test_a_messages_key_of_ones_own(self) -> None:
        class State(TypedDict):
            history: list[Any]

        node = ToolNode([add], engine=self.running, messages_key="history")
        result = self.graph(node, State).invoke({"history": [message(("add", {"a": 1}))]})
        self.assertEqual([one.content for one in result["history"]], ["3"])

    def test_what_is_wrong_with_a_call(self) -> None:
        wrong = self.run_one([add], ("add", {"a": "x"}), ("nope", {}), ("read_file", {"path": "a"}), ("add", {"a": 1}))
        self.assertEqual([one.status for one in wrong], ["error", "error", "error", "success"])
        self.assertEqual([one.tool_call_id for one in wrong], [f"call_{at}" for at in range(4)])
        self.assertIn("not of type", wrong[0].content)

    def test_two_calls_of_one_id(self) -> None:
        twice = AIMessage("", tool_calls=[{"name": "add", "args": {"a": n}, "id": "same"} for n in (1, 2)])
        result = self.graph(ToolNode([add], engine=self.running)).invoke({"messages": [twice]})
        self.assertEqual([one.content for one in self.messages(result)], ["3", "4"])

    def test_tools_that_raise(self) -> None:
        @tool
        def says_no() -> str:
            "Says no."
            raise ToolException("not today")

        @tool
        def says_no_too() -> str:
            "Says no."
            raise ToolError("not today either")

        @tool
        def broken() -> str:
            "Is broken."
            raise KeyError("secret")

        no, too, fault = self.run_one(
            [says_no, says_no_too, broken], *((n, {}) for n in ("says_no", "says_no_too", "broken"))
        )
        self.assertIn("not today", no.content)
        self.assertIn("not today either", too.content)
        self.assertNotIn("secret", fault.content)
        self.assertEqual({one.status for one in (no, too, fault)}, {"error"})

    def test_handle_tool_errors_as_in_langgraph(self) -> None:
        @tool
        def broken() -> str:
            "Is broken."
            raise KeyError("reason")

        def by_class(error: KeyError) -> str:
            return f"handled {error}"

        for handle in (True, "all is well", by_class, KeyError, (KeyError, OSError)):
            texts = []
            for node in (ToolNode([broken], engine=self.running, handle_tool_errors=handle),
                         OwnToolNode([broken], handle_tool_errors=handle)):  # fmt: skip
                result = self.graph(node).invoke({"messages": [message(("broken", {}))]})
                texts += [(one.content, one.status) for one in self.messages(result)]
            self.assertEqual(texts[0], texts[1])
        for handle in (False, OSError):
            node = ToolNode([broken], engine=self.running, handle_tool_errors=handle)
            with self.assertRaisesRegex(KeyError, "reason"):
                self.graph(node).invoke({"messages": [message(("broken", {}))]})

    def test_injected_state_store_runtime_and_id(self) -> None:
        class State(MessagesState):
            user: str

        @tool
        def look(
            what: str,
            state: Annotated[Any, InjectedState],
            user: Annotated[str, InjectedState("user")],
            store: Annotated[BaseStore, InjectedStore()],
            runtime: ToolRuntime,
            tool_call_id: Annotated[str, InjectedToolCallId],
        ) -> str:
            "Looks."
            store.put(("seen",), what, {"by": user})
            return f"{what} {len(state['messages'])} {user} {tool_call_id} {runtime.tool_call_id}"

        store = InMemoryStore()
        node = ToolNode([look], engine=self.running)
        graph = self.graph(node, State, store=store)
        result = graph.invoke({"messages": [message(("look", {"what": "x"}))], "user": "ada"})
        self.assertEqual(result["messages"][-1].content, "x 1 ada call_0 call_0")
        found = store.get(("seen",), "x")
        self.assertEqual(found and found.value, {"by": "ada"})

    def test_commands_and_artifacts(self) -> None:
        class State(MessagesState):
            user: str

        @tool
        def rename(name: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            "Renames."
            done = ToolMessage(f"you are {name}", tool_call_id=tool_call_id)
            return Command(update={"user": name, "messages": [done]})

        @tool(response_format="content_and_artifact")
        def draw() -> tuple[str, Any]:
            "Draws."
            return "a picture", {"bytes": b"x"}

        node = ToolNode([rename, draw], engine=self.running)
        given = {"messages": [message(("rename", {"name": "ada"}), ("draw", {}))], "user": ""}
        result = self.graph(node, State).invoke(given)
        self.assertEqual(result["user"], "ada")
        self.assertEqual([one.content for one in self.messages(result)], ["you are ada", "a picture"])
        self.assertEqual(self.messages(result)[1].artifact, {"bytes": b"x"})

    def test_an_interrupt_and_a_key(self) -> None:
        ran: list[str] = []

        @tool
        def charge(amount: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            "Charges."
            ran.append("charge")
            return Command(update={"messages": [ToolMessage("charged", tool_call_id=tool_call_id)]})

        @tool
        def ask() -> str:
            "Asks."
            ran.append("ask")
            return f"the answer is {interrupt('what is it?')}"

        node = ToolNode([charge, ask], engine=self.running, key=lambda call: call["id"],
                        options={"charge": {"side_effects": "write"}})  # fmt: skip
        graph = self.graph(node, checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        first = graph.invoke({"messages": [message(("charge", {"amount": 5}), ("ask", {}))]}, config)
        self.assertEqual(first["__interrupt__"][0].value, "what is it?")
        second = graph.invoke(Command(resume="42"), config)
        self.assertEqual([one.content for one in self.messages(second)], ["charged", "the answer is 42"])
        self.assertEqual(ran, ["charge", "ask", "ask"])

    def test_threads_of_a_graph_have_sessions_of_their_own(self) -> None:
        ran: list[str] = []

        @tool
        def note(text: str) -> str:
            "Notes."
            ran.append(text)
            return text

        node = ToolNode([note], engine=self.running, key=lambda call: "k", options={"note": {"side_effects": "write"}})
        graph = self.graph(node, checkpointer=InMemorySaver())
        for thread in ("1", "1", "2"):
            graph.invoke({"messages": [message(("note", {"text": "x"}))]}, {"configurable": {"thread_id": thread}})
        self.assertEqual(ran, ["x", "x"])

    def test_a_session_that_somebody_else_has_closed_is_followed_by_another(self) -> None:
        with scripted("IsClosed") as engine:
            graph = self.graph(ToolNode([add], engine=engine))
            given = {"messages": [message(("add", {"a": 1}))]}
            with self.assertRaises(toolyard.Refused):
                graph.invoke(given)
            self.assertEqual(graph.invoke(given)["messages"][-1].content, "3")

    def test_a_tool_of_which_nothing_is_said_is_taken_to_read(self) -> None:
        asked: list[str] = []
        with self.engine(approve=lambda question: asked.append(question.tool) is None) as engine:
            node = ToolNode([add, multiply], engine=engine, options={"multiply": {"side_effects": "write"}})
            self.graph(node).invoke({"messages": [message(("add", {"a": 1}), ("multiply", {"a": 1}))]})
        self.assertEqual(asked, ["multiply"])
        self.assertEqual(options_of({"timeout": 1}), {"side_effects": "read", "attempts": 1, "timeout": 1})

    def test_reads_overlap_and_writes_do_not(self) -> None:
        together = threading.Barrier(2, timeout=WAIT_MAX_S)
        running: list[int] = []

        @tool
        def read() -> int:
            "Reads."
            return int(together.wait() >= 0)

        @tool
        def write() -> int:
            "Writes."
            running.append(1)
            count = len(running)
            running.pop()
            return count

        options = {"write": {"side_effects": "write"}}
        found = self.run_one([read, write], *[("read", {})] * 2, *[("write", {})] * 3, options=options)
        self.assertEqual([one.content for one in found], ["1"] * 5)

    def test_who_approves_may_change_the_arguments(self) -> None:
        with self.engine(approve=lambda question: Edit({"a": 10})) as engine:
            node = ToolNode([add], engine=engine, options={"add": {"side_effects": "write"}})
            (found,) = self.messages(self.graph(node).invoke({"messages": [message(("add", {"a": 1}))]}))
            self.assertTrue(found.content.endswith("\n12"))
            self.assertIn("changed", found.content)

    def test_context_variables_and_wrap_tool_call(self) -> None:
        @tool
        def look() -> str:
            "Looks."
            return VARIABLE.get()

        @tool
        async def alook() -> str:
            "Looks."
            return VARIABLE.get()

        def wrap(request: Any, execute: Any) -> Any:
            result = execute(request)
            return result.model_copy(update={"artifact": "wrapped"})

        VARIABLE.set("mine")
        found = self.run_one([look], ("look", {}), wrap_tool_call=wrap)
        found += self.run_one([alook], ("alook", {}))
        self.assertEqual([(one.content, one.artifact) for one in found], [("mine", "wrapped"), ("mine", None)])

    def test_pictures(self) -> None:
        block = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}

        @tool
        def draw() -> Any:
            "Draws."
            return [{"type": "text", "text": "a picture"}, block]

        (found,) = self.run_one([draw], ("draw", {}))
        self.assertEqual(found.content, [{"type": "text", "text": "a picture"}, block])

    def test_a_tool_that_hangs_ends_at_its_timeout(self) -> None:
        release = threading.Event()
        self.addCleanup(release.set)

        @tool
        def hang() -> str:
            "Hangs."
            release.wait(WAIT_MAX_S)
            return ""

        found = self.run_one([hang, add], ("hang", {}), ("add", {"a": 1}), options={"hang": {"timeout": 0.05}})
        self.assertEqual([one.status for one in found], ["error", "success"])

    def test_a_session_of_ones_own_has_its_other_tools(self) -> None:
        (self.workspace / "a.txt").write_text("hi\n")
        with self.running.session() as session:
            node = ToolNode([add], session=session)
            found = self.messages(self.graph(node).invoke(
                {"messages": [message(("read_file", {"path": "a.txt"}), ("add", {"a": 1}))]}))  # fmt: skip
            self.assertIn("hi", found[0].content)
            self.assertEqual(session.call("add", a=1), 3)

    def test_an_agent(self) -> None:
        from langgraph.prebuilt import create_react_agent

        warnings.simplefilter("ignore", DeprecationWarning)

        class Model(GenericFakeChatModel):
            def bind_tools(self, tools: Any, **_: Any) -> Any:
                return self

        answers = iter([message(("add", {"a": 1})), AIMessage("it is 3")])
        agent = create_react_agent(Model(messages=answers), ToolNode([add], engine=self.running))
        result = agent.invoke({"messages": [HumanMessage("1 + 2?")]})
        self.assertEqual([one.content for one in result["messages"]], ["1 + 2?", "", "3", "it is 3"])

    def test_wrong_use(self) -> None:
        with self.assertRaisesRegex(TypeError, "an engine or a session"):
            ToolNode([add])
        with self.assertRaisesRegex(ValueError, "nope"):
            ToolNode([add], engine=self.running, options={"nope": {}})
        with self.assertRaisesRegex(toolyard.Closed, "not started"):
            ToolNode([add], engine=Engine())
        with self.assertRaisesRegex(TypeError, "no server"):
            ToolNode([add], session=toolyard.http.engine.Session(None, None))  # type: ignore[arg-type]
        taken = StructuredTool.from_function(lambda path: path, name="read_file", description="x")
        with self.assertRaises(toolyard.Refused):
            self.graph(ToolNode([taken], engine=self.running)).invoke({"messages": [message(("read_file", {}))]})


class AsyncNode(RealProgram, unittest.IsolatedAsyncioTestCase):
    graph = Node.graph

    async def test_either_engine_in_a_graph_that_awaits(self) -> None:
        loops: set[int] = set()

        @tool
        async def where() -> str:
            "Where?"
            loops.add(id(asyncio.get_running_loop()))
            return VARIABLE.get()

        given = {"messages": [message(("add", {"a": 1}), ("aadd", {"a": 1}), ("where", {}))]}
        VARIABLE.set("mine")
        async with self.aengine() as engine:
            result = await self.graph(ToolNode([add, aadd, where], engine=engine)).ainvoke(given)
            self.assertEqual([one.content for one in result["messages"][1:]], ["3", "3", "mine"])
            async with engine.session() as session:
                result = await self.graph(ToolNode([add, aadd, where], session=session)).ainvoke(given)
                self.assertEqual(result["messages"][-1].content, "mine")
        other = await asyncio.to_thread(self.engine().start)
        try:
            result = await self.graph(ToolNode([add, aadd, where], engine=other)).ainvoke(given)
            self.assertEqual([one.content for one in result["messages"][1:]], ["3", "3", "mine"])
        finally:
            await asyncio.to_thread(other.close)
        self.assertEqual(loops, {id(asyncio.get_running_loop())})

    async def test_a_graph_that_is_cancelled_cancels_its_calls(self) -> None:
        begun = asyncio.Event()
        stopped = asyncio.Event()

        @tool
        async def hang() -> None:
            "Hangs."
            begun.set()
            try:
                await asyncio.sleep(WAIT_MAX_S)
            finally:
                stopped.set()

        async with self.aengine() as engine:
            graph = self.graph(ToolNode([hang], engine=engine))
            task = asyncio.ensure_future(graph.ainvoke({"messages": [message(("hang", {}))]}))
            await begun.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await stopped.wait()


if __name__ == "__main__":
    unittest.main()
