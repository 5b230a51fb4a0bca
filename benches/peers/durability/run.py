"""Kills a system in the middle of a session, resumes it, counts.

    python3 run.py --system langgraph --system dbos --kills 20 --json figures.json
    python3 run.py --system toolyard --command "path/to/program arguments"
    python3 run.py --check

`--command` gets two more arguments: `start` or `resume`, and the path of a job file (README.md, "Plugging in another system").
"""

import argparse
import importlib.metadata
import json
import os
import platform
import random
import shlex
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import scenario
import score

HERE = Path(__file__).parent
RUN_TIMEOUT = 300
TRIES = 5

PACKAGES = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite", "langgraph-prebuilt", "langchain-core", "dbos", "SQLAlchemy")

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


class Session:
    """One session in a directory of its own: a first run, and perhaps a second."""

    def __init__(self, command, plan, directory):
        self.command = command
        self.directory = Path(directory)
        self.batches = plan["batches"]
        self.ledger, self.trace, self.results = (self.directory / name for name in ("ledger", "trace", "results.json"))
        (self.directory / "state").mkdir()
        (self.directory / "scenario.json").write_text(json.dumps(plan))

    def launch(self, run, kill_after_line=None):
        job = self.directory / f"job{run}.json"
        fields = {
            "run": run,
            "scenario": str(self.directory / "scenario.json"),
            "state_dir": str(self.directory / "state"),
            "ledger": str(self.ledger),
            "trace": str(self.trace),
            "results": str(self.results),
            "kill_after_line": kill_after_line,
        }
        job.write_text(json.dumps(fields))
        self.errors = (self.directory / f"stderr{run}").open("wb")
        verb = "resume" if run else "start"
        self.started_ns = time.time_ns()
        return subprocess.Popen(
            [*self.command, verb, str(job)],
            stdin=subprocess.DEVNULL,
            stdout=self.errors,
            stderr=self.errors,
            start_new_session=True,
        )

    def wait(self, process):
        try:
            return process.wait(timeout=RUN_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "timeout"
        finally:
            self.errors.close()

    def told(self, run):
        return (self.directory / f"stderr{run}").read_text(errors="replace")[-2000:]

    def whole(self):
        """A run that nobody kills."""
        code = self.wait(self.launch(0))
        if code != 0:
            sys.exit(f"a run without a kill ended with {code}:\n{self.told(0)}")
        trace = score.lines(self.trace)
        first = min(at for _, _, at in trace)
        ended = self.results.stat().st_mtime_ns
        faults = {key: value for key, value in self.counted().items() if value}
        if faults:
            sys.exit(f"a run without a kill has faults: {faults}")
        about = json.loads(self.results.read_text()).get("system", {})
        return about, {"to_first_call_ms": (first - self.started_ns) / 1e6, "first_call_to_end_ms": (ended - first) / 1e6}

    def counted(self):
        return score.counts(self.batches, score.lines(self.ledger), score.lines(self.trace), score.answers(self.results))

    def killed(self, kill_after_line=None, kill_after_ms=None):
        """True if the first run was killed before its results were there."""
        process = self.launch(0, kill_after_line)
        timer = threading.Thread(target=self.kill_later, args=(process, kill_after_ms))
        if kill_after_ms is not None:
            timer.start()
        code = self.wait(process)
        if kill_after_ms is not None:
            timer.join()
        if code not in (0, -signal.SIGKILL):
            sys.exit(f"the first run ended with {code}:\n{self.told(0)}")
        return code != 0 and not self.results.exists()

    def kill_later(self, process, after_ms):
        """The clock starts with the first call, so that no kill is spent on the start of an interpreter."""
        while not self.trace.exists():
            if process.poll() is not None:
                return
            time.sleep(0.001)
        time.sleep(after_ms / 1000)
        # The main thread may have reaped it already; then the number is no longer its own, and send_signal does nothing.
        process.send_signal(signal.SIGKILL)

    def resumed(self):
        code = self.wait(self.launch(1))
        ended = self.results.stat().st_mtime_ns if self.results.exists() else None
        figures = {"resume_exit": code, **self.counted(), **score.times(score.lines(self.trace), self.started_ns, ended)}
        if code != 0:
            figures["resume_error"] = self.told(1)
        return figures


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


def median_and_range(values):
    values = sorted(value for value in values if value is not None)
    if not values:
        return None
    return {"median": round(statistics.median(values), 1), "min": values[0], "max": values[-1]}


COUNTS = (
    "effects_twice",
    "effects_extra",
    "keyed_repeated",
    "effects_missing",
    "effects_missing_but_completed",
    "results_lost",
    "outcome_unknown",
    "reads_repeated",
    "given_and_run_again",
)
TIMES = ("to_first_call_ms", "to_first_new_call_ms", "to_end_ms")


def summary(kills):
    figures = {"kills": len(kills), "resume_failed": sum(kill["resume_exit"] != 0 for kill in kills)}
    figures["kills_with_an_effect_twice"] = sum(kill["effects_twice"] > 0 for kill in kills)
    for name in COUNTS:
        values = [kill[name] for kill in kills]
        figures[name] = {"total": sum(values), **median_and_range(values)}
    for name in TIMES:
        figures[name] = median_and_range([kill[name] for kill in kills])
    return figures


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
        entry["summary"] = {kind: summary([kill for kill in entry["kills"] if kill["kind"] == kind]) for kind in ("effect", "moment")}
    return figures


def versions():
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "os": platform.system(), "cores": os.cpu_count()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def check(seed):
    """The deliberate systems must be found, each for what it does, and no fault where there is none."""
    figures = measure(["rerun", "forget", "unknown", "look"], None, 3, seed)
    for kind in ("effect", "moment"):
        found = {system: entry["summary"][kind] for system, entry in figures.items()}
        total = lambda system, name: found[system][name]["total"]
        expected = {
            "rerun: an effect twice after each kill": kind == "moment" or found["rerun"]["kills_with_an_effect_twice"] == 3,
            "rerun: effects twice": total("rerun", "effects_twice") > 0,
            "rerun: given and run again": total("rerun", "given_and_run_again") > 0,
            "look: nothing given runs again": total("look", "given_and_run_again") == 0,
            "rerun: reads repeated": total("rerun", "reads_repeated") > 0,
            "rerun: no result lost": total("rerun", "results_lost") == 0,
            "forget: results lost": total("forget", "results_lost") > 0,
            "forget: nothing twice": total("forget", "effects_twice") == 0,
            "unknown: outcomes unknown": kind == "moment" or total("unknown", "outcome_unknown") >= 3,
            "unknown: nothing twice": total("unknown", "effects_twice") == 0,
            "unknown: no result lost": total("unknown", "results_lost") == 0,
            "look: nothing twice": total("look", "effects_twice") == 0,
            "look: nothing missing": total("look", "effects_missing") == 0,
            "look: no result lost": total("look", "results_lost") == 0,
        }
        failed = [name for name, held in expected.items() if not held]
        if failed:
            sys.exit(f"{kind}: the harness did not find: {', '.join(failed)}")
    print("the harness finds what the deliberate systems do, and nothing else")


def table(figures):
    spread = lambda found: "-" if found is None else f"{found['median']:g} ({found['min']:g} to {found['max']:g})"
    heads = ("system", "kill", "kills", "with an effect twice", "effects twice", "missing", "lost", "unknown", "given, run again", "reads again", "first new call ms", "end ms")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for system, entry in figures.items():
        for kind, found in entry["summary"].items():
            row = [system, kind, found["kills"], found["kills_with_an_effect_twice"]]
            row += [found["effects_twice"]["total"], found["effects_missing"]["total"], found["results_lost"]["total"]]
            row += [found["outcome_unknown"]["total"], found["given_and_run_again"]["total"], found["reads_repeated"]["total"]]
            row += [spread(found["to_first_new_call_ms"]), spread(found["to_end_ms"])]
            print("| " + " | ".join(map(str, row)) + " |")


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
