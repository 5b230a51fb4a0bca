// Three functions as tools, a model's answer, an approval by callback, and a key that is sent twice.

import { start, tool } from "toolyard";

const object = (properties) => ({ type: "object", properties, required: Object.keys(properties), additionalProperties: false });
const number = { type: "number" };
const text = { type: "string" };

const add = tool({
  name: "add",
  description: "Adds two numbers.",
  inputSchema: object({ a: number, b: number }),
  sideEffects: "none",
  run: ({ a, b }) => a + b,
});

const stock = tool({
  name: "stock",
  description: "How many there are of an item.",
  inputSchema: object({ item: text }),
  sideEffects: "read",
  run: async ({ item }) => ({ [item]: 3 }),
});

const order = tool({
  name: "order",
  description: "Orders an item.",
  inputSchema: object({ item: text, count: number }),
  sideEffects: "network",
  timeoutMs: 30_000,
  run({ item, count }, { key }) {
    console.log("ordering", item, "with the key", key);
    return `ordered ${count} of ${item}`;
  },
});

function approve(question) {
  console.log(String(question));
  return question.arguments.count <= 5;
}

// What a provider's API has returned.
const answer = {
  role: "assistant",
  content: [
    { type: "tool_use", id: "toolu_1", name: "add", input: { a: 1, b: 2 } },
    { type: "tool_use", id: "toolu_2", name: "stock", input: { item: "lamp" } },
    { type: "tool_use", id: "toolu_3", name: "order", input: { item: "lamp", count: 50 } },
  ],
};

const engine = await start({ tools: [add, stock, order], approve });
const session = await engine.session();

const turn = await session.dispatch(answer);
for (const { content } of turn.messages[0].content) console.log(content); // for the next request to the model

const lamps = ["order", { item: "lamp", count: 2 }, { key: "order-17" }];
console.log([await session.call(...lamps), await session.call(...lamps)]); // two turns, one order

await engine.close();
