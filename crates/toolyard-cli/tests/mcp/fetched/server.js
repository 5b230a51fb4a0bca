#!/usr/bin/env node
// A server with one tool, which says with which arguments it was started and whether it can write beside itself.
const fs = require("fs");
const tool = { name: "look", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };

function look() {
  try {
    fs.writeFileSync(__dirname + "/written", "x");
    return "wrote";
  } catch (error) {
    return error.code;
  }
}

function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "fetched", version: "1.2.3" },
      };
    case "tools/list":
      return { tools: [tool] };
    case "tools/call":
      return { content: [{ type: "text", text: JSON.stringify([process.argv.slice(2), look()]) }] };
  }
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const request = JSON.parse(line);
  if (request.id === undefined) return;
  const result = answer(request);
  const error = { code: -32601, message: "unknown" };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: request.id, ...(result ? { result } : { error }) }));
});
