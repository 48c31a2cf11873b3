#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Build the images of Containerfile and Containerfile.k8s into OCI archives, and run them. Needs root,
# podman, runc or crun; for the agent curl, jq, python3.
#
# usage: image.sh ROOT K8S VERSION FOLDER
#   ROOT      what dist.sh has installed
#   K8S       a folder with emud-k8s and its THIRD-PARTY
#   FOLDER    for the archives
set -euo pipefail

[ $# = 4 ] || { echo "usage: image.sh ROOT K8S VERSION FOLDER" >&2; exit 64; }
root=$(realpath -- "$1")
agent=$(realpath -- "$2")
version=$3
machine=$(uname -m)
folder=$(realpath -- "$4")
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")

if [ -z "${EMUD_IMAGE_INSIDE-}" ]; then
    # A store and networks that are not those of this machine.
    status=0
    EMUD_IMAGE_INSIDE=1 unshare --net --mount --pid --fork --kill-child -- "$0" "$root" "$agent" "$version" "$folder" || status=$?
    # Podman leaves its control groups behind; one with a process stays.
    find /sys/fs/cgroup -depth -type d -path '*/libpod_parent*' -exec rmdir {} \; 2>/dev/null || true
    exit "$status"
fi
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
runtime=crun
! command -v runc >/dev/null || runtime=runc
printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=100:100"]\n[engine]\nruntime = "%s"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n' \
    "$runtime" >"$scratch/containers.conf"
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/store"\nrunroot = "/run/store"\n' "$scratch" >"$scratch/storage.conf"
export CONTAINERS_CONF=$scratch/containers.conf CONTAINERS_STORAGE_CONF=$scratch/storage.conf

# saved IMAGE: it is in its archive, and what runs below is from there.
saved() {
    local archive=$folder/${1%:*}-$version-$machine.oci.tar
    rm -f "$archive"
    podman save -q --format oci-archive -o "$archive" "$1"
    podman rmi -f "$1" >/dev/null
    podman load -q -i "$archive" >/dev/null
}

mkdir "$scratch/context"
cp -r "$root/usr/bin/emud" "$root"/usr/share/doc/emud/{LICENSE,LICENSES,THIRD-PARTY} "$scratch/context/"
podman build -q --network none -t emud -f "$here/Containerfile" "$scratch/context" >/dev/null
cp "$agent"/* "$here/../LICENSES/Apache-2.0.txt" "$scratch/context/"
# With a version, so that a kubelet does not try to get a newer one.
podman build -q --network none -t "emud-k8s:$version" -f "$here/Containerfile.k8s" "$scratch/context" >/dev/null
saved "emud-k8s:$version"
saved emud

podman create -q --name files emud >/dev/null
podman export files | tar -x -C "$scratch"
for file in LICENSE LICENSES/MIT.txt THIRD-PARTY; do
    cmp "$root/usr/share/doc/emud/$file" "$scratch/usr/share/doc/emud/$file"
done

# With the rights that docs/install.md requests, in this network, which has only these interfaces.
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
rights=(--privileged --pid host --network host)
run() { podman run --rm "${rights[@]}" emud "$@"; }
# listed PATTERN [OPTION]...: wait until emud list prints it, and nothing else.
listed() {
    local pattern=$1 list
    shift
    for _ in {1..100}; do
        list=$(run "$@" list)
        # shellcheck disable=SC2053 # a pattern
        [[ $list == $pattern ]] && return
        sleep 0.1
    done
    echo "image.sh: emud list prints '$list', not '$pattern'" >&2
    exit 1
}
run --version
run attach v0 --profile lte --engine fq >/dev/null 2>&1 || echo "no engine fq here"
run detach v0 >/dev/null 2>&1 || true
podman run -d --name emud "${rights[@]}" emud attach v0 --profile lte --foreground >/dev/null
listed 'v0*'
podman stop emud >/dev/null
listed ''
# In a namespace with a name.
ip netns add other
ip link set v1 netns other
rights+=(-v /run/netns:/run/netns)
podman run -d --name named "${rights[@]}" emud --netns other attach v1 --profile lte --foreground >/dev/null
listed 'v1*' --netns other
podman stop named >/dev/null
listed '' --netns other

# The agent, with the rights of kubernetes/deploy/emud.yaml, for a pod: a process in a network and in a
# control group. An API server and a kubelet are played.
api=http://127.0.0.1:6443
ip link set lo up
python3 "$here/../kubernetes/tests/server.py" 6443 2>/dev/null &
# call METHOD PATH [OBJECT]
call() {
    local type=application/json
    [ "$1" != PATCH ] || type=application/merge-patch+json
    curl -fs --retry 20 --retry-delay 1 --retry-connrefused -X "$1" -H "Content-Type: $type" ${3:+-d "$3"} "$api/$2"
}
objects=api/v1/namespaces/default
links=apis/net.emud/v1alpha1/namespaces/default/links
call POST api/v1/nodes '{"metadata":{"name":"n1"}}' >/dev/null
uid=$(call POST $objects/pods '{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"nodeName":"n1",
    "containers":[{"name":"c","image":"i"}]}}' | jq -r .metadata.uid)
call PATCH $objects/pods/web/status '{"status":{"phase":"Running","podIP":"10.1.1.2"}}' >/dev/null
groups=/sys/fs/cgroup
[ ! -d $groups/unified ] || groups=$groups/unified
# The script that calls removes what is below libpod_parent.
group=$groups/libpod_parent/kubepods-besteffort.slice/kubepods-besteffort-pod${uid//-/_}.slice/cri-containerd-1.scope
mkdir -p "$group"
ip netns add pod
ip link add pod type veth peer name eth0 netns pod
ip -n pod link set eth0 up
(echo "$BASHPID" >"$group/cgroup.procs" && exec ip netns exec pod sleep 600) &
echo "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '$api'}}],
    users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}" >"$scratch/kubeconfig"
# A kubelet gives the agent the cluster's certificate; here it has those of this machine.
tun=
[ ! -e /dev/net/tun ] || tun=--device=/dev/net/tun
capabilities=$(sed -n 's/^ *add: \[\(.*\)\]$/\1/p' "$here/../kubernetes/deploy/emud.yaml")
# shellcheck disable=SC2086 # none, or one
podman run -d --name agent --cap-drop all --cap-add "${capabilities//, /,}" $tun \
    --security-opt no-new-privileges --security-opt seccomp=unconfined --read-only --read-only-tmpfs=false --pid host \
    --network host -v /etc/ssl/certs:/etc/ssl/certs:ro -e NODE_NAME=n1 -e KUBECONFIG=/kubeconfig -v "$scratch/kubeconfig:/kubeconfig:ro" \
    "emud-k8s:$version" agent >/dev/null
# eventually COMMAND...: it succeeds within 20 s.
eventually() {
    for _ in {1..200}; do
        ! "$@" || return 0
        sleep 0.1
    done
    echo "image.sh: not within 20 s: $*" >&2
    call GET $links/slow >&2
    podman logs agent >&2
    exit 1
}
attached() { call GET $links/slow | jq -e '.status.pods["n1/web"].state == "attached"' >/dev/null; }
gone() { [ "$(curl -s -o /dev/null -w '%{http_code}' "$api/$links/slow")" = 404 ]; }
call POST $links '{"apiVersion":"net.emud/v1alpha1","kind":"Link","metadata":{"name":"slow"},
    "spec":{"selector":{"matchLabels":{"app":"web"}},"profile":"lte"}}' >/dev/null
eventually attached
call DELETE $links/slow >/dev/null
eventually gone
if ip -n pod link show | grep emud; then
    echo "image.sh: the link is left" >&2
    exit 1
fi
podman stop agent >/dev/null
