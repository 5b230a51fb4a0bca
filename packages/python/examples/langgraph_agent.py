"""An agent of LangGraph whose tools run in the engine, with a scripted model."""

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

from toolyard import Engine
from toolyard.langgraph import ToolNode


def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b


def save(text: str) -> str:
    "Saves a text."
    return f"saved {text}"


calls = [{"name": "add", "args": {"a": 1, "b": 2}, "id": "1"}, {"name": "save", "args": {"text": "3"}, "id": "2"}]
model = GenericFakeChatModel(messages=iter([AIMessage("", tool_calls=calls), AIMessage("It is 3, and saved.")]))

with Engine(approve=lambda question: question.tool == "save") as engine:
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([add, save], engine=engine, options={"save": {"side_effects": "write"}}))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    for message in graph.compile().invoke({"messages": [HumanMessage("What is 1 + 2? Save it.")]})["messages"]:
        print(message.type, message.content)
