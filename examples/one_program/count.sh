# Counts the words of a file, {"path":"…"}, or connects to a port of this machine, {"connect":"…"}.
# What it prints is its result; the exit code of what failed is its own, and standard error says why.
document=$(cat)
value=${document#*:\"}
value=${value%\"*}
case $document in
*\"path\"*) words=$(wc -w <"$value") && echo "{\"words\":$((words))}" ;;
*) if command -v bash >/dev/null; then bash -c "exec 3<>/dev/tcp/127.0.0.1/$value"; else nc 127.0.0.1 "$value" </dev/null; fi &&
    echo '{"connected":true}' ;;
esac
