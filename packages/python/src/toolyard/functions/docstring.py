"""What a docstring says of a function and of its parameters: in Google's style, or with ``:param name:``."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Return|Raises|Yields|Examples?|Notes?):\s*$")
_ENTRY = re.compile(r"^(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_FIELD = re.compile(r"^:(\w+)(?:\s+[^:]*?)??(?:\s+(\w+))?:\s*(.*)$")


def read_docstring(function: object) -> tuple[str, dict[str, str]]:
    """The text before the first section, and what is said of each parameter."""
    lines = (inspect.getdoc(function) or "").splitlines()
    end = next((at for at, line in enumerate(lines) if _SECTION.match(line) or _FIELD.match(line)), len(lines))
    return "\n".join(lines[:end]).strip(), {**_google(lines[end:]), **_fields(lines[end:])}


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    within, name, indent = False, "", 0
    for line in lines:
        section = _SECTION.match(line)
        if section:
            within, name, indent = section[1] in ("Args", "Arguments", "Parameters"), "", 0
        elif within and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = indent or depth
            entry = _ENTRY.match(line.strip()) if depth == indent else None
            if entry:
                name = entry[1]
                found[name] = entry[2]
            elif name:
                found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _fields(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        field = _FIELD.match(line)
        if field:
            name = field[2] or "" if field[1] in ("param", "parameter", "arg") else ""
            if name:
                found[name] = field[3]
        elif name and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
