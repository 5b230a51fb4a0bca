"""LangGraph, functional API: an entrypoint, each call a task, whose result is stored on its own.

Resumed as documented for a run that failed: the same thread id, None as input.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task

from work import Job, perform

# Threads for ten calls, for the entrypoint, and for storing results: all share one pool. The default, cores + 4, would leave
# them waiting for each other on a small machine.
CONFIG = {"configurable": {"thread_id": "session"}, "max_concurrency": 16}


def program(job, saver):
    @task
    def call_tool(call: dict) -> str:
        return perform(job, call)

    @entrypoint(checkpointer=saver)
    def session(batches: list) -> dict:
        outputs = {}
        for batch in batches:
            futures = [call_tool(call) for call in batch]
            for call, future in zip(batch, futures):
                outputs[call["id"]] = future.result()
        return outputs

    return session


def main(verb, path):
    job = Job(path)
    with SqliteSaver.from_conn_string(str(job.state_dir / "checkpoints.sqlite")) as saver:
        session = program(job, saver)
        stored = verb == "resume" and saver.get_tuple(CONFIG) is not None
        outputs = session.invoke(None if stored else job.batches, CONFIG, durability="sync")
        job.write_results(outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
