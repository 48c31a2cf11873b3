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
    mkdir /sys/fs/cgroup/hog
    while ping -q -c 1 -W 5 192.0.2.1 >/dev/null; do
        sleep 1
        [ -e hog ] || continue
        rm hog
        # shellcheck disable=SC2016 # that shell's number
        sh -c 'echo $$ >/sys/fs/cgroup/hog/cgroup.procs; exec timeout 8 sh -c "while :; do :; done"' || true
    done
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

# Links of both hosts change at one time. Then a process of another control group takes the CPU of b for 8 s:
# b is contended, and a is not.
cat >hog.toml <<'TOML'
[node.one]
host = "a"
command = "sleep 30"
[node.two]
host = "b"
command = "sleep 15; : >/root/hog; sleep 15"
[node.three]
host = "b"
[link.left]
between = ["one", "two"]
profile.link.delay = "20ms"
[link.right]
between = ["three", "one"]
profile.link.delay = "20ms"
TOML
printf '[cpu]\ntheta = "3s"\n[alarms]\ngroup-by = "cgroup"\n' >monitor.toml
emud fleet run hog.toml --etcd $store --clock-bound 5ms --monitor monitor.toml --verdict-first --log hog.log >hog.out 2>&1 &
run=$!
for _ in $(seq 60); do
    emud fleet set left,right delay=30ms --etcd $store >changed 2>&1 && break
    sleep 1
done
status=0
wait $run || status=$?
cat changed hog.out
case $status in 3 | 4) ;; *) exit 1 ;; esac
grep -q '^in effect at ' changed
for link in left right; do
    grep '"event":"changed"' hog.log | grep -q "\"link\":\"$link\""
done
grep -q '^  b: cpu, cpu 0: .* by .*/hog ' hog.out
# Nor did a host learn the time of the change late.
if grep -e '^  a: cpu' -e 'change of links' hog.out; then exit 1; fi
