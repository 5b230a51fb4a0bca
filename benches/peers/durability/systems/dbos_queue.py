"""DBOS: the session is a workflow, each call a workflow of its own on a queue, of one step.

Resumed as documented: launch() recovers what was pending; the handle is found by the workflow's id. The queue is looked at
every 20 ms; with the default of one second the session would take a minute of waiting.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from dbos import DBOS, SetWorkflowID

from work import Job, perform

WORKFLOW = "session"
QUEUE = "calls"
POLL = 0.02
JOB = None


@DBOS.step()
def call_tool(call: dict) -> str:
    return perform(JOB, call)


@DBOS.workflow()
def session(batches: list) -> dict:
    outputs = {}
    for batch in batches:
        handles = [DBOS.enqueue_workflow(QUEUE, call_tool, call) for call in batch]
        for call, handle in zip(batch, handles):
            outputs[call["id"]] = handle.get_result(polling_interval_sec=POLL)
    return outputs


def main(verb, path):
    global JOB
    JOB = Job(path)
    database = f"sqlite:///{JOB.state_dir / 'dbos.sqlite'}"
    DBOS(config={"name": "durability", "system_database_url": database, "log_level": "WARNING"})
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLL)
    if verb == "resume" and DBOS.get_workflow_status(WORKFLOW) is not None:
        handle = DBOS.retrieve_workflow(WORKFLOW)
    else:
        with SetWorkflowID(WORKFLOW):
            handle = DBOS.start_workflow(session, JOB.batches)
    JOB.write_results(handle.get_result())
    DBOS.destroy()


if __name__ == "__main__":
    main(*sys.argv[1:])
