"""Counts the lines, words and characters of a text file. The tool count_words of toolyard.toml.

Toolyard starts this program once for each call, in the workspace. The arguments are one JSON document on standard input,
which fit the schema in toolyard.toml, and what is printed is the result. An exit code other than 0 is a failure: the
model reads the code and what was printed, also on standard error. Exit code 75 says that trying again may help.

Try it alone:  echo '{"path": "workspace/welcome.md"}' | python3 tools/count_words.py
"""

import json
import sys


def count_words(path: str) -> dict[str, int]:
    """Counts what is in this file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return {"lines": len(text.splitlines()), "words": len(text.split()), "characters": len(text)}


def main() -> None:
    arguments = json.load(sys.stdin)
    try:
        result = count_words(arguments["path"])
    except (OSError, UnicodeDecodeError) as error:
        # Say what the model can do something about, and no more: it reads this.
        sys.exit(f"cannot read {arguments['path']}: {error.__class__.__name__}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
