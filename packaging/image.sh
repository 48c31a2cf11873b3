#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Build the image of Containerfile into an OCI archive, and run it. Needs root, podman, runc or crun.
#
# usage: image.sh ROOT ARCHIVE
#   ROOT    what dist.sh has installed
set -euo pipefail

root=$(realpath -- "${1:?usage: image.sh ROOT ARCHIVE}")
archive=$(realpath -m -- "${2:?usage: image.sh ROOT ARCHIVE}")
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")

if [ -z "${EMUD_IMAGE_INSIDE-}" ]; then
    # A store and networks that are not those of this machine.
    status=0
    EMUD_IMAGE_INSIDE=1 unshare --net --mount --pid --fork --kill-child -- "$0" "$root" "$archive" || status=$?
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

mkdir "$scratch/context"
cp -r "$root/usr/bin/emud" "$root"/usr/share/doc/emud/{LICENSE,LICENSES,THIRD-PARTY} "$scratch/context/"
podman build -q --network none -t emud -f "$here/Containerfile" "$scratch/context" >/dev/null
rm -f "$archive"
podman save -q --format oci-archive -o "$archive" emud

podman rmi -f emud >/dev/null
podman load -q -i "$archive" >/dev/null
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
