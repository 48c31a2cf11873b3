# SPDX-License-Identifier: MIT OR Apache-2.0
# Jobs of the test scripts: each has its output in one piece, its time and its count. Sourced.
# shellcheck shell=bash

. tests/sweep.sh

export CARGO_TERM_COLOR=never
# cargo reads it from .cargo/config.toml; programs that are started without cargo do not.
export RUST_MIN_STACK=16777216
mkdir -p target
jobs=$(mktemp -d)
: >"$jobs/names"
# Both ends are open: what is started waits in it, and its end comes when this one is closed.
mkfifo "$jobs/queue"
exec {queue}<>"$jobs/queue"
pool=
# What needs a processor most of its time goes behind what waits: live tests took half as long again beside it.
behind=(nice -n 5)
passed=0
failed=0
broken=()
unchecked=()
began_all=$SECONDS

# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$pool" ] || end_group "$pool"
    sweep
    rm -rf "$jobs"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# record [--resume]: keep the logs of jobs that pass, and with --resume do not run those again that have
# passed. What is not committed could be something else the next time: without a clean tree, nothing is kept.
kept=
resume=
record() {
    resume=${1-}
    local commit
    commit=$(git rev-parse HEAD) || exit
    if [ -z "$(git status --porcelain)" ]; then
        kept=target/full/$commit
        mkdir -p "$kept"
    elif [ -n "$resume" ]; then
        echo "run.sh: --resume needs a tree without changes: commit or stash them" >&2
        exit 64
    fi
}

# has_passed NAME: counts it, too.
has_passed() {
    # What is built is needed whatever has passed.
    [ -n "$resume" ] && [[ $1 != build* ]] && [ -e "$kept/$1.log" ] || return
    echo "=== $1 (before, $(date -r "$kept/$1.log" '+%F %R'))"
    count "$1" 0 "$(tail -n 1 "$kept/$1.log")" "$kept/$1.log"
}

# keep NAME TIME LOG
keep() {
    [ -n "$kept" ] && { cat "$3"; echo "$2"; } >"$kept/$1.new" && mv "$kept/$1.new" "$kept/$1.log"
}

add_failure() {
    failed=$((failed + 1))
    broken+=("$1")
}

# count NAME STATUS TIME LOG: a job that runs Rust tests counts those; any other counts as one.
count() {
    local good bad results
    read -r good bad results < <(awk '/^test result: / { p += $4; f += $6; n++ } END { print p + 0, f + 0, n + 0 }' "$4")
    if [ "$2" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1 # it broke before or after its tests
    elif [ "$2" -eq 0 ] && [ "$good" -eq 0 ]; then
        case $results,$1 in
        # A filter that no test has, or no result: nothing was tested.
        [1-9]* | *,guest* | *,live* | *,kernel | *,pure | *,unit*) bad=1 ;;
        *) good=1 ;;
        esac
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    if [ "$bad" -ne 0 ]; then broken+=("$1"); elif [ "$4" != "$kept/$1.log" ]; then keep "$1" "$3" "$4"; fi
    echo "=== $1: $good passed, $bad failed, $3"
    echo
}

# job NAME COMMAND...: runs now, printing as it goes.
job() {
    local name=$1 began=$SECONDS status=0
    shift
    has_passed "$name" && return
    echo "=== $name"
    "$@" </dev/null 2>&1 | tee "$jobs/now.log" || status=$?
    count "$name" "$status" "$((SECONDS - began)) s" "$jobs/now.log"
}

# failures LOG: without what the tests that passed have measured; what failed stands with the list of failures.
failures() {
    awk '
        /^test .*\.\.\. (ok|ignored.*)$/ { next }
        /^test .*\.\.\. FAILED$/ { print; next }
        /^test .*\.\.\./ { held = $0; line = $0; holding = 1; sub(/ +\.\.\. .*/, " ...", line); next }
        holding && /^(ok|FAILED|ignored)$/ {
            if ($0 == "FAILED") bad = bad held "\n" $0 "\n"; else print line " " $0 (took == "" ? "" : " in" took)
            holding = 0; took = ""; next
        }
        holding { held = held "\n" $0; took = /^ +[0-9.]+ s$/ ? $0 : ""; next }
        /^failures:$/ { print; printf "%s", bad; bad = ""; next }
        { print }
        END { printf "%s", bad; if (holding) print held }' "$1"
}

# start NAME COMMAND...: to run with the others; a function may be the command.
start() {
    local name=$1
    shift
    has_passed "$name" && return
    {
        declare -f unit
        declare -p EMUD_UNIT 2>/dev/null
        declare -p behind
        printf '%q ' "$@"
        echo
    } >"$jobs/$name.job"
    printf '%s\n' "$name" | tee -a "$jobs/names" >&"$queue"
}

# begin N: runs the jobs started so far and later ones, N at a time, beside what follows.
begin() {
    export jobs
    # Opened before `collect` may close the only writer: without one, xargs would wait for it to open the queue.
    local reader
    exec {reader}<"$jobs/queue"
    # A separate group, so that their processes end with them.
    # shellcheck disable=SC2016 # for the shells that xargs starts
    setsid xargs -P "$1" -d '\n' -I NAME bash -c '
        status=0
        bash "$jobs/NAME.job" >"$jobs/NAME.log" 2>&1 </dev/null || status=$?
        # Its second line is what the programs took, user and system; a subshell would have none.
        times >"$jobs/NAME.times"
        cpu=$(awk -F "[ms ]" "NR == 2 { printf \"%.0f\", 60 * (\$1 + \$4) + \$2 + \$5 }" "$jobs/NAME.times")
        echo "$status $SECONDS s, $cpu s of a CPU" >"$jobs/NAME.new" && mv "$jobs/NAME.new" "$jobs/NAME.status"' <&"$reader" {reader}<&- {queue}>&- &
    pool=$!
    exec {reader}<&-
}

# one_more: one more of them at a time. If xargs has ended, there is nothing left to run.
one_more() { kill -USR1 "$pool" 2>/dev/null || true; }

# collect: no more is started; prints each as it ends.
collect() {
    local name status took waiting=1
    exec {queue}>&-
    while [ "$waiting" -gt 0 ]; do
        kill -0 "$pool" 2>/dev/null && sleep 0.5
        waiting=0
        while read -r name; do
            [ ! -e "$jobs/$name.done" ] || continue
            if [ ! -e "$jobs/$name.status" ]; then
                # Nobody is left to run it.
                kill -0 "$pool" 2>/dev/null || [ -e "$jobs/$name.status" ] || echo "70 0 s" >"$jobs/$name.status"
                waiting=$((waiting + 1))
                continue
            fi
            read -r status took <"$jobs/$name.status"
            echo "=== $name"
            if [ -n "${EMUD_TEST_FULL-}" ]; then cat "$jobs/$name.log"; else failures "$jobs/$name.log"; fi
            count "$name" "$status" "$took" "$jobs/$name.log"
            : >"$jobs/$name.done"
        done <"$jobs/names"
    done
    wait "$pool"
    pool=
}

# The unit tests are in several programs.
unit() {
    local program status=0
    for program in $EMUD_UNIT; do "${behind[@]}" "$program" || status=$?; done
    return "$status"
}

# programs TARGET...: EMUD_* name what cargo has built; nothing that starts then builds anything.
programs() {
    local built
    built=$(cargo test --locked "$@" --no-run --message-format=json 2>/dev/null |
        jq -r 'select(.executable) | [.target.kind[0], .profile.test, .target.name, .executable] | @tsv')
    program() { awk -F '\t' -v kind="$1" -v test="$2" -v name="$3" \
        '$1 == kind && $2 == test && (name == "" || $3 == name) { print $4 }' <<<"$built"; }
    EMUD_BIN=$(program bin false emud)
    EMUD_LIVE=$(program test true live)
    EMUD_KERNEL=$(program test true kernel)
    EMUD_PURE=$(program test true pure)
    EMUD_UNIT=$(program lib true '')
    export EMUD_BIN EMUD_LIVE EMUD_KERNEL EMUD_PURE EMUD_UNIT
}

finish() {
    echo "total $(((SECONDS - began_all) / 60)) min $(((SECONDS - began_all) % 60)) s"
    [ ${#unchecked[@]} -eq 0 ] || printf '%s\n' "${unchecked[@]}"
    [ ${#broken[@]} -eq 0 ] || printf 'failed: %s\n' "${broken[@]}"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}
