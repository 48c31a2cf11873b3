#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Print the name of a tar file of a fresh, minimal system of a suite of Debian; debootstrap makes it the
# first time. Needs root.
#
# usage: chroot.sh SUITE [PACKAGE,PACKAGE...]
#   PACKAGE    besides those of the minimal system
set -euo pipefail

suite=${1:?usage: chroot.sh SUITE [PACKAGE,PACKAGE...]}
packages=${2-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p target/chroots
image=$PWD/target/chroots/$suite${packages:+-${packages//,/-}}.tar
if [ ! -e "$image" ]; then
    # The archive of this machine, as apt knows it.
    # shellcheck disable=SC2016 # apt expands these
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk '$2 ~ /^(bullseye|bookworm|trixie|forky|sid)$/ && $3 == "main" { print $1; exit }')
    fresh=$(mktemp -d)
    trap 'rm -rf "$fresh"' EXIT
    debootstrap --variant=minbase ${packages:+"--include=$packages"} "$suite" "$fresh" "$mirror" >"$image.log" 2>&1 ||
        { tail -n 5 "$image.log" >&2; exit 69; }
    tar -C "$fresh" -cf "$image.new" .
    mv "$image.new" "$image"
fi
echo "$image"
