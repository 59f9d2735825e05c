# recipe.sh: the lock, the log and the report of the scripts beside it.
set -uo pipefail
name=${0##*/}
cd "${1:?expected a folder}" && mkdir -p logs || exit 5
exec 9> nightly.lock || exit 5
flock --nonblock 9 || {
    echo "$name: $PWD: an earlier run is not done yet" >&2
    exit 75
}
log=logs/$(date -u +%F).jsonl prom=${TEXTFILES:-logs}/$name${PWD//\//_}
: >> "$log" || exit 5
old=$(wc -l < "$log")
export KAFEAT_LOG_FORMAT=json KAFEAT_TRANSFORM_METRICS=$prom.run.prom

refuse() { # CODE RETRY MESSAGE
    printf '{"time": "%s", "level": "error", "event": "refused", ' "$(date -u +%FT%TZ)" >> "$log"
    printf '"message": "%s", "exit_code": %d, "retry": %s}\n' "$3" "$1" "$2" >> "$log"
    finish "$1"
}

finish() { # CODE
    local code=$1 last retry what
    last=$(tail -n "+$((old + 1))" "$log" | tail -n 1) # of this run
    retry=$(sed -n 's/.*"retry": \([a-z]*\).*/\1/p' <<< "$last")
    case $code,$retry in
        0,*)
            printf 'kafeat_recipe_last_success_timestamp_seconds{%s} %(%s)T\n' \
                "recipe=\"$name\",folder=\"$PWD\"" > "$prom.new" &&
                mv -f "$prom.new" "$prom.prom"
            ;;
        [35],true) code=5 what="another try may help (disk, memory, network, missing file)" ;;
        5,*) code=77 what="the system refused (permission, path)" ;;
        3,*) what="an input cannot be read, has no rows, lacks a column or has a bad value" ;;
        6,*) what="too much drift, a bad output, or a worse model" ;;
        126,* | 127,*) what="kafeat cannot be started: see PATH" ;;
        134,* | 137,*) what="killed, mostly for lack of memory" ;;
        129,* | 130,* | 143,*) what="stopped by a signal" ;;
        *) what="a mistake in the command (2), the model file (4) or kafeat (1)" ;;
    esac
    if [ "$code" -ne 0 ]; then
        echo "$name: $PWD: $what; exit code $code; the end of $log:" >&2
        echo "$last" >&2
    fi
    find logs -name '*.jsonl' -mtime +30 -delete
    exit "$code"
}
