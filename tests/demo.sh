#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What emud does, seen from outside: two network namespaces joined by a veth, measured with ping
# and iperf3 before, under two profiles, and after. Nothing of the machine's own network is used.
#
# usage: demo.sh EMUD
set -euo pipefail

emud=$(realpath -- "${1:?usage: demo.sh EMUD}")
near=emud-demo-$$-near
far=emud-demo-$$-far
scratch=$(mktemp -d)
server=

# Called by the trap. The holder, if there is one, ends with its interface.
cleanup() {
    trap '' INT TERM HUP
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    "$emud" detach near0 --netns "$near" >/dev/null 2>&1 || true
    ip netns del "$near" 2>/dev/null || true
    ip netns del "$far" 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

run() {
    printf '\n$ emud %s\n' "$*"
    "$emud" "$@"
}

in_near() { ip netns exec "$near" "$@"; }

set_up() {
    ip netns add "$near"
    ip netns add "$far"
    for netns in "$near" "$far"; do
        # IPv6 would talk by itself, and the figures are to be only ours.
        ip netns exec "$netns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
            net.ipv6.conf.default.disable_ipv6=1
    done
    ip link add near0 netns "$near" type veth peer name far0 netns "$far"
    ip -n "$near" address add 10.0.0.1/24 dev near0
    ip -n "$far" address add 10.0.0.2/24 dev far0
    ip -n "$near" link set near0 up
    # emud caps segmentation on its own end; what comes in is cut by the other one.
    ip -n "$far" link set far0 up gso_max_segs 1
    # -J: the receiver's own intervals are fetched for the upload.
    ip netns exec "$far" iperf3 -s -J >/dev/null 2>&1 &
    server=$!
    for _ in $(seq 50); do
        if ip netns exec "$far" ss -Hltn 'sport = :5201' | grep -q .; then return; fi
        sleep 0.1
    done
    echo 'demo.sh: iperf3 does not start' >&2
    exit 1
}

# Everything that emud could leave behind.
state() {
    in_near tc qdisc show
    in_near tc filter show dev near0 egress
    in_near tc filter show dev near0 ingress
    in_near ip -d link show
    in_near ethtool -k near0
}

put() { echo "$2" >"$scratch/$1"; }
get() { cat "$scratch/$1" 2>/dev/null || echo -; }

# ping PHASE SECONDS INTERVAL
measure_rtt() {
    local out
    out=$(in_near ping -q -i "$3" -c "$(awk "BEGIN { print int($2 / $3) }")" 10.0.0.2) || true
    put "$1.rtt" "$(awk -F '[/ ]' '/^rtt/ { print $8 }' <<<"$out")"
    put "$1.sd" "$(awk -F '[/ ]' '/^rtt/ { print $10 }' <<<"$out")"
    put "$1.loss" "$(sed -n 's/.* \([0-9.]*\)% packet loss.*/\1/p' <<<"$out")"
}

# Mbit/s on the wire at the receiver, over its whole seconds from SKIP on; the last interval is cut
# short by the end of the test. WIRE / PAYLOAD turns what iperf3 counts into what the link carries.
# wire_rate FILE SKIP WIRE PAYLOAD
wire_rate() {
    jq -r --argjson skip "$2" --argjson wire "$3" --argjson payload "$4" '
        (if .start.test_start.reverse == 1 then . else .server_output_json end)
        | [.intervals[].sum | select(.seconds > 0.9 and .start >= $skip - 0.5)]
        | (map(.bytes) | add) * 8 / (map(.seconds) | add) * $wire / $payload / 1e6' "$1"
}

# measure_rate PHASE NAME SECONDS SKIP WIRE PAYLOAD IPERF3-OPTIONS...
measure_rate() {
    local phase=$1 name=$2 seconds=$3 skip=$4 wire=$5 payload=$6
    shift 6
    if ! in_near timeout 60 iperf3 -c 10.0.0.2 -J --get-server-output -t "$seconds" "$@" \
        >"$scratch/iperf3.json"; then
        echo "demo.sh: iperf3: $(jq -r '.error // "?"' "$scratch/iperf3.json")" >&2
        exit 1
    fi
    put "$phase.$name" "$(wire_rate "$scratch/iperf3.json" "$skip" "$wire" "$payload")"
}

# CUBIC is Debian's default; BBR, for one, all but stops every 10 s to measure the delay.
# TCP: 1448 bytes of payload in a frame of 1514 (timestamps are on). UDP: 1400 in 1442.
# measure PHASE PING-SECONDS PING-INTERVAL RATE-SECONDS SKIP UDP-UP UDP-DOWN (offered payload)
measure() {
    local phase=$1
    printf '%s' "  measuring: ping for $2 s"
    measure_rtt "$phase" "$2" "$3"
    printf '%s' ", TCP up"
    measure_rate "$phase" tcp_up "$4" "$5" 1514 1448 -C cubic
    printf '%s' ", TCP down"
    measure_rate "$phase" tcp_down "$4" "$5" 1514 1448 -C cubic -R
    printf '%s' ", UDP up"
    measure_rate "$phase" udp_up "$4" "$5" 1442 1400 -u -l 1400 -b "$6"
    printf '%s' ", UDP down"
    measure_rate "$phase" udp_down "$4" "$5" 1442 1400 -u -l 1400 -b "$7" -R
    echo
}

# What the profile says about a ping of 98 bytes and a rate, and how far a measurement of this
# length may be off by chance (one standard error). The jitter of the two directions is independent.
# 1.55 coherence times of a direction's jitter are worth one independent value; a rate is off by how
# much the delay changed meanwhile.
# ask PHASE MEAN-ms SD-ms UP-Mbit/s DOWN-Mbit/s PING-s RATE-s
ask() {
    local coherence_ms
    coherence_ms=$("$emud" show near0 --json --netns "$near" |
        jq '.interfaces[0].up.delay.coherence_ns / 1e6')
    awk -v mean="$2" -v sd="$3" -v up="$4" -v down="$5" -v ping_s="$6" -v rate_s="$7" \
        -v coherence_ms="$coherence_ms" -v out="$scratch/$1" '
        function put(name, format, value, error) {
            printf format " +-" format "\n", value, error > (out "." name ".asked")
        }
        BEGIN {
            n = ping_s * 1000 / coherence_ms / 1.55
            put("rtt", "%.1f", 2 * mean + 98 * 8 / 1000 * (1 / up + 1 / down), sd * sqrt(2 / n))
            put("sd", "%.1f", sd * sqrt(2), sd * sqrt(2) / sqrt(2 * n))
            split("tcp_up udp_up tcp_down udp_down", names)
            for (i in names) {
                rate = names[i] ~ /up/ ? up : down
                put(names[i], "%.3f", rate, rate * sd * sqrt(2) / 1000 / rate_s)
            }
            print 0 > (out ".loss.asked")
        }'
}

# row LABEL NAME DECIMALS; a host's own speed does not deserve any.
row() {
    local phase
    printf '%-18s' "$1"
    for phase in before hsdpa adsl24 after; do
        case $phase in hsdpa | adsl24) printf ' | %15s' "$(get "$phase.$2.asked")" ;; *) printf ' |' ;; esac
        get "$phase.$2" | awk -v decimals="$3" '
            { printf " %8s", $1 ~ /^[0-9.]+$/ ? sprintf("%.*f", $1 < 100 ? decimals : decimals < 3 ? 1 : 0, $1) : $1 }'
    done
    echo
}

table() {
    echo
    printf '%-18s | %8s | %24s | %24s | %8s\n' '' before hsdpa adsl24 after
    printf '%-18s | %8s | %15s %8s | %15s %8s | %8s\n' '' '' asked measured asked measured ''
    row 'RTT mean, ms' rtt 2
    row 'RTT sd, ms' sd 2
    row 'ping loss, %' loss 2
    row 'TCP up, Mbit/s' tcp_up 3
    row 'TCP down, Mbit/s' tcp_down 3
    row 'UDP up, Mbit/s' udp_up 3
    row 'UDP down, Mbit/s' udp_down 3
    cat <<'END'

Asked: the profile's figures; the RTT has a ping's own time on the wire added. +-: one standard
error, what chance alone does to a measurement of this length. Rates are bits on the wire at the
receiver (Ethernet header included). Before and after, UDP was offered at 20 Mbit/s, and TCP is as
fast as this host, which varies with where the scheduler puts the two ends (up goes in
super-packets, down in wire packets).
END
}

began=$SECONDS
set_up
state >"$scratch/state.before"
echo "near0 (10.0.0.1, namespace $near) <- veth -> far0 (10.0.0.2, namespace $far)"
printf '\nBefore\n'
measure before 2 0.01 2 1 20M 20M

run attach near0 --profile hsdpa --seed 1 --netns "$near"
put engine "$("$emud" show near0 --json --netns "$near" | jq -r '.interfaces[0].engine')"
ask hsdpa 198 69.296 0.384 0.384 30 7
measure hsdpa 30 0.05 9 2 460k 460k
run detach near0 --netns "$near"

run attach near0 --profile adsl24 --seed 1 --netns "$near"
ask adsl24 12.5 6.364 1 24 10 4
measure adsl24 10 0.02 5 1 1.2M 28M
run show near0 --netns "$near"
run detach near0 --netns "$near"

printf '\nAfter\n'
measure after 2 0.01 2 1 20M 20M
state >"$scratch/state.after"
echo
echo "Engine: $(get engine)"
table
echo
if diff "$scratch/state.before" "$scratch/state.after"; then
    echo "Left behind: nothing (tc qdisc, tc filter, ip -d link, ethtool -k as before)."
else
    echo "Left behind: see above." >&2
    exit 1
fi
echo "$((SECONDS - began)) s"
