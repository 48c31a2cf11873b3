#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# An experiment on three hosts, seen from outside: the scenario dumbbell, measured with ping and
# iperf3, beside what it configures. The hosts are network namespaces on a bridge, with one member of
# etcd beside them. Nothing of the machine's own network is used.
#
# usage: demo-fleet.sh EMUD
set -euo pipefail

emud=$(realpath -- "${1:?usage: demo-fleet.sh EMUD}")

# Names, files and devices of separate namespaces end with the last process.
[ -n "${EMUD_DEMO_INSIDE-}" ] || EMUD_DEMO_INSIDE=1 exec unshare --net --mount -- "$0" "$emud"
mount -t tmpfs tmpfs /run
url=http://192.0.2.10:2379
hosts=(a b c)
scratch=$(mktemp -d -p /run)
agents=()
etcd=
controller=

# background NETNS COMMAND...: in a session that Ctrl-C does not reach, because controller and agents
# need etcd to clean up. After kill -9 of this script the kernel ends it. Its descendants have the
# variable, by which the demo finds those that stay.
background() {
    EMUD_DEMO=$scratch exec setsid setpriv --pdeathsig KILL ip netns exec "$@"
}

# end PID...: one after another, each after 15 s at the latest.
end() {
    local pid
    for pid; do
        kill "$pid" 2>/dev/null || continue
        for _ in {1..150}; do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# Processes of the demo.
stay() { grep -lzxFs "EMUD_DEMO=$scratch" /proc/[0-9]*/environ | cut -d / -f 3 || true; }

# Called by the trap.
cleanup() {
    local code=$? left
    trap '' INT TERM HUP
    [ -z "$controller" ] || end "$controller"
    end "${agents[@]}"
    [ -z "$etcd" ] || end "$etcd"
    # A link ends with its holder, a node with its processes.
    for _ in {1..50}; do
        left=$(stay)
        [ -n "$left" ] || break
        sleep 0.1
    done
    if [ -n "$left" ]; then
        echo "Left behind: the processes ${left//$'\n'/ }" >&2
        exit 1
    fi
    printf '\nLeft behind: nothing (no process of the demo, so none of its namespaces, links and files).\n'
    exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

ip netns add store
ip -n store link set lo up
ip -n store link add br0 type bridge
ip -n store link set br0 mtu 1600 up
ip -n store address add 192.0.2.10/24 dev br0
number=1
for host in "${hosts[@]}"; do
    ip netns add "$host"
    ip -n "$host" link set lo up
    # 1600: 50 bytes of a tunnel around a packet of full size.
    ip link add eth0 netns "$host" mtu 1600 type veth peer name "host-$host" netns store mtu 1600
    ip -n "$host" address add "192.0.2.$number/24" dev eth0
    ip -n "$host" link set eth0 up
    ip -n store link set "host-$host" master br0 up
    number=$((number + 1))
done

background store etcd --data-dir "$scratch/etcd" --listen-client-urls "$url" --advertise-client-urls "$url" \
    --listen-peer-urls http://127.0.0.1:2380 >"$scratch/etcd.log" 2>&1 &
etcd=$!
for host in "${hosts[@]}"; do
    background "$host" "$emud" agent --etcd "$url" --host "$host" 2>"$scratch/$host.log" &
    agents+=($!)
done
for _ in {1..60}; do
    registered=$(ip netns exec store "$emud" fleet status --etcd "$url" 2>/dev/null | grep -c '^[abc] ' || true)
    [ "$registered" = 3 ] && break
    sleep 0.5
done
[ "$registered" = 3 ] || {
    tail -n 5 "$scratch"/*.log >&2
    echo "demo-fleet.sh: the agents did not start" >&2
    exit 69
}
echo "Three network namespaces as hosts: a (192.0.2.1), b, c; etcd at $url"

# Each sender measures the path when it is empty, then all of them fill it.
"$emud" scenario show dumbbell >"$scratch/shown.toml"
# shellcheck disable=SC2016 # the sender's shell expands it
sed 's/^command = "iperf3 -c/command = "ping -q -i 0.05 -c 100 receiver$EMUD_INDEX \&\& iperf3 -f k -c/' \
    "$scratch/shown.toml" >"$scratch/dumbbell.toml"
if cmp -s "$scratch/shown.toml" "$scratch/dumbbell.toml"; then
    echo "demo-fleet.sh: the senders of scenario dumbbell have changed" >&2
    exit 1
fi

# run VERB...; as a job, since the shell handles signals while it waits for one.
run() {
    printf '\n$ emud fleet %s --etcd %s\n' "${*//"$scratch/"/}" "$url"
    background store "$emud" fleet "$@" --etcd "$url" >"$scratch/output" &
    controller=$!
    local code=0
    wait "$controller" || code=$?
    controller=
    return "$code"
}
run status
cat "$scratch/output"
run plan "$scratch/dumbbell.toml"
cat "$scratch/output"
code=0
run run "$scratch/dumbbell.toml" --seed 1 --log "$scratch/dumbbell.log" || code=$?
# Contention of a busy machine is a result, too.
if [ "$code" != 0 ] && [ "$code" != 3 ]; then
    tail -n 20 "$scratch/output" >&2
    exit "$code"
fi

# of NODE FILTER: what a filter of jq finds in the output of a node.
of() { jq -r --arg node "$1" "select(.type == \"output\" and .node == \$node) | $2" "$scratch/dumbbell.log"; }

# row WHAT HOSTS REQUESTED MEASURED
row() {
    [ -n "$4" ] || { echo "demo-fleet.sh: nothing measured: $1" >&2; exit 1; }
    printf '%-24s %-8s %10.2f %10.2f\n' "$@"
}

# A ping has 98 bytes on the wire, at 100 Mbit/s twice and 20 Mbit/s once in each direction. TCP
# carries 1448 bytes in a frame of 1514.
printf '\n%-24s %-8s %10s %10s\n' '' hosts requested measured
rtt=$(awk 'BEGIN { print 2 * (10 + 5 + 5) + 2 * 98 * 8 / 1000 * (2 / 100 + 1 / 20) }')
for n in 1 2 3 4; do
    row "RTT mean, pair $n, ms" \
        "$(of "sender$n" .host | head -n 1) - $(of "receiver$n" .host | head -n 1)" \
        "$rtt" "$(of "sender$n" '.text | capture("mdev = [^/]*/(?<mean>[^/]*)").mean')"
done
row 'Four TCP flows, Mbit/s' 'a, b, c' 20 "$(
    for n in 1 2 3 4; do of "sender$n" '.text | capture("(?<rate>[0-9.]+) Kbits/sec +receiver").rate'; done |
        awk '{ sum += $1 } END { if (NR == 4) print sum / 1000 * 1514 / 1448 }'
)"
cat <<'TEXT'

Requested: the scenario's figures; the RTT includes the time of a ping on the wire, and TCP's rate is
that of frames on the wire (Ethernet header included). Engine hold, which is in use if the kernel has
no sch_fq, adds on each of the six links of a round trip the time until its process has a CPU.
TEXT
echo "$SECONDS s"
