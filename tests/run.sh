#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run every check and test in stages. Each stage prints its name and time; all are run, whatever
# an earlier one said. The last line is the sum: "N passed, N failed".
#
# usage: run.sh [--full]
#
# A stage that runs Rust tests counts those, here or in a guest kernel; any other counts as one.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

guests=(6.1 7.2)
experiments=(7.2)
extra=()
# Of the probes on this machine's live links; bounds are as wide as their number makes them.
scale=0.5
if [ "${1-}" = --full ]; then
    scale=1
    guests=(6.1 6.12 7.2)
    experiments=("${guests[@]}")
    extra=(--include-ignored)
    export EMUD_TEST_FULL=1
fi
export CARGO_TERM_COLOR=never
log=$(mktemp)
jobs=$(mktemp -d)
pool=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$pool" ] || kill -TERM -- "-$pool" 2>/dev/null
    rm -rf "$log" "$jobs"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
passed=0
failed=0
broken=()

# stage NAME COMMAND...
stage() {
    local name=$1 began=$SECONDS status=0 good bad
    shift
    echo "=== $name"
    "$@" </dev/null 2>&1 | tee "$log" || status=$?
    read -r good bad < <(awk '/^test result: / { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log")
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1 # it broke before or after its tests
    elif [ "$status" -eq 0 ] && ! grep -q '^test result: ' "$log"; then
        # A guest without results has tested nothing.
        case $name in guest*) bad=1 ;; *) good=1 ;; esac
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    [ "$bad" -eq 0 ] || broken+=("$name")
    echo "=== $name: $good passed, $bad failed, $((SECONDS - began)) s"
    echo
}

# The name of every test target: tests/NAME.rs and tests/NAME/main.rs.
targets() {
    local path
    for path in tests/*.rs tests/*/main.rs; do
        path=${path#tests/}
        path=${path%/main.rs}
        echo "${path%.rs}"
    done
}

clang_format() { clang-format --dry-run -Werror bpf/*.[ch] monitor/bpf/*.[ch]; }

# Timing does not bear a neighbour: live tests run one after the other.
run_target() {
    local threads=()
    case $1 in live | monitor | verify) threads=(--test-threads=1) ;; esac
    EMUD_LIVE_SCALE=$scale cargo test --locked --test "$1" -- "${threads[@]}" "${extra[@]}"
}

stage rustfmt cargo fmt --all --check
stage clang-format clang_format
stage clippy cargo clippy --locked --workspace --all-targets -- -D warnings
stage build cargo test --locked --workspace --no-run
stage unit cargo test --locked --workspace --lib --bins
for target in $(targets); do
    stage "$target" run_target "$target"
done
if [ "${1-}" = --full ]; then
    stage timings cargo test --locked --release --lib -- --ignored --test-threads=1
fi

# The programs that were tested here are tested in guest kernels, too; the scripts would build others.
program() {
    cargo test --locked --test "$1" --no-run --message-format=json 2>/dev/null |
        jq -r --arg name "$1" 'select(.target.name? == $name and .executable).executable'
}

# Guests are one CPU each, with clocks that count instructions: two at a time, in any order, do not
# disturb one another.
start_guests() {
    EMUD_BIN=$PWD/target/debug/emud
    EMUD_LIVE=$(program live)
    EMUD_MONITOR=$(program monitor)
    EMUD_NETEM=$(program netem)
    EMUD_RUN=$(program run)
    export EMUD_BIN EMUD_LIVE EMUD_MONITOR EMUD_NETEM EMUD_RUN jobs
    # The longest first, so that none is alone at the end.
    {
        printf 'live.sh --engine fq %s\n' "${guests[@]}"
        printf 'live.sh --engine hold %s\n' "${guests[@]}"
        printf 'monitor.sh %s\n' "${guests[@]}"
        # The kernel's part in experiments is what the live tests are about; one will do.
        printf 'experiments.sh %s\n' "${experiments[@]}"
        echo "netem.sh 7.2"
    } >"$jobs/list"
    # A group of its own, so that what they started ends with them.
    # shellcheck disable=SC2016 # for the shells that xargs starts
    setsid xargs -P 2 -a "$jobs/list" -d '\n' -I JOB sh -c '
        status=0
        tests/vm/JOB >"$jobs/JOB.log" 2>&1 </dev/null || status=$?
        echo "$status" >"$jobs/JOB.new" && mv "$jobs/JOB.new" "$jobs/JOB.status"' &
    pool=$!
}

# Waits for the end of a guest and says what it said.
guest() {
    while [ ! -e "$jobs/$1.status" ]; do
        kill -0 "$pool" 2>/dev/null || [ -e "$jobs/$1.status" ] || return 70
        sleep 1
    done
    cat "$jobs/$1.log"
    return "$(cat "$jobs/$1.status")"
}

stage kernels tests/vm/kernels.sh "${guests[@]}"
start_guests
while read -r job; do
    stage "guest: $job" guest "$job"
done <"$jobs/list"

echo "total $((SECONDS / 60)) min $((SECONDS % 60)) s"
[ ${#broken[@]} -eq 0 ] || printf 'failed: %s\n' "${broken[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
