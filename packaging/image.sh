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
    EMUD_IMAGE_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child -- "$0" "$root" "$archive"
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

# With the rights that the page asks for, in this network, which has nothing but these interfaces.
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
run() { podman run --rm --privileged --pid host --network host emud "$@"; }
run --version
run attach v0 --profile lte --engine fq >/dev/null 2>&1 || echo "no engine fq here"
run attach v0 --profile lte --for 1h 2>/dev/null || true
run list | grep -q '^v0'
run detach v0
