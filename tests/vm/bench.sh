#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sections of the benchmark suite (benches/suite) in guest kernels, beside stock netem.
#
# usage: bench.sh [--full] [--parallel] SERIES SECTION...
#   --parallel    two CPUs, whose clock is this machine's: figures are good only beside one another; only
#                 one is online until the section sets the other
#
# Results: target/bench/SECTION-SERIES.json. EMUD_BIN and EMUD_SUITE name the programs to run,
# else cargo builds them.
# exit status: 0 when all sections ran, 1 otherwise.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

full=
clock='--icount-shift 0'
place='guest, 1 CPU, 1 ns an instruction'
while [ $# -gt 0 ]; do
    case $1 in
    --full) full=--full ;;
    --parallel) clock='--cpus 2 --parallel' place='guest, 2 CPUs at once, this machine'"'"'s clock' ;;
    *) break ;;
    esac
    shift
done
[ $# -ge 2 ] || die 64 "usage: bench.sh [--full] [--parallel] SERIES SECTION..."
series=$1
shift

need cargo
suite=${EMUD_SUITE:-$(benchmark suite)}
emud=${EMUD_BIN:-$(benchmark emud)}
executable "$suite" "$emud"
"$here/kernels.sh" "$series"
out=$vm_dir/../bench
mkdir -p "$out"

failed=0
# --erms: the figures of before are of such a CPU. Without it netem, which sends more packets for a timer
# interrupt, adds less than half: docs/benchmarks.md.
for section; do
    # shellcheck disable=SC2086 # several options
    "$here/run.sh" $clock --erms --memory 2048 --timeout "${EMUD_BENCH_TIMEOUT:-3600}" \
        --file "$emud:/usr/bin/emud" --file "$suite:/root/suite" \
        --out "/root/results.json:$out/$section-$series.json" "$series" -- \
        env EMUD_BIN=/usr/bin/emud ./suite run "$section" $full --place "$place" \
        --out /root/results.json || { note "$series: $section: FAILED"; failed=1; }
done
exit "$failed"
