# SPDX-License-Identifier: MIT OR Apache-2.0
# What tests left behind that a signal ended. Each name has the process ID of its test. Sourced.
# shellcheck shell=bash

# orphaned NAME: of a test that has ended.
orphaned() { [[ $1 =~ /emudtest-([0-9]+)- ]] && [ ! -e "/proc/${BASH_REMATCH[1]}" ]; }

# Deletes the network namespaces, and with them their links.
# shellcheck disable=SC2317 # called by a trap
sweep_namespaces() {
    local name
    for name in /run/netns/emudtest-*; do
        orphaned "$name" || continue
        # The holders of links are in other sessions.
        ip netns pids "${name##*/}" | xargs -r kill -9
        ip netns delete "${name##*/}"
    done
}

# Deletes disks, swap, control groups and files.
# shellcheck disable=SC2317 # called by a trap
sweep_disks() {
    local name file disk folder
    while read -r disk file; do
        orphaned "$file" || continue
        losetup --detach "$disk"
        umount -l "$file"
    done < <(losetup --list --noheadings --output NAME,BACK-FILE 2>/dev/null)
    for folder in /sys/kernel/config/nullb/emudtest-*; do
        orphaned "$folder" || continue
        echo 0 >"$folder/power"
        rmdir "$folder"
    done
    # A mark in /run is root's, and gone with the machine's start, as the disk.
    for file in /run/emudtest-*; do
        orphaned "$file" || continue
        [[ $file =~ -(zram([0-9]+))$ ]] || continue
        swapoff "/dev/${BASH_REMATCH[1]}" 2>/dev/null
        for _ in {1..20}; do
            # udev may have it open.
            { echo "${BASH_REMATCH[2]}" >/sys/class/zram-control/hot_remove; } 2>/dev/null && rm "$file" && break
            sleep 0.1
        done
    done
    for file in "${TMPDIR:-/tmp}"/emudtest-* target/*/deps/emudtest-*; do
        ! orphaned "$file" || rm -rf "$file"
    done
    while read -r name; do
        orphaned "$name" || continue
        # 0: a process of another namespace.
        grep -v '^0$' "$name/cgroup.procs" | xargs -r kill -9
        sleep 0.1
        rmdir "$name"
    done < <(find /sys/fs/cgroup -maxdepth 2 -name 'emudtest-*' 2>/dev/null)
}

# end_group PID: ends a group of processes, and waits until it is gone, at most 5 s.
# shellcheck disable=SC2317 # called by a trap
end_group() {
    kill -TERM -- "-$1" 2>/dev/null
    for _ in {1..50}; do
        kill -0 -- "-$1" 2>/dev/null || break
        sleep 0.1
    done
}

# shellcheck disable=SC2317 # called by a trap
sweep() {
    [ "$(id -u)" = 0 ] || return 0
    sweep_namespaces
    sweep_disks
}
