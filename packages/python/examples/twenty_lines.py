"""Three functions as tools, a model's answer, an approval by callback, and a key that is sent twice."""

from toolyard import Call, Context, Engine, Question, tool


@tool(side_effects="none")
def add(a: int, b: int = 0) -> int:
    "Adds two numbers."
    return a + b


@tool(side_effects="read")
def stock(item: str) -> dict[str, int]:
    "How many there are of an item."
    return {item: 3}


@tool(side_effects="network", timeout=30)
def order(item: str, count: int, context: Context) -> str:
    "Orders an item."
    print("ordering", item, "with the key", context.key)
    return f"ordered {count} of {item}"


def approve(question: Question) -> bool:
    print(question)
    return question.arguments["count"] <= 5


# What a provider's API has returned.
ANSWER = {
    "role": "assistant",
    "content": [
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}},
        {"type": "tool_use", "id": "toolu_2", "name": "stock", "input": {"item": "lamp"}},
        {"type": "tool_use", "id": "toolu_3", "name": "order", "input": {"item": "lamp", "count": 50}},
    ],
}

with Engine([add, stock, order], approve=approve) as engine, engine.session() as session:
    turn = session.dispatch(ANSWER)
    for result in turn.messages[0]["content"]:  # for the next request to the model
        print(result["content"])

    lamps = Call("order", {"item": "lamp", "count": 2}, key="order-17")
    print([session.call(lamps) for _ in range(2)])  # two turns, one order
