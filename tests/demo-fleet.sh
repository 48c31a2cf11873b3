#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A dumbbell on three hosts, which are network namespaces on a bridge, with one member of etcd beside
# them. Nothing of the machine's own network is used.
#
# usage: demo-fleet.sh EMUD
set -euo pipefail

emud=$(realpath -- "${1:?usage: demo-fleet.sh EMUD}")
prefix=emud-demo-$$
store=$prefix-store
url=http://192.0.2.10:2379
hosts=(a b c)
scratch=$(mktemp -d)
started=()

cleanup() {
    trap '' INT TERM HUP
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    for host in "${hosts[@]}" store; do ip netns del "$prefix-$host" 2>/dev/null || true; done
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# in_store COMMAND...: beside etcd.
in_store() { ip netns exec "$store" "$@"; }

ip netns add "$store"
ip -n "$store" link set lo up
ip -n "$store" link add br0 type bridge
ip -n "$store" link set br0 mtu 1600 up
ip -n "$store" address add 192.0.2.10/24 dev br0
number=1
for host in "${hosts[@]}"; do
    netns=$prefix-$host
    ip netns add "$netns"
    ip -n "$netns" link set lo up
    ip link add eth0 netns "$netns" mtu 1600 type veth peer name "host-$host" netns "$store" mtu 1600
    ip -n "$netns" address add "192.0.2.$number/24" dev eth0
    ip -n "$netns" link set eth0 up
    ip -n "$store" link set "host-$host" master br0 up
    number=$((number + 1))
done

in_store etcd --data-dir "$scratch/etcd" --listen-client-urls "$url" --advertise-client-urls "$url" \
    --listen-peer-urls http://127.0.0.1:2380 >"$scratch/etcd.log" 2>&1 &
started+=($!)
for host in "${hosts[@]}"; do
    ip netns exec "$prefix-$host" "$emud" agent --etcd "$url" --host "$host" 2>"$scratch/$host.log" &
    started+=($!)
done
for _ in {1..60}; do
    agents=$(in_store "$emud" fleet status --etcd "$url" 2>/dev/null | grep -c '^[abc] ' || true)
    [ "$agents" = 3 ] && break
    sleep 0.5
done
[ "$agents" = 3 ] || {
    cat "$scratch"/*.log >&2
    echo "demo-fleet.sh: the agents did not start" >&2
    exit 69
}

# run VERB...
run() {
    printf '\n$ emud fleet %s --etcd %s\n' "$*" "$url"
    in_store "$emud" fleet "$@" --etcd "$url"
}
run status
run plan dumbbell
code=0
run run dumbbell --log "$scratch/dumbbell.log" || code=$?
# Contention of a busy machine is a result, too.
[ "$code" = 0 ] || [ "$code" = 3 ] || exit "$code"
printf '\nlines of the merged log, by host:\n'
for host in "${hosts[@]}"; do
    printf '%s %s\n' "$host" "$(grep -c "\"host\":\"$host\"" "$scratch/dumbbell.log")"
done
