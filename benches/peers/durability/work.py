"""What a tool call does, the same for every system in Python: wait, have its effect, wait, answer.

The effect of a write is one line in the ledger, appended and synced. Reads have none. Each call that starts leaves a line
in the trace, which is not synced: a kill of the process loses nothing that was written.
"""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

LINE = 32


class Job:
    """The file that the harness gives to a system: see README.md, "Plugging in another system"."""

    def __init__(self, path):
        fields = json.loads(Path(path).read_text())
        self.run = fields["run"]
        self.state_dir = Path(fields["state_dir"])
        self.ledger = fields["ledger"]
        self.trace = fields["trace"]
        self.results = Path(fields["results"])
        self.kill_after_line = fields["kill_after_line"]
        self.batches = json.loads(Path(fields["scenario"]).read_text())["batches"]

    def write_results(self, outputs, unknown=()):
        """`outputs`: id to output of each call that has a result; `unknown`: ids whose outcome the system says it cannot know."""
        calls = [{"id": id, "status": "completed", "output": output} for id, output in outputs.items()]
        calls += [{"id": id, "status": "unknown", "output": None} for id in unknown]
        written = self.results.with_suffix(".new")
        written.write_text(json.dumps({"calls": calls}))
        written.rename(self.results)


def line(id, run):
    text = f"{id} {run} {time.time_ns():019}\n".encode()
    assert len(text) == LINE
    return text


def trace(job, call):
    append(job.trace, line(call["id"], job.run))


def append(path, text, sync=False):
    """Returns the number of lines up to and including the one it wrote."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        assert os.write(fd, text) == LINE
        if sync:
            os.fsync(fd)
        return os.lseek(fd, 0, os.SEEK_CUR) // LINE
    finally:
        os.close(fd)


def append_text(path, text):
    with open(path, "ab", buffering=0) as file:
        file.write(text.encode())


def effect(job, call):
    """The worst moment for a kill is here: the effect is there and nobody but this function knows."""
    number = append(job.ledger, line(call["id"], job.run), sync=True)
    if job.kill_after_line is not None and call["kind"] == "write" and number >= job.kill_after_line:
        os.kill(os.getpid(), signal.SIGKILL)


def perform(job, call):
    trace(job, call)
    time.sleep(call["before_ms"] / 1000)
    if call["kind"] != "read":
        effect(job, call)
    time.sleep(call["after_ms"] / 1000)
    return call["output"]


async def perform_async(job, call):
    trace(job, call)
    await asyncio.sleep(call["before_ms"] / 1000)
    if call["kind"] != "read":
        await asyncio.to_thread(effect, job, call)
    await asyncio.sleep(call["after_ms"] / 1000)
    return call["output"]
