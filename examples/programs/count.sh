#!/bin/sh
# Counts the lines, words and bytes of a file in the workspace. Called with one JSON document, {"path": "…"}, on its
# standard input; what it prints is its result, an exit code other than 0 a failure.
set -eu
path=$(sed -n 's/.*"path":"\([^"]*\)".*/\1/p') # the schema lets no quotes into a path
[ -f "$path" ] || { echo "there is no file '$path'" >&2; exit 1; }
set -- $(wc -l <"$path") $(wc -w <"$path") $(wc -c <"$path")
echo "{\"lines\": $1, \"words\": $2, \"bytes\": $3}"
