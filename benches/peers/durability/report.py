"""Figures of all kills together, with the versions they belong to."""

import importlib.metadata
import os
import platform
import sqlite3
import statistics

PACKAGES = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langgraph-prebuilt",
    "langchain-core",
    "dbos",
    "SQLAlchemy",
)


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
    "not_run",
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


def versions():
    found = {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "os": platform.system(),
        "cores": os.cpu_count(),
    }
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


COLUMNS = (
    ("kills", "kills"),
    ("with an effect twice", "kills_with_an_effect_twice"),
    ("effects twice", "effects_twice"),
    ("missing", "effects_missing"),
    ("lost", "results_lost"),
    ("unknown", "outcome_unknown"),
    ("not run", "not_run"),
    ("given, run again", "given_and_run_again"),
    ("reads again", "reads_repeated"),
    ("first new call, ms", "to_first_new_call_ms"),
    ("end, ms", "to_end_ms"),
)


def cell(found):
    """A total, or a median with its range."""
    if isinstance(found, int):
        return str(found)
    if found is None:
        return "-"
    if "total" in found:
        return str(found["total"])
    return f"{found['median']:.0f} ({found['min']:.0f} to {found['max']:.0f})"


def table(figures):
    print("| system | kill | " + " | ".join(head for head, _ in COLUMNS) + " |")
    print("|---|---|" + "--:|" * len(COLUMNS))
    for system, entry in figures.items():
        for kind, found in entry["summary"].items():
            print(f"| {system} | {kind} | " + " | ".join(cell(found[name]) for _, name in COLUMNS) + " |")
