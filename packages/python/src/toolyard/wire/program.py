"""Where the program ``toolyard`` is."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ..errors import ProgramNotFound

VARIABLE = "TOOLYARD_PROGRAM"


def find_program(program: str | os.PathLike[str] | None = None) -> str:
    """The given program, that of ``TOOLYARD_PROGRAM``, the one that was installed with this package, or one in PATH."""
    for given, whose in ((program, "`program`"), (os.environ.get(VARIABLE), VARIABLE)):
        if given:
            found = shutil.which(os.fspath(given))
            if found is None:
                raise ProgramNotFound(f"{whose} is {os.fspath(given)!r}, where there is no program")
            return found
    for place in _installed():
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("toolyard")
    if found is None:
        raise ProgramNotFound(
            f"there is no program `toolyard`: it comes with the wheel of this package; set {VARIABLE} to a built one"
        )
    return found


def _installed() -> Iterator[Path]:
    name = "toolyard.exe" if sys.platform == "win32" else "toolyard"
    yield Path(sysconfig.get_path("scripts")) / name
    user = {"nt": "nt_user", "posix": "posix_user"}.get(os.name)
    if sys.platform == "darwin" and sysconfig.get_config_var("PYTHONFRAMEWORK"):
        user = "osx_framework_user"
    if user in sysconfig.get_scheme_names():
        yield Path(sysconfig.get_path("scripts", user)) / name
    # `pip install --target` puts scripts beside the packages.
    yield Path(__file__).resolve().parents[2] / "bin" / name
