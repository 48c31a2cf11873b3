#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Print the name of a tar file of a fresh, minimal system, which is made the first time: of a suite of Debian, or from
# the same mirror, if it has them, of Ubuntu or Alpine. Needs root.
#
# usage: chroot.sh SUITE [PACKAGE,PACKAGE...]
#   SUITE      bookworm, ..., jammy, noble, alpine
#   PACKAGE    besides those of the minimal system; none with alpine
# exit status: 69 the mirror does not have it
set -euo pipefail

suite=${1:?usage: chroot.sh SUITE [PACKAGE,PACKAGE...]}
packages=${2-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p target/chroots
image=$PWD/target/chroots/$suite${packages:+-${packages//,/-}}.tar

# debian MIRROR [SCRIPT]: a system of debootstrap. OPTIONS are its options.
debian() {
    fresh=$(mktemp -d)
    trap 'rm -rf "$fresh"' EXIT
    debootstrap --variant=minbase "${options[@]}" "$suite" "$fresh" "$@" >"$image.log" 2>&1 ||
        { tail -n 5 "$image.log" >&2; exit 69; }
    tar -C "$fresh" -cf "$image.new" .
}

# fetch URL: print a file.
fetch() { curl -fsSL --retry 3 "$1" || { echo "chroot.sh: the mirror of Debian has no $suite" >&2; exit 69; }; }

if [ ! -e "$image" ]; then
    # The archive of this machine, as apt knows it.
    # shellcheck disable=SC2016 # apt expands these
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk '$2 ~ /^(bullseye|bookworm|trixie|forky|sid)$/ && $3 == "main" { print $1; exit }')
    all=${mirror%/}
    all=${all%/*}
    options=()
    [ -z "$packages" ] || options+=("--include=$packages")
    case $suite in
    jammy | noble)
        fetch "$all/ubuntu/dists/$suite/InRelease" >/dev/null
        # Debian has no key of Ubuntu, and its debootstrap does not know noble, which is made as jammy is.
        options+=(--no-check-gpg)
        debian "$all/ubuntu" /usr/share/debootstrap/scripts/jammy
        ;;
    alpine)
        releases=releases/$(uname -m)
        list=$(fetch "$all/alpine/latest-stable/$releases/latest-releases.yaml")
        read -r branch file sum < <(awk '$1 == "branch:" { branch = $2 } $1 == "file:" { file = $2 }
            $1 == "sha256:" && file ~ /minirootfs/ { print branch, file, $2 }' <<<"$list")
        fetch "$all/alpine/$branch/$releases/$file" >"$image.gz"
        sha256sum --quiet -c <<<"$sum  $image.gz"
        gunzip -c "$image.gz" >"$image.new"
        rm "$image.gz"
        ;;
    *) debian "$mirror" ;;
    esac
    mv "$image.new" "$image"
fi
echo "$image"
