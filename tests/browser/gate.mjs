// A tool whose calls end when a test says so: an MCP server over stdio, which `toolyard serve` starts.
//
//   gate__pass ─► waits ◄─ POST n at the address that the server writes into a file: so many may end

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SELF = fileURLToPath(import.meta.url);

/** The lines of a configuration that have the tool `gate__pass`, and how its calls are let through. */
export function gate(folder) {
  const file = join(folder, "gate-address");
  const config = `[mcp.gate]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify([SELF, file])}\ntrust = true\n`;
  /** Lets so many calls end: of those that wait, and of later ones. */
  const pass = async (count) => {
    const answer = await fetch(readFileSync(file, "utf8"), { method: "POST", body: String(count) });
    if (!answer.ok) throw new Error(`the gate answered ${answer.status}`);
  };
  return { config, pass };
}

/** What is asked of the server. */
function answers(message, end) {
  if (message.method === "initialize") {
    return { protocolVersion: message.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "gate", version: "1" } };
  }
  if (message.method === "tools/list") {
    const annotations = { readOnlyHint: true, openWorldHint: false };
    return { tools: [{ name: "pass", description: "Ends when it may", inputSchema: { type: "object" }, annotations }] };
  }
  return message.method === "tools/call" ? end() : {};
}

/** Serves the tool until its input ends. */
function serveTool(file) {
  const held = [];
  let free = 0;
  const send = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  const passed = (id) => send(id, { content: [{ type: "text", text: "passed" }] });
  const open = () => {
    while (free > 0 && held.length > 0) {
      free -= 1;
      passed(held.shift());
    }
  };
  const http = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    free += Number(body);
    open();
    response.end();
  });
  http.listen(0, "127.0.0.1", () => {
    // Whoever reads the file finds all of it.
    writeFileSync(`${file}.new`, `http://127.0.0.1:${http.address().port}/`);
    renameSync(`${file}.new`, file);
    const lines = createInterface(process.stdin);
    lines.on("line", (line) => {
      const message = JSON.parse(line);
      if (message.id === undefined) return;
      const result = answers(message, () => {
        held.push(message.id);
        open();
      });
      if (result) send(message.id, result);
    });
    lines.once("close", () => process.exit());
  });
}

if (process.argv[1] === SELF) serveTool(process.argv[2]);
