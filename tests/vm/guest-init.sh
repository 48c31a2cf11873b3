#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Process 1 of a test guest: set up, run /vm/command, send the results out, power off.
# Ports: ttyS0 kernel log, ttyS1 output of the command, ttyS2 one tar archive of results.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/net
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
# As on any other system: with the mode of a tmpfs, every user could create files there.
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs tmp /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# Opening the node loads the module; udev would have made it.
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
ln -s /proc/self/fd /dev/fd
hostname guest
ip link set lo up
# shellcheck disable=SC3045 # /bin/sh is dash in the guest
ulimit -l unlimited

# No echo, no newline or flow-control translation: the archive is binary.
stty -F /dev/ttyS1 raw -echo
stty -F /dev/ttyS2 raw -echo

mkdir /run/vm
cut -d ' ' -f 1 /proc/uptime >/run/vm/boot_s
cd /root || exit 1
# The limit is of this guest's own time: how long the host takes over that is not the command's fault.
begin=$(cut -d . -f 1 /proc/uptime)
limit=$(cat /vm/limit)
timeout -s KILL "$limit" sh /vm/command </dev/null >/dev/ttyS1 2>&1
echo $? >/run/vm/status
[ $(($(cut -d . -f 1 /proc/uptime) - begin)) -lt "$limit" ] || echo "$limit" >/run/vm/timeout
dmesg >/run/vm/dmesg

# -h: files reached by a symbolic link are what is wanted.
set -- run/vm
while read -r path; do
    if [ -e "$path" ]; then
        set -- "$@" "${path#/}"
    else
        echo "$path" >>/run/vm/missing
    fi
done </vm/out
tar -chf /dev/ttyS2 -C / "$@"

# Closing a port waits until it has been sent.
poweroff -f
