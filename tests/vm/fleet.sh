#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Two guests as the hosts of a fleet, whose clocks differ by seconds (monotonic) and by 50 ms (wall clock).
# A link of each host turns 3 s after the start of a run: what passes on the wire shows how far apart. Then links
# of both are changed during a run, and the verdict names the one host whose CPU is taken, and by what.
#
# usage: fleet.sh SERIES [RUNS]      Debian's etcd-server; the times are those of a quiet machine
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

[ $# -ge 1 ] || die 64 "usage: fleet.sh SERIES [RUNS]"
series=$1
runs=${2:-5}
emud=${EMUD_BIN:-$(built live emud)}
executable "$emud"
need etcd python3
"$here/kernels.sh" "$series"
work=$(mktemp -d "$vm_dir/fleet.XXXXXX")
others=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$others" ] || kill "$others" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# guest HOST WIRE [exec]: in real time, each in its own.
guest() {
    host=$1 wire=$2
    shift 2
    "$@" "$here/run.sh" --cpus 1 --timeout 900 --host-timeout 1200 --append no_timer_check --wire "$wire" \
        --file "$emud:/usr/bin/emud" --file "$(command -v etcd):/usr/bin/etcd" --file "$(command -v date):/usr/bin/date" \
        --file "$here/guest-fleet.sh" --file "$here/fleet.toml" "$series" -- ./guest-fleet.sh "$host" "$runs"
}

guest b "listen:$work/wire" exec >"$work/b.log" 2>&1 &
others=$!
# Its files are packed before it starts.
limit=$(($(date +%s) + 180))
until [ -S "$work/wire" ]; do
    if ! kill -0 "$others" 2>/dev/null || [ "$(date +%s)" -gt "$limit" ]; then
        cat "$work/b.log"
        die 70 "guest b did not start"
    fi
    sleep 0.1
done
status=0
guest a "$work/wire" >"$work/a.log" 2>&1 || status=$?
wait "$others" || status=$?
others=
cat "$work/a.log"
[ "$status" -eq 0 ] || { cat "$work/b.log"; die "$status" "a guest failed"; }
python3 "$here/fleet_skew.py" "$work/wire.01.pcap" "$runs"
