"""An agent in twenty lines, without a library: reads two notes at once, and gives their sizes to whoever started it."""
import json
import sys


def say(**line):
    print(json.dumps(line), flush=True)


def hear():
    return json.loads(sys.stdin.readline())


for name in ("README.md", "notes/pests.md"):
    say(op="tool_call", tool_call_id=name, tool="Read", args={"path": f"examples/workspace/{name}"})

sizes = {}
for _ in range(2):
    answer = hear()
    sizes[answer["tool_call_id"]] = answer["result"]["size"] if answer["ok"] else answer["error"]
say(op="bye", result=sizes)
