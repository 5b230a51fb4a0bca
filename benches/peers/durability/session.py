"""One session of a system in a directory of its own: started, killed, resumed."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import score

RUN_TIMEOUT = 300


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
