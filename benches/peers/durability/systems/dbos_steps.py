"""DBOS: the session is a workflow, each call a step; a batch's steps are started in order and gathered.

Resumed as documented: launch() recovers what was pending; the handle is found by the workflow's id.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from dbos import DBOS, SetWorkflowID

from work import Job, perform_async

WORKFLOW = "session"
JOB = None


@DBOS.step()
async def call_tool(call: dict) -> str:
    return await perform_async(JOB, call)


@DBOS.workflow()
async def session(batches: list) -> dict:
    outputs = {}
    for batch in batches:
        steps = [asyncio.create_task(call_tool(call)) for call in batch]
        done = await asyncio.gather(*steps, return_exceptions=True)
        for call, output in zip(batch, done):
            if isinstance(output, BaseException):
                raise output
            outputs[call["id"]] = output
    return outputs


async def finish(verb):
    if verb == "resume" and await DBOS.get_workflow_status_async(WORKFLOW) is not None:
        handle = await DBOS.retrieve_workflow_async(WORKFLOW)
    else:
        with SetWorkflowID(WORKFLOW):
            handle = await DBOS.start_workflow_async(session, JOB.batches)
    JOB.write_results(await handle.get_result())


def main(verb, path):
    global JOB
    JOB = Job(path)
    database = f"sqlite:///{JOB.state_dir / 'dbos.sqlite'}"
    DBOS(config={"name": "durability", "system_database_url": database, "log_level": "WARNING"})
    DBOS.launch()
    asyncio.run(finish(verb))
    DBOS.destroy()


if __name__ == "__main__":
    main(*sys.argv[1:])
