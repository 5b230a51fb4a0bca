# The agent of these tests. CC_RUNNER_BEHAVIOR says what it does; the answer it gets it gives with its bye.

say() { printf '%s\n' "$1"; }
hear() { IFS= read -r heard; }
# Asks its model, and says what it said.
ask() {
    exec 4<>/dev/tcp/127.0.0.1/3128
    printf 'GET %s/chat HTTP/1.1\r\nHost: model\r\n\r\n' "${MODEL_URL#http://127.0.0.1:3128}" >&4
    tr -d '\r\n"\\' <&4
    exec 4>&-
}
# Makes one call and ends with its answer.
call() {
    say "$1"
    hear
    say "{\"op\":\"bye\",\"result\":$heard}"
}

case ${CC_RUNNER_BEHAVIOR:-echo} in
echo) call '{"op":"tool_call","tool_call_id":"1","tool":"Echo","args":{"text":"hello"}}' ;;
tool_call=*) call "${CC_RUNNER_BEHAVIOR#tool_call=}" ;;
# Several calls, each line of it one; ends with the list of the answers.
tool_calls=*)
    calls=${CC_RUNNER_BEHAVIOR#tool_calls=}
    printf '%s\n' "$calls"
    all=
    for _ in $(printf '%s\n' "$calls" | sed 's/.*/x/'); do
        hear
        all="$all${all:+,}$heard"
    done
    say "{\"op\":\"bye\",\"result\":[$all]}"
    ;;
loop) while :; do sleep 1000; done ;;
crash) kill -SEGV $$ ;;
exit=*) exit "${CC_RUNNER_BEHAVIOR#exit=}" ;;
flood) while :; do say '{"op":"tool_call","tool_call_id":"same","tool":"Echo","args":{"text":"x"}}'; say '{"op":"turn_end"}'; done ;;
# Sends calls and reads no answer.
deaf) n=0; while :; do n=$((n + 1)); say "{\"op\":\"tool_call\",\"tool_call_id\":\"$n\",\"tool\":\"Echo\",\"args\":{\"text\":\"x\"}}"; done ;;
garbage) while :; do printf '\377\376{]\n'; done ;;
long) head -c 104857600 /dev/zero | tr '\0' x ;;
# Begins a long line and does not end it.
slow) head -c 100000 /dev/zero | tr '\0' x; while :; do sleep 1000; done ;;
half) printf '{"op":"tool_call","tool_call_id":"1","tool":"Echo"' ;;
# Closes its output, and runs on.
mute) exec >&-; while :; do sleep 1000; done ;;
# Closes its input, and asks on.
numb) exec <&-; say '{"op":"tool_call","tool_call_id":"1","tool":"Echo","args":{"text":"x"}}'; sleep 0.2; say '{"op":"bye","result":"numb"}' ;;
# Leaves processes that have left its session, and hold its output.
daemons) for _ in 1 2 3; do setsid sleep 4711 & done; say '{"op":"bye","result":"left"}' ;;
# Starts agents of the profile child, whose names and number $CHILDREN says.
boss)
    for child in $CHILDREN; do
        say "{\"op\":\"tool_call\",\"tool_call_id\":\"$child\",\"tool\":\"Agent\",\"args\":{\"profile\":\"$CHILD\",\"name\":\"$child\",\"input\":\"$child\"}}"
    done
    all=
    for child in $CHILDREN; do
        hear
        all="$all${all:+,}$heard"
    done
    say "{\"op\":\"bye\",\"result\":[$all]}"
    ;;
# Adds a line to a shared file, in two steps that nobody may come between.
append)
    say "{\"op\":\"tool_call\",\"tool_call_id\":\"1\",\"tool\":\"add\",\"args\":{\"line\":\"$TOOLYARD_AGENT\"}}"
    hear
    say "{\"op\":\"bye\",\"result\":$heard}"
    ;;
# Asks its model, and tells what it said.
model) said=$(ask); say "{\"op\":\"bye\",\"result\":\"$said\"}" ;;
# Asks it so many times; then starts an agent of the profile CHILD, if there is one. Ends with all that was said.
models=*)
    all=
    for _ in $(seq "${CC_RUNNER_BEHAVIOR#models=}"); do all="$all${all:+,}\"$(ask)\""; done
    heard=null
    if [ -n "$CHILD" ]; then
        say "{\"op\":\"tool_call\",\"tool_call_id\":\"c\",\"tool\":\"Agent\",\"args\":{\"profile\":\"$CHILD\"}}"
        hear
    fi
    say "{\"op\":\"bye\",\"result\":{\"said\":[$all],\"child\":$heard}}"
    ;;
*) echo "no behaviour '$CC_RUNNER_BEHAVIOR'" >&2; exit 64 ;;
esac
