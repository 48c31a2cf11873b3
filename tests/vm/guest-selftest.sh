#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the guest: exercise what the tests need and print NAME=VALUE lines.
# usage: guest-selftest.sh [PINGS [SECONDS]]
set -eu

pings=${1:-100}
seconds=${2:-6}
delay_ms=50

ip netns add a
ip netns add b
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.99.0.1/24 dev va
ip -n b addr add 10.99.0.2/24 dev vb
ip -n a link set va up
ip -n b link set vb up

# Prints the mean and standard deviation (ping's mdev) and fails if an answer is missing.
round_trips() {
    ip netns exec a ping -q -n -i 0.01 -c "$pings" 10.99.0.2 >/tmp/ping
    grep -q " 0% packet loss" /tmp/ping
    sed -n "s|^rtt min/avg/max/mdev = \([^/]*\)/\([^/]*\)/\([^/]*\)/\([^ ]*\) ms.*|$1_min_ms=\1\n$1_mean_ms=\2\n$1_max_ms=\3\n$1_sd_ms=\4|p" /tmp/ping
}

# One flow from a to b; what the receiver got counts.
throughput() {
    ip netns exec b iperf3 -s -1 -D -I /tmp/iperf.pid
    tries=0
    until ip netns exec b cat /proc/net/tcp /proc/net/tcp6 | grep -q ':1451 .* 0A '; do # 5201, listening
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || return 1
        sleep 0.1
    done
    ip netns exec a iperf3 -c 10.99.0.2 -t "$seconds" -f m >/tmp/iperf
    awk -v name="$1" '/receiver/ { for (i = 2; i <= NF; i++) if ($i == "Mbits/sec") print name "=" $(i - 1) }' /tmp/iperf
}

echo "release=$(uname -r)"
echo "clocksource=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
ip netns exec a ping -q -c 2 -i 0.1 10.99.0.2 >/dev/null # neighbours resolved, code warm
round_trips bare
throughput bare_mbit_s
tc -n a qdisc add dev va root netem delay ${delay_ms}ms limit 100000
ip netns exec a ping -q -c 2 -i 0.1 10.99.0.2 >/dev/null
round_trips netem
throughput netem_mbit_s
tc -n a qdisc del dev va root

# What emud builds on: each must be usable, not just present.
tc -n a qdisc add dev va root fq
tc -n a -s qdisc show dev va | grep -q '^qdisc fq '
ip -n a link add ifb9 type ifb
ip -n a link set ifb9 up
tc -n a qdisc add dev va clsact
tc -n a filter add dev va ingress matchall action mirred egress redirect dev ifb9
ip netns exec a ping -q -c 3 -i 0.1 10.99.0.2 >/dev/null
redirected=$(ip -n a -s link show dev ifb9 | awk '/RX:/ { getline; print $2 }')
[ "$redirected" -ge 3 ]
ip -n a tuntap add mode tap name tap9
ip -n a link show tap9 >/dev/null
modprobe pktgen
modprobe zram
modprobe null_blk
[ -d /proc/net/pktgen ]
[ -b /dev/zram0 ]
[ -e /sys/kernel/tracing/events ]
[ -s /sys/kernel/btf/vmlinux ]
[ -e /sys/fs/cgroup/cgroup.controllers ]

# Patch kernel code while another CPU runs it; a badly chosen accelerator panics here.
(while :; do :; done) &
spinning=$!
toggles=0
while [ "$toggles" -lt 100 ]; do
    echo 1 >/proc/sys/kernel/sched_schedstats
    echo 0 >/proc/sys/kernel/sched_schedstats
    toggles=$((toggles + 1))
done
kill "$spinning"
echo "features=ok"
