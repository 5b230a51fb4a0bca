"""What tests share: engines with a scripted peer, and the real program."""

from __future__ import annotations

import faulthandler
import logging
import os
import shutil
import sys
import sysconfig
import tempfile
import unittest
from pathlib import Path
from typing import Any

from toolyard import AsyncEngine, Engine

HERE = Path(__file__).resolve().parent
WAIT_MAX_S = 120


def setUpModule() -> None:
    faulthandler.dump_traceback_later(3 * WAIT_MAX_S, exit=True)
    logging.getLogger("toolyard").setLevel(logging.CRITICAL)


def tearDownModule() -> None:
    faulthandler.cancel_dump_traceback_later()


def scripted(script: str, *tools: Any, **options: Any) -> Engine:
    """An engine whose program is a script of `peer.py`."""
    return Engine(tools, program=[sys.executable, HERE / "peer.py", script], **options)


def ascripted(script: str, *tools: Any, **options: Any) -> AsyncEngine:
    """The same for asyncio."""
    return AsyncEngine(tools, program=[sys.executable, HERE / "peer.py", script], **options)


def real_program() -> str | None:
    """The program of `TOOLYARD`, or the one that was installed with the package."""
    installed = Path(sysconfig.get_path("scripts")) / "toolyard"
    return os.environ.get("TOOLYARD") or (str(installed) if shutil.which(str(installed)) else None)


class RealProgram(unittest.TestCase):
    """Tests under the real program, in an empty directory. Without one they are skipped, and fail where CI=true."""

    def setUp(self) -> None:
        program = real_program()
        if program is None and os.environ.get("CI") == "true":
            self.fail("TOOLYARD names no program")
        if program is None:
            self.skipTest("TOOLYARD names no program")
        self.program = program
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.workspace = Path(directory.name).resolve()
        self.config = self.workspace / "toolyard.toml"
        self.config.write_text("")

    def engine(self, *tools: Any, **options: Any) -> Engine:
        return Engine(tools, **{"program": self.program, "workspace": self.workspace, "config": self.config, **options})

    def aengine(self, *tools: Any, **options: Any) -> AsyncEngine:
        defaults = {"program": self.program, "workspace": self.workspace, "config": self.config}
        return AsyncEngine(tools, **{**defaults, **options})


def answer(*calls: tuple[str, str, Any]) -> dict[str, Any]:
    """A model's answer as Anthropic's API gives it, with calls (id, name, input)."""
    parts = [{"type": "tool_use", "id": call_id, "name": name, "input": args} for call_id, name, args in calls]
    return {"role": "assistant", "content": parts}
