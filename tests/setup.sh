#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Get what a fresh Debian 12 with Rust lacks, by package name; what is there is left alone.
#
# usage: setup.sh build|check|demo|fleet|bench|test|full|dist
# (check, demo, fleet and dist include build, bench and test include demo, full includes test)
set -eu

# clang-19: the object of engine qdisc needs 15 or later; make to zlib1g-dev: libbpf, which loads it.
build='gcc libc6-dev linux-libc-dev clang llvm libclang-dev libbpf-dev clang-19 make pkg-config libelf-dev zlib1g-dev'
demo='bash iproute2 iputils-ping iperf3 jq ethtool procps'
guests='qemu-system-x86 busybox-static dash kmod cpio xz-utils zstd debian-archive-keyring'
# Another emulator, to compare engine hold with.
beside='vde2'
containers='podman runc conmon netavark iptables'
store='etcd-server etcd-client openssl'
# A screen for emud top.
screen='tmux'
# Routing daemons on a medium.
routing='babeld bird2'
# For published experiments: a client of BitTorrent, its tracker and its files; system calls.
published='aria2 opentracker mktorrent strace'
# musl-tools: C code in a static binary; autoconf to gawk: its libelf.
dist='musl-tools autoconf automake autopoint gettext flex bison gawk debootstrap podman runc conmon groff-base xz-utils binutils jq'
check='clang-format bpftool python3-jsonschema'
# git fetches the advisory database, jq reads what the examples of docs/ print; pure tests check schemas.
lint='clang-format shellcheck codespell jq git ca-certificates python3-jsonschema'

die() {
    echo "setup.sh: $*" >&2
    exit 69
}

installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

# packages NAME...: install those that are missing, in one go.
packages() {
    missing=
    for package; do installed "$package" || missing="$missing $package"; done
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || die "missing:$missing (run as root, or install them)"
    echo "setup.sh: installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a list of names
    apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 && return
    # The package lists may be missing or old.
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -qq -y --no-install-recommends $missing >/dev/null
}

component() {
    cargo "$1" --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || die "cargo $1 is missing: install $2 of your Rust"
    rustup component add "$2"
}

command -v apt-get >/dev/null || die "this needs Debian 12 or a relative of it"
command -v cargo >/dev/null || die "no cargo on PATH or in ~/.cargo/bin: install Rust 1.88 or later"
case ${1-} in
build) needed="$build" ;;
demo) needed="$build $demo" ;;
fleet) needed="$build $demo $store" ;;
check) needed="$build $lint" ;;
bench) needed="$build $demo $guests $beside" ;;
test) needed="$build $demo $guests $check" ;;
full) needed="$build $demo $guests $check $containers $store $screen $routing $published" ;;
dist) needed="$build $guests $dist" ;;
*)
    echo "usage: setup.sh build|check|demo|fleet|bench|test|full|dist" >&2
    exit 64
    ;;
esac
# shellcheck disable=SC2086 # a list of names
packages $needed
case $1 in check | test | full)
    component fmt rustfmt
    component clippy clippy
    ;;
esac
if [ "$1" = dist ]; then
    if command -v rustup >/dev/null; then rustup target add "$(uname -m)-unknown-linux-musl"; fi
    if ! cargo deb --version >/dev/null 2>&1; then
        echo "setup.sh: installing cargo-deb"
        cargo install --quiet --locked cargo-deb || die "cargo-deb is missing and cannot be installed"
    fi
fi
if [ "$1" = check ] && ! cargo deny --version >/dev/null 2>&1; then
    echo "setup.sh: installing cargo-deny"
    cargo install --quiet --locked cargo-deny || die "cargo-deny is missing and cannot be installed"
fi
