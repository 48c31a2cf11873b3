#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Boot a guest kernel under qemu's software CPU, run a command in it as root, return its status.
#
# usage: run.sh [OPTION]... SERIES -- COMMAND [ARGUMENT]...
#   --cpus N              virtual CPUs (default 2)
#   --parallel            the virtual CPUs are threads of this machine, and only the first is online
#                         (see below)
#   --memory M            MiB (default 1024)
#   --timeout S           seconds of the guest for the command (default 120)
#   --host-timeout S      seconds of this machine for the whole run, for a guest that hangs (default 5400)
#   --icount              guest time counts instructions (2 ns each, one CPU), idle time is skipped:
#                         timing no longer depends on the load of this machine
#   --icount-shift N      the same with 2^N ns each: 0 is a faster guest
#   --file SRC[:DST]      put a file or folder into the guest, see initramfs.sh (repeatable)
#   --out GUEST:HOST      copy a file or folder out afterwards (repeatable)
#   --append ARGUMENTS    more for the kernel command line (repeatable)
#   --erms                the CPU has `rep stosb`, of which qemu counts each byte as an instruction (see below)
#   --wire listen:PATH    eth0 on a wire to the guest that has --wire PATH and boots later; each has what passes
#                         in PATH.02.pcap and PATH.01.pcap
#
# The command starts in /root with standard input empty; its output and errors go to standard output.
#
# exit status: that of the command, or, distinguished by the message on standard error,
#   64 usage, 66 kernel or file missing, 69 program missing, 70 qemu failed,
#   201 timeout, 202 kernel panic, Oops or BUG, 203 kernel WARNING, 204 guest ended without a
#   status, 205 a file of --out was not there
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

usage() { die 64 "usage: run.sh [--cpus N] [--parallel] [--memory M] [--timeout S] [--icount] [--file SRC[:DST]]... [--out GUEST:HOST]... [--append ARGS]... [--wire [listen:]PATH] SERIES -- COMMAND..."; }

# quote TEXT: as one argument for a shell.
quote() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

number() { case $2 in '' | *[!0-9]*) die 64 "$1 needs a number, not '$2'" ;; esac; }

cpus=2
memory_mib=1024
timeout_s=120
host_timeout_s=5400
icount=
threads=single
wire=
erms=,-erms
append=
need qemu-system-x86_64 timeout tar
mkdir -p "$vm_dir/log"
work=$(mktemp -d "$vm_dir/run.XXXXXX")
qemu_pid=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
: >"$work/files"
: >"$work/outs"

while [ $# -gt 0 ]; do
    case $1 in
    --icount-shift | --cpus | --memory | --timeout | --host-timeout | --file | --out | --append | --wire) [ $# -ge 2 ] || usage ;;
    esac
    case $1 in
    --cpus) number "$1" "$2"; cpus=$2; shift ;;
    --parallel) threads=multi append="$append maxcpus=1" ;;
    --memory) number "$1" "$2"; memory_mib=$2; shift ;;
    --timeout) number "$1" "$2"; timeout_s=$2; shift ;;
    --host-timeout) number "$1" "$2"; host_timeout_s=$2; shift ;;
    --icount) icount=1 ;;
    --icount-shift) number "$1" "$2"; icount=$2; shift ;;
    --file) printf '%s\n' "$2" >>"$work/files"; shift ;;
    --out)
        case $2 in /*:?*) ;; *) die 64 "--out wants /GUESTPATH:HOSTPATH, not '$2'" ;; esac
        printf '%s\n' "$2" >>"$work/outs"
        shift
        ;;
    --append) append="$append $2"; shift ;;
    --wire) wire=$2; shift ;;
    --erms) erms= ;;
    -*) usage ;;
    *) break ;;
    esac
    shift
done
if [ $# -lt 3 ] || [ "$2" != -- ]; then usage; fi
series=$1
shift 2

mkdir "$work/vm"
{
    printf exec
    for word; do printf ' %s' "$(quote "$word")"; done
    echo
} >"$work/vm/command"
cut -d : -f 1 "$work/outs" >"$work/vm/out"
echo "$timeout_s" >"$work/vm/limit"
set -- "$work/vm:/vm"
while IFS= read -r file; do set -- "$@" "$file"; done <"$work/files"
"$here/initramfs.sh" "$series" "$work/initramfs" "$@"

# One host thread for all virtual CPUs: with a thread each, qemu 7.2 can keep a stale translation of
# code the kernel has just patched (static keys), and the guest dies of a breakpoint nobody owns.
# With --parallel nothing of that kind may happen once the command has set the others online.
set -- -accel "tcg,thread=$threads"
if [ -n "$icount" ]; then
    set -- "$@" -icount "shift=$icount,sleep=off" -rtc clock=vm -smp 1
else
    set -- "$@" -smp "$cpus"
fi
if [ -n "$wire" ]; then
    case $wire in listen:*) server=on mac=02 ;; *) server=off mac=01 ;; esac
    path=${wire#listen:}
    # 1,600 bytes: what VXLAN adds fits, too.
    set -- "$@" -netdev "stream,id=wire,server=$server,addr.type=unix,addr.path=$path" \
        -device "virtio-net-pci,netdev=wire,host_mtu=1600,romfile=,mac=52:54:00:00:00:$mac" \
        -object "filter-dump,id=dump,netdev=wire,file=$path.$mac.pcap"
else
    set -- "$@" -nic none
fi
# -cx16: qemu 7.2 computes cmpxchg16b wrongly and newer kernels crash in the slab allocator.
# -erms: the kernel would zero and copy memory by `rep stosb`, of which qemu emulates each byte.
# norandmaps: qemu keeps translated code by its virtual address, too. A program that each start puts
# elsewhere is translated again: that was half of the time of the live tests (290 s, 150 s without).
# tsc=reliable: all virtual CPUs read one host counter, but 6.1 takes it for unsynchronised and falls
# back to the HPET, which is slow to emulate.
# cryptomgr.notests: 7.2 tests its ciphers behind a running system, two thirds of the guest's time
# for minutes after the boot, and up to 3 ms at once.
# The three ports have separate interrupts; ACPI describes those of the third one to the guest.
timeout --kill-after=5 "$host_timeout_s" qemu-system-x86_64 "$@" -cpu "max,-cx16$erms" -m "$memory_mib" \
    -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$(kernel_dir "$series")/vmlinuz" -initrd "$work/initramfs" \
    -append "console=ttyS0 loglevel=5 oops=panic panic=-1 tsc=reliable rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60 cryptomgr.notests norandmaps$append" \
    -chardev "file,id=log,path=$work/log" -device isa-serial,chardev=log,index=0 \
    -chardev stdio,id=out,signal=off -device isa-serial,chardev=out,index=1 \
    -chardev "file,id=result,path=$work/result" \
    -device isa-serial,chardev=result,index=2,iobase=0x3e8,irq=5 \
    </dev/null 2>"$work/qemu" &
qemu_pid=$!
qemu_status=0
wait "$qemu_pid" || qemu_status=$?
qemu_pid=

log=$vm_dir/log/$series-$$.log
mkdir "$work/got"
complete=
if [ -s "$work/result" ] && tar -xf "$work/result" -C "$work/got" 2>>"$work/qemu" &&
    [ -s "$work/got/run/vm/dmesg" ]; then
    complete=1
fi
{
    tr -d '\r' <"$work/log"
    cat "$work/qemu"
    # Everything since boot; the console has warnings and worse only.
    [ -z "$complete" ] || { echo '--- dmesg ---' && cat "$work/got/run/vm/dmesg"; }
} >"$log"
ln -sfn "${log##*/}" "$vm_dir/log/last-$series.log"

complain() {
    grep -aE "$2" "$log" | sort -u | head -n 5 >&2
    die "$1" "$series: $3 (log: $log)"
}
severe='Kernel panic|Oops:|[^A-Z]BUG: |general protection fault|kernel BUG at|Unable to handle kernel'
mild='WARNING: |------------\[ cut here|INFO: rcu.*(stall|self-detected)|INFO: task .* blocked|UBSAN:|DEBUG_LOCKS_WARN'
if grep -qaE "$severe" "$log"; then complain 202 "$severe" "kernel panic, Oops or BUG"; fi
case $qemu_status in
0) ;;
124 | 137) complain 201 "$mild" "no end after $host_timeout_s s of this machine" ;;
*) cat "$work/qemu" >&2; die 70 "$series: qemu ended with status $qemu_status" ;;
esac
if grep -qaE "$mild" "$log"; then complain 203 "$mild" "kernel WARNING"; fi
[ -n "$complete" ] || die 204 "$series: the guest ended without a status (log: $log)"

[ ! -e "$work/got/run/vm/timeout" ] || die 201 "$series: no end after $timeout_s s of the guest (log: $log)"
status=$(cat "$work/got/run/vm/status")
note "$series: status $status, booted in $(cat "$work/got/run/vm/boot_s") s, log ${log#"$PWD/"}"
while IFS= read -r pair; do
    guest_path=${pair%%:*}
    host_path=${pair#*:}
    if [ ! -e "$work/got$guest_path" ]; then
        note "$guest_path was not there in the guest"
        [ "$status" -ne 0 ] || status=205
        continue
    fi
    rm -rf "$host_path"
    mkdir -p "$(dirname "$host_path")"
    cp -R "$work/got$guest_path" "$host_path"
done <"$work/outs"
exit "$status"
