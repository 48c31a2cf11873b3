#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Execute the commands of docs/containers.md in order with real containers of Podman, and check what
# they promise. `docker` is podman here. Everything is in separate namespaces, and the image is made
# of busybox, without a registry. Needs root, podman, runc or crun, busybox-static.
#
# usage: containers.sh EMUD
set -euo pipefail

emud=$(realpath -- "${1:?usage: containers.sh EMUD}")
page=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../docs/containers.md")

if [ -z "${EMUD_CONTAINERS_INSIDE-}" ]; then
    for program in podman conmon busybox; do
        command -v "$program" >/dev/null || { echo "containers.sh: $program is missing" >&2; exit 69; }
    done
    status=0
    EMUD_CONTAINERS_INSIDE=1 unshare --net --mount --pid --fork --kill-child -- "$0" "$emud" || status=$?
    # Podman leaves its control groups behind; one with a process stays.
    find /sys/fs/cgroup -depth -type d -path '*/libpod_parent*' -exec rmdir {} \; 2>/dev/null || true
    exit "$status"
fi
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
scratch=$(mktemp -d)
watch=
finish() {
    [ -z "$watch" ] || kill "$watch" 2>/dev/null || true
    podman rm -fa -t 0 >/dev/null 2>&1 || true
    cd /
    rm -rf "$scratch"
}
trap finish EXIT
cd "$scratch"

# runc can run in a mixed hierarchy of control groups, crun cannot; limits that need no privilege.
runtime=crun
! command -v runc >/dev/null || runtime=runc
cat >containers.conf <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=100:100"]
[engine]
runtime = "$runtime"
cgroup_manager = "cgroupfs"
events_logger = "file"
END
cat >storage.conf <<END
[storage]
driver = "vfs"
graphroot = "$scratch/store"
runroot = "/run/store"
END
export CONTAINERS_CONF=$scratch/containers.conf CONTAINERS_STORAGE_CONF=$scratch/storage.conf
unset DOCKER_HOST CONTAINER_HOST SUDO_UID

mkdir -p image/bin bin
cp "$(command -v busybox)" image/bin/
for applet in sh sleep ping; do ln -s busybox "image/bin/$applet"; done
tar -C image -c . | podman import - busybox >/dev/null 2>&1
ln -s "$emud" bin/emud
ln -s "$(command -v podman)" bin/docker
export PATH=$scratch/bin:$PATH

mkdir -p /run/podman
podman system service -t 0 unix:///run/podman/podman.sock >service.log 2>&1 &
for _ in $(seq 100); do [ ! -S /run/podman/podman.sock ] || break; sleep 0.1; done

# listed PATTERN [NUMBER]: wait until so many links are listed.
listed() {
    local lines
    for _ in $(seq 150); do
        lines=$(emud list --all 2>/dev/null | grep -c -- "$1" || true)
        [ "$lines" != "${2-1}" ] || return 0
        sleep 0.2
    done
    echo "containers.sh: not listed ${2-1} times: $1" >&2
    emud list --all >&2
    cat watch.log >&2 || true
    exit 1
}

# attached NUMBER: wait until emud watch has attached so many links to the phone, and the last one is listed.
attached() {
    for _ in $(seq 150); do
        [ "$(grep -c '^emud: phone: .*hsdpa' watch.log)" != "$1" ] || break
        sleep 0.2
    done
    listed 'container phone.*hsdpa'
}

# processes: those of emud, which are all in this namespace of processes.
processes() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe")" != "$emud" ] || echo "${process#/proc/}"
    done
}

executed=0
while IFS= read -r command; do
    echo "# $command"
    case $command in
    "emud watch &")
        emud watch 2>watch.log &
        watch=$!
        ;;
    # After the link is there, a second one must replace it.
    "docker restart"*)
        listed 'container tv.*adsl24'
        listed 'container phone.*hsdpa'
        before=$(podman inspect -f '{{.State.Pid}}' phone)
        eval "$command" >/dev/null
        [ "$(podman inspect -f '{{.State.Pid}}' phone)" != "$before" ]
        attached 2
        ;;
    # Its link ends with it; that of the other container stays.
    "docker kill"*)
        eval "$command" >/dev/null
        listed 'container phone' 0
        listed 'container tv.*adsl24'
        ;;
    "docker start"*)
        eval "$command" >/dev/null
        attached 3
        ;;
    "emud detach --container web")
        listed 'container web.eth0.lte.both'
        emud show --container web --json | jq -e '.interfaces[0].down.rate_bit_s == 5e6' >/dev/null
        eval "$command"
        listed 'container' 0
        ;;
    "docker rm"*)
        listed 'container phone.eth0.hsdpa'
        listed 'container tv.eth0.adsl24'
        # What ends with emud watch, or by itself, ends without any process of emud, too. The next one cleans up.
        emud attach --container web --profile lte --for 10s 2>/dev/null
        listed 'container web.eth0.lte.*ends in'
        processes | xargs kill -9
        [ -z "$(processes)" ]
        watch=
        listed 'container.*ENDED' 3
        emud detach --container web
        listed 'container web' 0
        eval "$command" >/dev/null
        ;;
    *) eval "$command" ;;
    esac
    executed=$((executed + 1))
done < <(awk '/^```console$/ { on = 1; next } /^```$/ { on = 0 } on && sub(/^# /, "")' "$page")
[ "$executed" -ge 14 ] || { echo "containers.sh: only $executed commands: where is the page?" >&2; exit 1; }
[ -z "$(podman ps -aq)" ] || { echo "containers.sh: a container remains" >&2; exit 1; }
echo "$executed commands"
