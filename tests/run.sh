#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Build once, then run all tests in jobs side by side, here and in guest kernels. Every job runs,
# whatever an earlier one said. The last line is the sum: "N passed, N failed".
#
# usage: run.sh [--full [--resume]]
#   --full    all statistics and timings, on all guest kernels; the guests
#             in the time that the rest leaves
#   --resume  without the jobs that have passed on this commit: target/full/COMMIT/JOB.log has what they
#             said. They count
#
# What is judged in milliseconds is left to the full run, and to guests, whose clocks count
# instructions: jobs may disturb one another.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tests/jobs.sh

case $* in '' | --full | '--full --resume') ;; *)
    echo "usage: run.sh [--full [--resume]]" >&2
    exit 64
    ;;
esac
kernels=(6.1 7.2)
fetched=("${kernels[@]}")
if [ "${1-}" = --full ]; then
    kernels=(6.1 6.12 7.2)
    fetched=("${kernels[@]}" 7.2-rt)
    export EMUD_TEST_FULL=1
    record "${2-}"
fi
export RUST_BACKTRACE=${RUST_BACKTRACE-0}

# interrupted COMMAND...: it ends by SIGINT, and finds nothing left behind.
# shellcheck disable=SC2317 # a job calls it
interrupted() {
    local status=0
    timeout --preserve-status -s INT 15 "$@" || status=$?
    [ "$status" = 130 ]
}

# guest KERNEL[ FILTER] COMMAND...: to run with the other guests, in the time that nothing else takes.
guest() {
    local name=$1
    shift
    start "guest-$name" chrt --idle 0 "$@"
}

(flock 9 && exec tests/vm/kernels.sh "${fetched[@]}") 9>target/kernels.lock >"$jobs/kernels.log" 2>&1 &
fetching=$!
# What guests need, first: they boot while the other tests are compiled. `make check` also runs the few
# tests of the verbs and of the benchmarks, which took 9 s of a processor to compile.
live=(-p emud -p emud-monitor --test live)
all=("${live[@]}" --lib --test pure --test kernel)
of_links=(--skip run:: --skip monitor:: --skip fleet:: --skip host:: --skip container:: --skip netem::)
of_runs=(--skip link:: --skip lab:: --skip host::thousand)
job build-live cargo test --locked "${live[@]}" --no-run
[ "$failed" -eq 0 ] || finish
wait "$fetching" || { cat "$jobs/kernels.log"; add_failure kernels; }
if [ -z "${EMUD_TEST_FULL-}" ]; then
    programs "${live[@]}"
    # Applications and names are the same in every engine, and engine hold's trains those of this machine. One
    # test of the shares shows that this kernel has them.
    start guest-7.2 "${behind[@]}" tests/vm/live.sh 7.2 --skip applications --skip learned --skip link::hold::senders \
        --skip shares::cpu_
    # The monitor's arithmetic and the trains are the same on both.
    start guest-6.1 "${behind[@]}" tests/vm/live.sh 6.1 --skip applications --skip learned --skip senders --skip shares
    # These wait most of their time.
    start live-runs env EMUD_LIVE_SCALE=0.2 "$EMUD_LIVE" "${of_runs[@]}"
    start live-links env EMUD_LIVE_SCALE=0.2 "$EMUD_LIVE" "${of_links[@]}"
    begin 6
fi
job build "${behind[@]}" cargo test --locked "${all[@]}" --no-run
[ "$failed" -eq 0 ] || finish
programs "${all[@]}"
job mutants tests/mutants.sh --check

if [ -z "${EMUD_TEST_FULL-}" ]; then
    # The longest first.
    start readme tests/readme.sh "$EMUD_BIN"
    start kernel "$EMUD_KERNEL" --test-threads=2
    start pure "${behind[@]}" "$EMUD_PURE" --test-threads=4
    start unit unit
    collect
else
    job build-release cargo build --locked --release
    # This machine has to be quiet for its own timings.
    job timings cargo test --locked --release --lib -- --ignored --test-threads=1
    job benches cargo test --locked -p emud-benches
    optimised=$PWD/target/release/emud
    # Each takes close to an hour: --resume keeps one that has passed. What the experiments measure is in time
    # by the emud that people use.
    job live-reproduce env EMUD_BIN="$optimised" EMUD_LIVE_SCALE=1 "$EMUD_LIVE" run::reproduce
    job live-runs env EMUD_LIVE_SCALE=1 "$EMUD_LIVE" "${of_runs[@]}" --skip run::reproduce --skip run::scale
    for kernel in "${kernels[@]}"; do
        # The longest first.
        guest "$kernel link::fq" env EMUD_TEST_HERE="$([ "$kernel" = 6.12 ] && echo no || echo yes)" \
            tests/vm/live.sh "$kernel" link::fq
        # Each kernel's verifier and compiler, and its log after random frames.
        guest "$kernel classifier" env -u EMUD_TEST_FULL EMUD_LIVE="$EMUD_KERNEL" EMUD_LIVE_TIMEOUT=7200 \
            tests/vm/live.sh "$kernel" classifier::
        # With the qdiscs that this machine may lack.
        guest "$kernel netlink" env -u EMUD_TEST_FULL EMUD_LIVE="$EMUD_KERNEL" tests/vm/live.sh "$kernel" netlink::
        if [ "$kernel" = 6.12 ]; then
            # What is true of the oldest and of the newest kernel is not measured again in between.
            guest "$kernel" env -u EMUD_TEST_FULL tests/vm/live.sh "$kernel"
            # Packets wait in the holder here, too: qdisc needs a newer kernel.
            guest "$kernel bottleneck" env EMUD_TEST_HERE=no tests/vm/live.sh "$kernel" link::hold::bottleneck
            continue
        fi
        # What is the same on every kernel runs here, and there with what this machine lacks.
        guest "$kernel link::hold" env EMUD_TEST_HERE=no tests/vm/live.sh "$kernel" link::hold
        guest "$kernel link::both" tests/vm/live.sh "$kernel" link::both
        guest "$kernel link::auto" tests/vm/live.sh "$kernel" link::auto
        guest "$kernel monitor" tests/vm/live.sh "$kernel" monitor
        # The other tests of `emud run` need what guests lack, and are the same on every kernel.
        guest "$kernel run::repeat" tests/vm/live.sh "$kernel" run::repeat
        guest "$kernel diffserv" tests/vm/live.sh "$kernel" run::reproduce::diffserv
        guest "$kernel tree" tests/vm/live.sh "$kernel" run::reproduce::tree
        # With the engines that this machine may lack, fq and qdisc.
        guest "$kernel host::expiry" tests/vm/live.sh "$kernel" host::expiry
        [ "$kernel" = 7.2 ] || continue
        guest "$kernel link::qdisc" tests/vm/live.sh "$kernel" link::qdisc
        guest "$kernel compared" tests/vm/live.sh "$kernel" run::reproduce::compared
        # netem takes a seed since 6.6.
        guest "$kernel netem" tests/vm/live.sh "$kernel" netem
    done
    # What differs with PREEMPT_RT: packets preempt each other.
    guest "7.2-rt smoke" tests/vm/live.sh 7.2-rt smoke
    guest "7.2-rt preempting" tests/vm/live.sh 7.2-rt preempting
    # Some are about time, too.
    job kernel "$EMUD_KERNEL" --include-ignored --test-threads=1
    job live-links env EMUD_LIVE_SCALE=1 "$EMUD_LIVE" "${of_links[@]}"
    # The time of a scrape, and the share of a CPU, are those of the optimised program.
    job live-release env EMUD_BIN="$optimised" "$EMUD_LIVE" host::thousand
    job live-scale env EMUD_BIN="$optimised" "$EMUD_LIVE" run::scale
    # Their guests have real clocks.
    job fleet-guests tests/vm/fleet.sh 7.2
    job cpus env EMUD_LIVE_CPUS=2 tests/vm/live.sh 7.2 order_across_cpus
    # A guest's clock counts instructions, so its own timings need no quiet machine.
    begin 1
    job readme tests/readme.sh "$EMUD_BIN"
    job unit unit
    job pure "$EMUD_PURE"
    job ci tests/ci.sh "$EMUD_BIN"
    for engine in podman rootless docker containerd; do
        job "containers-$engine" tests/containers.sh "$EMUD_BIN" "$engine"
    done
    if command -v go >/dev/null; then
        job grafana tests/grafana.sh
    else
        unchecked+=("grafana: not checked: Go is missing")
    fi
    job kubernetes kubernetes/test.sh "$EMUD_BIN"
    job demo-fleet tests/demo-fleet.sh "$EMUD_BIN"
    job demo-fleet-interrupted interrupted tests/demo-fleet.sh "$EMUD_BIN"
    one_more
    collect
fi
finish
