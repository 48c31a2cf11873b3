#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A host of fleet.sh. Its clocks count from its boot; the wall clock of b is 50 ms ahead of that of a.
#
# usage: guest-fleet.sh a RUNS | guest-fleet.sh b
set -eu

store=http://192.0.2.1:2379
case $1 in a) address=192.0.2.1 ;; b) address=192.0.2.2 ;; esac
# No udev here.
modprobe virtio_net
ip addr add "$address/24" dev eth0
ip link set eth0 mtu 1600 up

if [ "$1" = b ]; then
    date -s '+0.05 seconds' >/dev/null
    until ping -q -c 1 -W 1 192.0.2.1 >/dev/null; do :; done
    emud agent --etcd $store --host b --allow-root &
    while ping -q -c 1 -W 5 192.0.2.1 >/dev/null; do sleep 1; done
    exit
fi

etcd --data-dir /tmp/etcd --listen-client-urls $store --advertise-client-urls $store >/dev/null 2>&1 &
emud agent --etcd $store --host a --allow-root &
for host in a b; do
    until emud fleet status --etcd $store | grep -q "^$host "; do sleep 1; done
done

emud fleet run fleet.toml --etcd $store --clock-bound 1ns >rejected 2>&1 && exit 1
grep -e --clock-bound rejected
for run in $(seq "$2"); do
    echo "run $run"
    status=0
    emud fleet run fleet.toml --etcd $store --clock-bound 5ms --log "run.$run.log" >"run.$run" 2>&1 || status=$?
    cat "run.$run"
    # A guest is slow: contended, or the way between them has become longer.
    case $status in 0 | 3 | 4) ;; *) exit "$status" ;; esac
    grep -q 'the clock of a is .* ahead of that of b, within' "run.$run"
done
