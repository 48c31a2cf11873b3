#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Execute the commands of docs/containers.md in order with real containers of ENGINE, and check what they promise.
# `docker` is podman with podman. Everything is in separate namespaces, and the image is made of busybox, without a
# registry. With containerd, which has no such commands, and with rootless, Podman of a user, one container gets a
# link. Needs root, busybox-static, iproute2, runc; podman and conmon, or apt-get.
#
# usage: containers.sh EMUD podman|rootless|docker|containerd
set -euo pipefail

usage='usage: containers.sh EMUD podman|rootless|docker|containerd'
emud=$(realpath -- "${1:?$usage}")
engine=${2:?$usage}
root=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/..")

if [ -z "${EMUD_CONTAINERS_INSIDE-}" ]; then
    needed='busybox runc'
    case $engine in
    podman) needed+=' podman conmon' ;;
    rootless) needed+=' podman conmon slirp4netns' ;;
    docker) needed+=' dockerd docker' ;;
    containerd) needed+=' containerd ctr' ;;
    *) echo "$usage" >&2; exit 64 ;;
    esac
    [ "$engine" = podman ] || PATH=$PATH:$("$root/tests/engines.sh")
    for program in $needed; do
        command -v "$program" >/dev/null || { echo "containers.sh: $program is missing" >&2; exit 69; }
    done
    status=0
    EMUD_CONTAINERS_INSIDE=1 unshare --net --mount --pid --fork --kill-child -- "$0" "$emud" "$engine" || status=$?
    # Engines leave their control groups behind; one with a process stays.
    find /sys/fs/cgroup -depth -type d -regex '.*/\(libpod_parent\|docker\|emud-test\)\(/.*\)?' -exec rmdir {} \; \
        2>/dev/null || true
    exit "$status"
fi
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
scratch=$(mktemp -d)
watch=
finish() {
    [ -z "$watch" ] || kill "$watch" 2>/dev/null || true
    cd /
    rm -rf "$scratch"
}
trap finish EXIT
cd "$scratch"

unset DOCKER_HOST CONTAINER_HOST SUDO_UID
mkdir -p image/bin bin
cp "$(command -v busybox)" image/bin/
for applet in sh sleep ping; do ln -s busybox "image/bin/$applet"; done
ln -s "$emud" bin/emud
PATH=$scratch/bin:$PATH

# listens SOCKET: wait for it.
listens() {
    for _ in $(seq 150); do [ ! -S "$1" ] || return 0; sleep 0.2; done
    tail -n 20 service.log >&2
    exit 1
}

# start_podman [PREFIX...]: what runs it, for a user.
start_podman() {
    local folder=${XDG_RUNTIME_DIR:-/run}
    # runc can run in a mixed hierarchy of control groups, crun cannot; limits that need no privilege.
    cat >containers.conf <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=100:100"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
END
    cat >storage.conf <<END
[storage]
driver = "vfs"
graphroot = "$folder/store"
runroot = "$folder/run"
END
    export CONTAINERS_CONF=$scratch/containers.conf CONTAINERS_STORAGE_CONF=$scratch/storage.conf
    ln -s "$(command -v podman)" bin/docker
    "$@" mkdir -p "$folder/podman"
    "$@" podman system service -t 0 "unix://$folder/podman/podman.sock" >service.log 2>&1 &
    listens "$folder/podman/podman.sock"
}

start_docker() {
    # Its firewall rules would be those of this namespace, and need modules that a host may lack.
    dockerd --iptables=false --ip6tables=false --storage-driver=vfs --data-root=/run/store \
        --exec-opt native.cgroupdriver=cgroupfs -H unix:///run/docker.sock >service.log 2>&1 &
    listens /run/docker.sock
}

# listed PATTERN [NUMBER]: wait until this number of links is listed.
listed() {
    local list lines
    for _ in $(seq 150); do
        if list=$(emud list --all 2>/dev/null); then
            lines=$(grep -c -- "$1" <<<"$list" || true)
            [ "$lines" != "${2-1}" ] || return 0
        fi
        sleep 0.2
    done
    echo "containers.sh: not listed ${2-1} times: $1" >&2
    emud list --all >&2
    cat watch.log >&2 || true
    exit 1
}

# attached NUMBER: wait until emud watch has attached this number of links to the phone, and the last one is listed.
attached() {
    for _ in $(seq 150); do
        [ "$(grep -c '^emud: phone: .*hsdpa' watch.log)" != "$1" ] || break
        sleep 0.2
    done
    listed 'container phone.*hsdpa'
}

# of_containerd: no API that emud knows, so the container is found by its control group; no network, so it gets one here.
of_containerd() {
    local id started
    id=$(od -An -v -tx1 -N 32 /dev/urandom | tr -d ' \n')
    containerd --root /run/store --state /run/containerd --address /run/containerd/containerd.sock >service.log 2>&1 &
    listens /run/containerd/containerd.sock
    for started in "ctr run -d --null-io --cgroup /emud-test/$id --pid-file pid --rootfs image $id /bin/sleep 1000" \
        "ctr task start -d --null-io --pid-file pid $id"; do
        $started
        ip link add w0 type veth peer name eth0 netns "$(cat pid)"
        ip link set w0 up
        nsenter -t "$(cat pid)" -n ip link set eth0 up
        emud attach --container "${id:0:16}" --profile lte
        listed "container ${id:0:12}.eth0.lte.both"
        emud show --container "$id" --json | jq -e '.interfaces[0].interface == "eth0"' >/dev/null
        # The link ends with the container's network.
        ctr task kill -s KILL "$id"
        listed container 0
        ctr task delete "$id" >/dev/null 2>&1
    done
    ctr container delete "$id"
    echo "2 starts with containerd"
}

# of_rootless: the user and the device that anybody may open are of this namespace of mounts.
of_rootless() {
    local uid=4711
    export SUDO_UID=$uid XDG_RUNTIME_DIR=/run/user/$uid
    local user=(setpriv --reuid "$uid" --regid "$uid" --clear-groups env "HOME=$XDG_RUNTIME_DIR")
    { cat /etc/passwd; echo "emud-test:x:$uid:$uid::$XDG_RUNTIME_DIR:/bin/sh"; } >passwd
    mount --bind passwd /etc/passwd
    mknod -m 666 /run/tun c 10 200
    mount --bind /run/tun /dev/net/tun
    mkdir -p "$XDG_RUNTIME_DIR"
    chown "$uid:$uid" "$XDG_RUNTIME_DIR"
    chmod 755 .
    start_podman "${user[@]}"
    tar -C image -c . | "${user[@]}" podman import - busybox >/dev/null 2>&1
    emud watch 2>watch.log &
    watch=$!
    "${user[@]}" podman run -d --name web --label emud.profile=lte busybox sleep 1000 2>/dev/null
    listed 'container web.tap0.lte.both'
    kill "$watch"
    watch=
    listed container 0
    emud attach --container web --profile dsl
    listed 'container web.tap0.dsl.both'
    emud detach --container web
    listed container 0
    echo "a container of a user"
}

# processes: those of emud, which are all in this namespace of processes.
processes() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe")" != "$emud" ] || echo "${process#/proc/}"
    done
}

case $engine in containerd | rootless) "of_$engine"; exit ;; esac
"start_$engine"
tar -C image -c . | docker import - busybox >/dev/null 2>&1
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
        before=$(docker inspect -f '{{.State.Pid}}' phone)
        eval "$command" >/dev/null
        [ "$(docker inspect -f '{{.State.Pid}}' phone)" != "$before" ]
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
        # Its process stays, and gets another network.
        network=$(docker inspect -f '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}' phone)
        docker network disconnect "$network" phone
        listed 'container phone' 0
        docker network connect "$network" phone
        attached 4
        ;;
    "emud detach --container web")
        listed 'container web.eth0.lte.both'
        emud show --container web --json | jq -e '.interfaces[0].down.rate_bit_s == 5e6' >/dev/null
        eval "$command"
        listed 'container' 0
        ;;
    "docker rm"*)
        # Docker gives the interface of the second network another name.
        listed 'container phone.eth[01].hsdpa'
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
done < <(awk '/^```console$/ { on = 1; next } /^```$/ { on = 0 } on && sub(/^# /, "")' "$root/docs/containers.md")
[ "$executed" -ge 14 ] || { echo "containers.sh: only $executed commands: where is the page?" >&2; exit 1; }
remain=$(docker ps -aq)
[ -z "$remain" ] || { echo "containers.sh: a container remains" >&2; exit 1; }
echo "$executed commands with $engine"
