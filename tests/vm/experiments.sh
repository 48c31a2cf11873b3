#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tests of `emud run` in guest kernels, with engine fq.
#
# usage: experiments.sh [SERIES]... [-- ARGUMENT]...     (default: all kernels, all tests)
#
# EMUD_BIN and EMUD_RUN name the programs to run, else cargo builds them.
# exit status: 0 when all tests passed on all kernels, 1 otherwise.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

timeout_s=${EMUD_RUN_TIMEOUT:-1800}

series=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    series="$series $1"
    shift
done
if [ $# -gt 0 ]; then
    shift
else
    # Python is not there, nor a second CPU for a hog; terminals are the same on every kernel.
    set -- --skip needs_python --skip a_hog_is_named --skip at_a_terminal \
        --skip output_is_whole --skip ends_the_run
fi

need cargo
tests=${EMUD_RUN:-$(built run run)}
emud=${EMUD_BIN:-$(built run emud)}
executable "$tests" "$emud"

failed=0
for kernel in ${series:-$all_series}; do
    "$here/kernels.sh" "$kernel"
    status=0
    "$here/run.sh" --icount-shift 0 --memory 2048 --timeout "$timeout_s" \
        --file "$emud:/usr/bin/emud" --file "$tests:/root/run" "$kernel" -- \
        env EMUD_BIN=/usr/bin/emud EMUD_RUN_GUEST=1 RUST_BACKTRACE=0 ./run "$@" || status=$?
    [ "$status" -eq 0 ] || { note "$kernel: FAILED ($status)"; failed=1; }
done
exit "$failed"
