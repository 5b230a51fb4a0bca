"""Drives `toolyard mcp` with the official Python SDK.

Arguments: the program, a configuration, a workspace, and the mode: http, or a mode of the SDK for standard input and output.
"""

import json
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

program, config, workspace, mode = sys.argv[1:]
workspace = Path(workspace)
asked = []


async def answer(context, params):
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"answer": "always"})


@asynccontextmanager
async def gateway():
    args = ["mcp", "--config", config, "--events", str(workspace / f"events-{mode}.jsonl")]
    if mode != "http":
        server = StdioServerParameters(command=program, args=args, cwd=workspace)
        async with Client(server, mode=mode, elicitation_callback=answer) as client:
            yield client
        return
    command, env = [program, *args, "--http", "127.0.0.1:0"], {"PATH": "/usr/bin:/bin", "TOOLYARD_MCP_TOKEN": "token"}
    server = subprocess.Popen(command, cwd=workspace, env=env, stderr=subprocess.PIPE, text=True)
    try:
        url = server.stderr.readline().split()[-1]
        async with create_mcp_http_client(headers={"Authorization": "Bearer token"}) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode="auto", elicitation_callback=answer) as client:
                yield client
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 130


def text(result):
    return result.content[0].text


async def until(path):
    with anyio.fail_after(30):
        while not path.exists():
            await anyio.sleep(0.02)


async def lists(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["echo", "shell", "write_file"], names


async def asks_once(client):
    """An 'always' covers later calls of the same pattern."""
    for content in ["a", "a"]:
        result = await client.call_tool("write_file", {"path": "asked.txt", "content": content})
        assert not result.is_error, result
    assert len(asked) == 1 and "write_file" in asked[0], asked


async def calls_in_parallel(client):
    """64 calls at once, each with its own answer."""
    results = {}

    async def call(n):
        results[n] = text(await client.call_tool("echo", {"text": str(n)}))

    async with anyio.create_task_group() as group:
        for n in range(64):
            group.start_soon(call, n)
    assert results == {n: str(n) for n in range(64)}


async def cancels(client):
    ready = workspace / "cancel-ready"
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            command = f"echo > {ready.name}; sleep 600; echo > cancel-missed"
            group.start_soon(client.call_tool, "shell", {"command": command})
            await until(ready)
            scope.cancel()
    # Mutating calls run one at a time: this one starts once the cancelled one has really stopped.
    started = time.monotonic()
    assert text(await client.call_tool("shell", {"command": "echo next"})).startswith("next")
    assert time.monotonic() - started < 60 and not (workspace / "cancel-missed").exists()


async def tells_progress(client):
    notes = []
    go = workspace / "progress-go"

    async def note(progress, total, message):
        notes.append((progress, message))
        go.touch()

    command = f"echo one; while [ ! -e {go.name} ]; do sleep 0.05; done; echo two"
    result = await client.call_tool("shell", {"command": command}, progress_callback=note)
    assert text(result).startswith("one\ntwo"), result
    assert notes[0][1] == "one\n" and notes == sorted(notes), notes


async def runs_a_key_once(client):
    go = workspace / "key-go"
    command = f"echo ran >> key-log; while [ ! -e {go.name} ]; do sleep 0.05; done; echo paid"
    results = []

    async def call():
        meta = {"toolyard/idempotency_key": "order-17"}
        results.append(await client.call_tool("shell", {"command": command}, meta=meta))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        group.start_soon(call)
        await until(workspace / "key-log")
        go.touch()
    assert (workspace / "key-log").read_text() == "ran\n"
    dedupe = sorted(result.meta["toolyard/call"]["dedupe"] for result in results)
    assert dedupe in (["fresh", "joined"], ["fresh", "replayed"]), dedupe


async def refuses(client):
    try:
        await client.call_tool("nope", {})
        raise AssertionError("an unknown tool has a result")
    except MCPError as error:
        assert error.code == -32602 and "not found" in str(error), error
    result = await client.call_tool("echo", {"txt": 1})
    assert result.is_error and result.meta["toolyard/error"]["code"] == "invalid_input", result


async def main():
    async with gateway() as client:
        for step in [lists, asks_once, calls_in_parallel, cancels, tells_progress, runs_a_key_once, refuses]:
            with anyio.fail_after(120):
                await step(client)
            print("ok", step.__name__, flush=True)
    events = [json.loads(line) for line in (workspace / f"events-{mode}.jsonl").read_text().splitlines()]
    came = [event for event in events if event["event"] == "tool.call.received"]
    ends = ("tool.completed", "tool.failed", "tool.call.denied", "tool.input_invalid")
    assert len(came) == sum(event["event"] in ends for event in events), "a call has no end"
    print("ok whole", len(came))


anyio.run(main)
