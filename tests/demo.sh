#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What emud does, seen from outside: two links, each between two network namespaces joined by a
# veth, measured with ping and iperf3 before, under a profile, and after. Nothing of the machine's
# own network is used.
#
# usage: demo.sh EMUD
#
# Both links are measured at the same time: one carries at most 24 Mbit/s, the other 384 kbit/s,
# which leaves most of a CPU idle. Before and after, the host's own speed is measured, with all of
# the CPU, on the first pair alone.
set -euo pipefail

emud=$(realpath -- "${1:?usage: demo.sh EMUD}")
prefix=emud-demo-$$
links=(adsl24 hsdpa)
scratch=$(mktemp -d)
second=

near() { echo "$prefix-$1-near"; }
far() { echo "$prefix-$1-far"; }

# Called by the trap. A holder, if there is one, ends with its interface.
cleanup() {
    local link netns
    trap '' INT TERM HUP
    [ -z "$second" ] || kill "$second" 2>/dev/null || true
    for link in "${links[@]}"; do
        "$emud" detach near0 --netns "$(near "$link")" >/dev/null 2>&1 || true
        for netns in "$(near "$link")" "$(far "$link")"; do
            # ping and iperf3; a job in the background ignores SIGINT.
            ip netns pids "$netns" 2>/dev/null | xargs -r kill 2>/dev/null || true
            ip netns del "$netns" 2>/dev/null || true
        done
    done
    [ -z "$second" ] || wait "$second" 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

run() {
    printf '\n$ emud %s\n' "$*"
    "$emud" "$@"
}

# in_near LINK COMMAND...
in_near() {
    local netns
    netns=$(near "$1")
    shift
    ip netns exec "$netns" "$@"
}

# set_up LINK
set_up() {
    local near far netns port
    near=$(near "$1")
    far=$(far "$1")
    for netns in "$near" "$far"; do
        ip netns add "$netns"
        # IPv6 sends packets unasked, and only those of the measurement may count.
        ip netns exec "$netns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
            net.ipv6.conf.default.disable_ipv6=1
    done
    ip link add near0 netns "$near" type veth peer name far0 netns "$far"
    ip -n "$near" address add 10.0.0.1/24 dev near0
    ip -n "$far" address add 10.0.0.2/24 dev far0
    ip -n "$near" link set near0 up
    # emud caps segmentation on its own end; the other end segments what near0 receives.
    ip -n "$far" link set far0 up gso_max_segs 1
    # -J: the client fetches the receiver's intervals of an upload. A server runs one test at a time.
    for port in 5201 5202; do
        ip netns exec "$far" iperf3 -s -J -p "$port" >/dev/null 2>&1 &
    done
    for _ in $(seq 50); do
        if [ "$(ip netns exec "$far" ss -Hltn '( sport = :5201 or sport = :5202 )' | wc -l)" = 2 ]; then
            return
        fi
        sleep 0.1
    done
    echo 'demo.sh: iperf3 does not start' >&2
    exit 1
}

# Everything that emud could leave behind.
state() {
    local link
    for link in "${links[@]}"; do
        echo "$link"
        in_near "$link" tc qdisc show
        in_near "$link" tc filter show dev near0 egress
        in_near "$link" tc filter show dev near0 ingress
        in_near "$link" ip -d link show
        in_near "$link" ethtool -k near0
    done
}

put() { echo "$2" >"$scratch/$1"; }
get() { cat "$scratch/$1" 2>/dev/null || echo -; }

# measure_rtt PHASE LINK SECONDS INTERVAL
measure_rtt() {
    local out
    out=$(in_near "$2" ping -q -i "$4" -c "$(awk "BEGIN { print int($3 / $4) }")" 10.0.0.2) || true
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

# measure_rate PHASE NAME LINK SECONDS SKIP WIRE PAYLOAD IPERF3-OPTIONS...
measure_rate() {
    local phase=$1 name=$2 link=$3 seconds=$4 skip=$5 wire=$6 payload=$7 out
    shift 7
    out=$scratch/$phase.$name.json
    if ! in_near "$link" timeout 60 iperf3 -c 10.0.0.2 -J --get-server-output -t "$seconds" "$@" \
        >"$out"; then
        echo "demo.sh: iperf3: $(jq -r '.error // "?"' "$out")" >&2
        return 1
    fi
    put "$phase.$name" "$(wire_rate "$out" "$skip" "$wire" "$payload")"
}

# Percentage of the packets that engine hold released more than 1 ms late; engine fq has no holder.
# measure_late LINK
measure_late() {
    put "$1.late" "$("$emud" show near0 --json --netns "$(near "$1")" | jq -r '
        [.interfaces[0] | .up.holder, .down.holder | values]
        | if length == 0 then "-" else 100 * (map(.late) | add) / (map(.released) | add) end')"
}

# CUBIC is Debian's default; BBR, for one, all but stops every 10 s to measure the delay.
# TCP: 1448 bytes of payload in a frame of 1514 (timestamps are on). UDP: 1400 in 1442. Each
# direction of a link has a separate queue, and UDP has no acknowledgements: both directions are
# measured at the same time.
# measure PHASE LINK PING-SECONDS PING-INTERVAL TCP-SECONDS UDP-SECONDS SKIP UDP-UP UDP-DOWN
# (payload sent) TCP-OPTIONS...
measure() {
    local phase=$1 link=$2 upload
    local tcp=("$5" "$7" 1514 1448 -C cubic "${@:10}")
    local udp=("$6" "$7" 1442 1400 -u -l 1400 -b)
    measure_rtt "$phase" "$link" "$3" "$4"
    show "$phase" rtt sd loss
    measure_rate "$phase" tcp_up "$link" "${tcp[@]}"
    show "$phase" tcp_up
    measure_rate "$phase" tcp_down "$link" "${tcp[@]}" -R
    show "$phase" tcp_down
    measure_rate "$phase" udp_up "$link" "${udp[@]}" "$8" &
    upload=$!
    measure_rate "$phase" udp_down "$link" "${udp[@]}" "$9" -R -p 5202
    wait "$upload"
    show "$phase" udp_up udp_down
    [ "$phase" = "$link" ] || return 0
    measure_late "$link"
    show "$link" late
}

# Computes what a ping of 98 bytes and a rate should be under the profile, and the standard error of
# a measurement of this length. The jitter of the two directions is independent. 1.55 coherence times
# of the jitter of a direction give one independent value. A change of the delay during the
# measurement changes the rate.
# LINK MEAN-ms SD-ms UP-Mbit/s DOWN-Mbit/s PING-s TCP-s UDP-s (TCP, UDP: without what is skipped)
ask() {
    local coherence_ms
    coherence_ms=$("$emud" show near0 --json --netns "$(near "$1")" |
        jq '.interfaces[0].up.delay.coherence_ns / 1e6')
    awk -v mean="$2" -v sd="$3" -v up="$4" -v down="$5" -v ping_s="$6" -v tcp_s="$7" -v udp_s="$8" \
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
                seconds = names[i] ~ /tcp/ ? tcp_s : udp_s
                put(names[i], "%.3f", rate, rate * sd * sqrt(2) / 1000 / seconds)
            }
            print 0 > (out ".loss.asked")
        }'
}

figures=(rtt sd loss tcp_up tcp_down udp_up udp_down late)
declare -A label=(
    [rtt]='RTT mean, ms' [sd]='RTT sd, ms' [loss]='ping loss, %'
    [tcp_up]='TCP up, Mbit/s' [tcp_down]='TCP down, Mbit/s'
    [udp_up]='UDP up, Mbit/s' [udp_down]='UDP down, Mbit/s'
    [late]='late > 1 ms, %'
)

# measured PHASE NAME; the host's own speed is not worth three decimals.
measured() {
    local decimals=2
    case $2 in tcp* | udp*) decimals=3 ;; esac
    get "$1.$2" | awk -v decimals="$decimals" '
        { printf "%s", $1 ~ /^[0-9.]+$/ ? sprintf("%.*f", $1 < 100 ? decimals : decimals < 3 ? 1 : 0, $1) : $1 }'
}

# show PHASE NAME...: one line each; both links are measured at the same time.
show() {
    local phase=$1 name asked
    for name in "${@:2}"; do
        asked=
        [ "$phase" = before ] || [ "$phase" = after ] || asked=$(get "$phase.$name.asked")
        printf '%-6s  %-18s %16s %10s\n' "$phase" "${label[$name]}" "$asked" "$(measured "$phase" "$name")"
    done
}

table() {
    local link name
    printf '\n%-18s | %8s' '' before
    for link in "${links[@]}"; do printf ' | %24s' "$link"; done
    printf ' | %8s\n%-18s | %8s' after '' ''
    for link in "${links[@]}"; do printf ' | %15s %8s' asked measured; done
    printf ' |\n'
    for name in "${figures[@]}"; do
        printf '%-18s | %8s' "${label[$name]}" "$(measured before "$name")"
        for link in "${links[@]}"; do
            printf ' | %15s %8s' "$(get "$link.$name.asked")" "$(measured "$link" "$name")"
        done
        printf ' | %8s\n' "$(measured after "$name")"
    done
    cat <<'TEXT'

Asked: the profile's figures; the RTT includes the time of a ping on the wire. +-: one standard
error, what chance alone does to a measurement of this length. Rates are bits on the wire at the
receiver (Ethernet header included). Before and after, UDP was offered at 20 Mbit/s, and TCP is as
fast as this host, which depends on the CPUs on which the two ends run (up sends super-packets,
down wire packets). Late: what engine hold released more than 1 ms after its time, because this
host had no CPU for it; the RTT includes that delay.
TEXT
}

began=$SECONDS
for link in "${links[@]}"; do set_up "$link"; done
state >"$scratch/state.before"
echo "Two pairs of network namespaces, $prefix-*: near0 (10.0.0.1) <- veth -> far0 (10.0.0.2)"
printf '\n%-6s  %-18s %16s %10s\n' '' '' asked measured
measure before adsl24 1 0.01 1.2 1.2 0 20M 20M

for link in "${links[@]}"; do
    run attach near0 --profile "$link" --seed 1 --netns "$(near "$link")"
done
put engine "$("$emud" show near0 --json --netns "$(near adsl24)" | jq -r '.interfaces[0].engine')"
ask adsl24 12.5 6.364 2 24 5 3 2
ask hsdpa 198 69.296 0.384 0.384 20 5 3
echo
# 64 KB of buffer are 1.4 s of queue at 384 kbit/s: iperf3's results wait in it, too.
measure hsdpa hsdpa 20 0.05 7 5 2 410k 410k -w 64K &
second=$!
measure adsl24 adsl24 5 0.02 4 3 1 2.2M 26M
echo "adsl24 was measured $((SECONDS - began)) s after the start; hsdpa takes longer."
wait "$second"
second=
run show near0 --netns "$(near adsl24)"
for link in "${links[@]}"; do run detach near0 --netns "$(near "$link")"; done

echo
measure after adsl24 1 0.01 1.2 1.2 0 20M 20M
state >"$scratch/state.after"
echo
echo "Engine: $(get engine)"
table
echo
if diff "$scratch/state.before" "$scratch/state.after"; then
    echo "Left behind: nothing (tc qdisc, tc filter, ip -d link and ethtool -k show the same as before)."
else
    echo "Left behind: see above." >&2
    exit 1
fi
echo "$((SECONDS - began)) s"
