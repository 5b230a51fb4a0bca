"""Kills a system in the middle of a session, resumes it, counts.

    python3 run.py --system langgraph --system dbos --kills 20 --json figures.json
    python3 run.py --system toolyard --command "path/to/program arguments"
    python3 run.py --check

`--command` gets two more arguments: `start` or `resume`, and the path of a job file (README.md, "Plugging in another system").
"""

import argparse
import json
import random
import shlex
import sys
import tempfile
from pathlib import Path

import scenario
from report import median_and_range, summary, table, versions
from session import Session

HERE = Path(__file__).parent
TRIES = 5

SYSTEMS = {
    "langgraph": ["langgraph_task.py"],
    "langgraph-node": ["langgraph_node.py", "node"],
    "langgraph-send": ["langgraph_node.py", "send"],
    "dbos": ["dbos_steps.py"],
    "dbos-queue": ["dbos_queue.py"],
    "rerun": ["deliberate.py", "rerun"],
    "forget": ["deliberate.py", "forget"],
    "unknown": ["deliberate.py", "unknown"],
    "look": ["deliberate.py", "look"],
}


def command_of(system, given):
    if system == "toolyard":
        if not given:
            sys.exit("--system toolyard needs --command: the program that runs the session")
        return shlex.split(given)
    file, *form = SYSTEMS[system]
    return [sys.executable, str(HERE / "systems" / file), *form]


def once(command, plan, kind, rng, whole_ms):
    """One kill that hit; a first run that ended before its kill is thrown away and drawn again."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="durability-") as directory:
            session = Session(command, plan, directory)
            if kind == "effect":
                last = sum(call["kind"] != "read" for batch in session.batches for call in batch)
                at = {"kill_after_line": rng.randint(1, last - 5)}
            else:
                at = {"kill_after_ms": round(rng.random() * whole_ms, 1)}
            if session.killed(**at):
                return {"kind": kind, **at, **session.resumed()}
    sys.exit(f"{TRIES} first runs ended before their kill")


def measure(systems, given, kills, seed):
    plan = scenario.scenario()
    commands = {system: command_of(system, given) for system in systems}
    figures = {}
    for system, command in commands.items():
        wholes = []
        for _ in range(3):
            with tempfile.TemporaryDirectory(prefix="durability-") as directory:
                about, whole = Session(command, plan, directory).whole()
                wholes.append(whole)
        uncut = {name: median_and_range([round(whole[name], 1) for whole in wholes]) for name in wholes[0]}
        figures[system] = {"about": about, "without_a_kill": uncut, "kills": []}
        print(f"{system}: without a kill {uncut}", file=sys.stderr)
    # Systems take turns, so that other work on the machine meets all of them; each has the same draws.
    for kind in ("effect", "moment"):
        for n in range(kills):
            for system, command in commands.items():
                rng = random.Random(f"{seed} {kind} {n}")
                whole_ms = figures[system]["without_a_kill"]["first_call_to_end_ms"]["median"]
                kill = once(command, plan, kind, rng, whole_ms)
                figures[system]["kills"].append(kill)
                shown = {key: value for key, value in kill.items() if value and key != "resume_error"}
                print(f"{system} {n}: {shown}", file=sys.stderr, flush=True)
    for entry in figures.values():
        entry["summary"] = {
            kind: summary([kill for kill in entry["kills"] if kill["kind"] == kind]) for kind in ("effect", "moment")
        }
    return figures


def check(seed):
    """The deliberate systems must be found, each for what it does, and no fault where there is none."""
    figures = measure(["rerun", "forget", "unknown", "look"], None, 3, seed)
    for kind in ("effect", "moment"):
        failed = [
            name for name, held in held_of({key: entry["summary"][kind] for key, entry in figures.items()}, kind) if not held
        ]
        if failed:
            sys.exit(f"{kind}: the harness did not find: {', '.join(failed)}")
    print("the harness finds what the deliberate systems do, and nothing else")


def held_of(found, kind):
    """A kill at any moment may hit where no write is in doubt; a kill after an effect never does."""

    def total(system, name):
        return found[system][name]["total"]

    yield "rerun: effects twice", total("rerun", "effects_twice") > 0
    yield "rerun: given and run again", total("rerun", "given_and_run_again") > 0
    yield "rerun: reads repeated", total("rerun", "reads_repeated") > 0
    yield "rerun: no result lost", total("rerun", "results_lost") == 0
    yield "forget: results lost", total("forget", "results_lost") > 0
    yield "forget: nothing twice", total("forget", "effects_twice") == 0
    yield "unknown: nothing twice", total("unknown", "effects_twice") == 0
    yield "unknown: no result lost", total("unknown", "results_lost") == 0
    yield "look: nothing twice", total("look", "effects_twice") == 0
    yield "look: nothing missing", total("look", "effects_missing") == 0
    yield "look: no result lost", total("look", "results_lost") == 0
    yield "look: nothing given runs again", total("look", "given_and_run_again") == 0
    if kind == "effect":
        yield "rerun: an effect twice after each kill", found["rerun"]["kills_with_an_effect_twice"] == found["rerun"]["kills"]
        yield "unknown: an outcome unknown after each kill", total("unknown", "outcome_unknown") >= found["unknown"]["kills"]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--system", action="append", choices=[*SYSTEMS, "toolyard"])
    options.add_argument("--command", help="with --system toolyard: the program; it gets `start` or `resume` and a job file")
    options.add_argument("--kills", type=int, default=20, help="of each kind")
    options.add_argument("--seed", type=int, default=1, help="of the kills; the scenario has its own")
    options.add_argument("--json", type=Path, help="where the figures go; systems not measured now stay in it")
    options.add_argument("--check", action="store_true", help="check the harness with systems whose figures are known")
    options = options.parse_args()
    if options.check:
        check(options.seed)
        return
    figures = measure(options.system or ["langgraph", "dbos"], options.command, options.kills, options.seed)
    table(figures)
    if options.json:
        entries = json.loads(options.json.read_text())["systems"] if options.json.exists() else {}
        for system, entry in figures.items():
            entries[system] = {"seed": options.seed, "versions": versions(), **entry}
        options.json.write_text(json.dumps({"scenario_seed": scenario.SEED, "systems": entries}, indent=1) + "\n")


if __name__ == "__main__":
    main()
