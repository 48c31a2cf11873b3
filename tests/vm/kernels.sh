#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetch Debian kernel packages and unpack them under target/vm; nothing is installed.
#
# usage: kernels.sh [--update] [SERIES]...     SERIES: 6.1 6.12 7.2 (default: all three), 7.2-rt
#
# Without --update a series already unpacked is left alone and the network is not used.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

apt_dir=$vm_dir/apt
keyring_default=/usr/share/keyrings/debian-archive-keyring.gpg

# Where each series lives. trixie-backports keeps older point versions, sid has the newest one
# only until it moves to the next series: search both.
suites_of() {
    case $1 in
    6.1) echo bookworm ;;
    6.12) echo bookworm-backports ;;
    7.2 | 7.2-rt) echo trixie-backports sid ;;
    *) die 64 "unknown kernel series '$1' (known: $all_series 7.2-rt)" ;;
    esac
}

# apt itself reads the machine's sources, so deb822 and one-line files both work.
# Output: URI RELEASE SOURCEFILE, binary index of component main only.
machine_entries() {
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(SOURCESENTRY) $(COMPONENT)' \
        'Created-By: Packages' | awk '$4 == "main" { sub(/:[0-9]+$/, "", $3); print $1, $2, $3 }'
}

find_mirror() {
    machine_entries | awk '
        # The archive proper: a codename or suite of Debian without -security, -updates, ...
        $2 ~ /^(bookworm|trixie|forky|sid|oldstable|stable|testing|unstable)$/ { print $1, $3; exit }'
}

# A key ring file named in the file the mirror came from, else the one of debian-archive-keyring.
find_keyring() {
    named=$(sed -n -e 's/^[Ss]igned-[Bb]y:[[:space:]]*\(\/[^,[:space:]]*\).*/\1/p' \
        -e 's/^deb .*[[ ]signed-by=\(\/[^],[:space:]]*\).*/\1/p' "$1" | head -n 1)
    for ring in "$named" "$keyring_default"; do
        [ -n "$ring" ] && [ -r "$ring" ] && { echo "$ring"; return; }
    done
    die 69 "no Debian key ring found: install the package debian-archive-keyring"
}

# Security updates of bookworm are in a separate archive, if the machine knows it.
write_sources() {
    for suite in $all_suites; do
        echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main"
    done
    machine_entries | awk -v ring="$keyring" '$2 == "bookworm-security" {
        print "deb [arch=amd64 signed-by=" ring "] " $1 " " $2 " main"; exit }'
}

# The machine's apt.conf (proxy and the like) stays in force, only the paths differ.
private_apt() {
    tool=$1
    shift
    "$tool" -q -o Dir::State::lists="$apt_dir/lists" -o Dir::Cache="$apt_dir/cache" \
        -o Dir::Etc::sourcelist="$apt_dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o Acquire::Languages=none -o APT::Architecture=amd64 "$@"
}

# Any warning is an error: apt-get update succeeds with a suite missing otherwise.
apt_update() {
    mkdir -p "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial"
    write_sources >"$apt_dir/sources.list"
    private_apt apt-get -o APT::Update::Error-Mode=any update >"$apt_dir/update.log" 2>&1
}

# Suites signed by keys this machine does not have yet: a suite that does verify may carry a newer
# debian-archive-keyring, so trust is handed on and never assumed.
newer_keyring() {
    note "a suite is signed by keys missing from $keyring; trying a newer debian-archive-keyring"
    (cd "$apt_dir" && rm -f debian-archive-keyring_*.deb &&
        private_apt apt-get download debian-archive-keyring >>update.log 2>&1) || return 1
    rm -rf "$apt_dir/keyring"
    dpkg-deb -x "$apt_dir"/debian-archive-keyring_*.deb "$apt_dir/keyring"
    newer=$(find "$apt_dir/keyring" -name 'debian-archive-keyring.*' -type f | head -n 1)
    [ -n "$newer" ] && keyring=$newer
}

refresh_lists() {
    apt_update && return
    if grep -q NO_PUBKEY "$apt_dir/update.log" && newer_keyring && apt_update; then
        return
    fi
    cat "$apt_dir/update.log" >&2
    grep -q NO_PUBKEY "$apt_dir/update.log" &&
        die 69 "a suite's key is in no key ring here: install a newer debian-archive-keyring"
    die 69 "apt-get update failed for: $all_suites (full text above)"
}

# Newest Debian kernel release string of a series, e.g. 6.1.0-50-cloud-amd64 (with -rt: PREEMPT_RT). 6.x packages are
# linux-image-* with everything inside (signed, or -unsigned when signing lags behind); from 7.1
# the image proper is in linux-binary-*.
newest_release() {
    escaped=$(printf %s "${1%-rt}" | sed 's/\./\\./g')
    case $1 in *-rt) flavour=rt ;; *) flavour=cloud ;; esac
    private_apt apt-cache pkgnames | grep -E \
        "^linux-(image|binary)-$escaped(\.[0-9]+)?([+.-][0-9a-z.+]+)*-$flavour-amd64(-unsigned)?\$" |
        sed -E 's/^linux-(image|binary)-//; s/-unsigned$//' | sort -Vu | tail -n 1
}

# Package names that hold the vmlinuz and the modules of a release.
packages_of() {
    names=$(private_apt apt-cache pkgnames)
    has() { printf '%s\n' "$names" | grep -Fxq "$1"; }
    if has "linux-modules-$1"; then
        echo "linux-binary-$1 linux-modules-$1 linux-base-$1" # base: the list of built-in modules
    elif has "linux-image-$1"; then
        echo "linux-image-$1"
    elif has "linux-image-$1-unsigned"; then
        echo "linux-image-$1-unsigned"
    else
        die 69 "no installable package for kernel $1"
    fi
}

unpack() {
    for deb in "$1"/debs/*.deb; do
        dpkg-deb -x "$deb" "$1/root"
    done
    # Old packages have /lib, newer ones /usr/lib.
    for modules in "$1/root/usr/lib/modules/$2" "$1/root/lib/modules/$2"; do
        [ -d "$modules/kernel" ] || continue
        mkdir -p "$1/lib/modules"
        mv "$modules" "$1/lib/modules/$2"
    done
    [ -d "$1/lib/modules/$2" ] || die 70 "no modules in the packages of $2"
    # /boot/vmlinuz-RELEASE, or vmlinuz beside the modules.
    image=$(find "$1/root" "$1/lib" -type f \( -name "vmlinuz-$2" -o -name vmlinuz \) | head -n 1)
    [ -n "$image" ] || die 70 "no vmlinuz in the packages of $2"
    mv "$image" "$1/vmlinuz"
    # Decompressing once here saves it in every guest (a software CPU is slow at xz).
    find "$1/lib/modules" -name '*.ko.xz' -exec xz -d {} +
    find "$1/lib/modules" -name '*.ko.zst' -exec zstd -q -d --rm {} +
    depmod -b "$1" "$2"
    rm -rf "$1/root" "$1/debs"
    echo "$2" >"$1/release"
}

# Built beside and renamed at the end: an interrupted run leaves nothing that appears complete.
fetch() {
    dir=$(kernel_dir "$1")
    release=$(newest_release "$1")
    [ -n "$release" ] || die 69 "no kernel of series $1 in: $(suites_of "$1")"
    if [ -e "$dir/release" ] && [ "$(cat "$dir/release")" = "$release" ]; then
        note "$1: $release is the newest"
        return
    fi
    packages=$(packages_of "$release")
    new=$dir.new
    rm -rf "$new"
    mkdir -p "$new/debs"
    note "$1: fetching $packages"
    # shellcheck disable=SC2086 # a list of names
    (cd "$new/debs" && private_apt apt-get download $packages) >"$vm_dir/download.log" 2>&1 || {
        cat "$vm_dir/download.log" >&2
        die 69 "download of $packages failed"
    }
    unpack "$new" "$release"
    rm -rf "$dir"
    mv "$new" "$dir"
    note "$1: $release in $dir"
}

update=
[ "${1-}" = --update ] && { update=1; shift; }
# shellcheck disable=SC2086 # a list of names
[ $# -gt 0 ] || set -- $all_series

missing=
for series; do
    suites_of "$series" >/dev/null
    { [ -z "$update" ] && [ -e "$(kernel_dir "$series")/release" ]; } || missing="$missing $series"
done
[ -n "$missing" ] || exit 0

need apt-get apt-cache dpkg-deb depmod xz zstd
all_suites=$(for series in $missing; do suites_of "$series"; done | tr ' ' '\n' | sort -u | tr '\n' ' ')
entry=$(find_mirror)
[ -n "$entry" ] || die 69 "no Debian archive in this machine's apt sources"
mirror=${entry%% *}
keyring=$(find_keyring "${entry#* }")
refresh_lists
for series in $missing; do
    fetch "$series"
done
