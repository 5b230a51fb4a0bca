"""Counts, from the files that one killed and resumed session left, what happened twice and what is missing."""

import json
from collections import Counter

from work import LINE


def lines(path):
    """(id, run, time in ns) of each line of a ledger or trace. A torn line is an error of the tool, not of the system."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    if len(data) % LINE:
        raise ValueError(f"{path}: {len(data)} bytes are no whole number of lines of {LINE} bytes")
    rows = (data[at : at + LINE].decode().split() for at in range(0, len(data), LINE))
    return [(id, int(run), int(at)) for id, run, at in rows]


def answers(path):
    if not path.exists():
        return {}
    return {call["id"]: call for call in json.loads(path.read_text())["calls"]}


def given_and_run_again(batches, trace):
    """Calls whose result the agent had before the kill, because a later batch had begun, and which ran again all the same."""
    batch_of = {call["id"]: n for n, batch in enumerate(batches) for call in batch}
    reached = max((batch_of[id] for id, run, _ in trace if run == 0), default=0)
    return sum(batch_of[id] < reached for id in {id for id, run, _ in trace if run == 1})


def counts(batches, ledger, trace, results):
    """Each figure is a number of calls, except `effects_extra`, the number of surplus effects."""
    calls = [call for batch in batches for call in batch]
    effects = Counter(id for id, _, _ in ledger)
    starts = Counter(id for id, _, _ in trace)
    by_kind = {kind: [call["id"] for call in calls if call["kind"] == kind] for kind in ("read", "write", "keyed")}
    known = {call["id"] for call in calls}
    strangers = (set(effects) | set(starts) | set(results)) - known
    if strangers:
        raise ValueError(f"calls that the scenario does not have: {sorted(strangers)[:5]}")
    unknown = {id for id, call in results.items() if call["status"] == "unknown"}
    # Said to be not run, and so it is: an agent may ask for it again. With an effect it is a lie, and counts as lost.
    not_run = {id for id, call in results.items() if call["status"] == "not_run" and not effects[id]}
    good = {
        call["id"]
        for call in calls
        if results.get(call["id"], {}).get("status") == "completed" and results[call["id"]]["output"] == call["output"]
    }
    return {
        "effects_twice": sum(effects[id] > 1 for id in by_kind["write"]),
        "effects_extra": sum(max(0, effects[id] - 1) for id in by_kind["write"]),
        "keyed_repeated": sum(effects[id] > 1 for id in by_kind["keyed"]),
        "effects_missing": sum(effects[id] == 0 for id in by_kind["write"] + by_kind["keyed"]),
        "effects_missing_but_completed": sum(effects[id] == 0 for id in by_kind["write"] + by_kind["keyed"] if id in good),
        "results_lost": len(known - good - unknown - not_run),
        "outcome_unknown": len(unknown),
        "not_run": len(not_run),
        "given_and_run_again": given_and_run_again(batches, trace),
        "reads_repeated": sum(starts[id] > 1 for id in by_kind["read"]),
    }


def times(trace, restarted_ns, ended_ns):
    """In ms from the restart. The first call of the second run may be an old one again; a new one was not started before."""
    before = {id for id, run, _ in trace if run == 0}
    again = sorted((at, id) for id, run, at in trace if run == 1)
    new = [at for at, id in again if id not in before]
    ms = lambda at: round((at - restarted_ns) / 1e6, 1)
    return {
        "started_before_kill": len(before),
        "to_first_call_ms": ms(again[0][0]) if again else None,
        "to_first_new_call_ms": ms(new[0]) if new else None,
        "to_end_ms": ms(ended_ns) if ended_ns else None,
    }
