"""The examples of README and of the guide, run as they are written; AG-15."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import HERE, WAIT_MAX_S, RealProgram, setUpModule, tearDownModule

PACKAGE = HERE.parent
GUIDE = PACKAGE.parent.parent / "docs" / "guide" / "packages.md"
EXAMPLES = PACKAGE / "examples"


def blocks(path: Path, tag: str = "python") -> list[str]:
    """Empty where the texts are not, as when the tests run elsewhere."""
    return re.findall(rf"```{tag}\n(.*?)```", path.read_text(), re.DOTALL) if path.exists() else []


class Texts(RealProgram):
    def run_text(self, text: str) -> str:
        environment = {**os.environ, "TOOLYARD_PROGRAM": self.program, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-W", "error", "-c", text], cwd=self.workspace, env=environment,
                              capture_output=True, text=True, timeout=WAIT_MAX_S, check=False)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_the_readme(self) -> None:
        for text in blocks(PACKAGE / "README.md"):
            self.assertIn("'content': '3'", self.run_text(text))

    def test_the_guide_shows_the_examples(self) -> None:
        shown = blocks(GUIDE)
        for name in ("twenty_lines", "langgraph_agent"):
            example = EXAMPLES / f"{name}.py"
            if GUIDE.exists() and example.exists():
                self.assertIn(example.read_text(), shown)

    def test_the_guide(self) -> None:
        ran = 0
        for text in blocks(GUIDE):
            # These are run by the tests of LangGraph and of the server.
            if "langgraph" in text or "connect(" in text:
                continue
            said = self.run_text(text)
            ran += 1
            if "def stock" in text:
                shown = blocks(GUIDE, "text")[0].splitlines()
                self.assertEqual([line for line in said.splitlines() if line in shown], shown)
                self.assertEqual(said.count("ordering lamp"), 1)
        self.assertEqual(ran, 2 if GUIDE.exists() else 0)


if __name__ == "__main__":
    unittest.main()
