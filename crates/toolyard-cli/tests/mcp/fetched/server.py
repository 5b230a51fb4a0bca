"""The server of server.js, in Python."""

import json
import os
import sys

TOOL = {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def look():
    try:
        with open(os.path.join(os.path.dirname(__file__), "written"), "w"):
            return "wrote"
    except OSError as error:
        return {30: "EROFS", 13: "EACCES"}.get(error.errno, str(error))


def answer(method, params):
    if method == "initialize":
        info = {"name": "fetched", "version": "1.2.3"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps([sys.argv[1:], look()])}]}
    return None


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params"))
        end = {"result": result} if result else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **end}), flush=True)
