"""Systems whose figures are known, to show that the harness counts what it says. None is a peer.

rerun   keeps nothing: after a kill it runs every call again, so effects happen twice.
forget  notes each call before it starts and never runs a noted call again: results are lost, effects may be missing.
unknown as `forget`, but keeps results and says of a noted write without one that its outcome is unknown.
look    keeps results and looks into the ledger before it runs a write again, so nothing happens twice and nothing is lost.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from work import Job, append_text, perform


def read_notes(path):
    """The last line may be torn by the kill; whatever it noted did not get further."""
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_text().splitlines(keepends=True) if text.endswith("\n")]


def main(form, verb, path):
    job = Job(path)
    notes = job.state_dir / "notes"
    stored = [] if form == "rerun" else read_notes(notes)
    started = {note["id"] for note in stored}
    outputs = {note["id"]: note["output"] for note in stored if "output" in note}
    ledger = Path(job.ledger)
    effects = {text.split()[0] for text in ledger.read_text().splitlines()} if ledger.exists() else set()
    unknown = []

    def one(call):
        id = call["id"]
        if id in outputs:
            return
        if id in started and form == "forget":
            return
        if id in started and form == "unknown" and call["kind"] == "write":
            unknown.append(id)
            return
        if form == "look" and id in effects:
            outputs[id] = call["output"]
            return
        if form != "rerun":
            append_text(notes, json.dumps({"id": id}) + "\n")
        output = perform(job, call)
        if form in ("unknown", "look"):
            append_text(notes, json.dumps({"id": id, "output": output}) + "\n")
        outputs[id] = output

    with ThreadPoolExecutor(len(job.batches[0])) as pool:
        for batch in job.batches:
            list(pool.map(one, batch))
    job.write_results(outputs, unknown)


if __name__ == "__main__":
    main(*sys.argv[1:])
