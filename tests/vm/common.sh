# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by the scripts here, after setting $here to this folder.
# shellcheck shell=sh disable=SC2034,SC2154

all_series='6.1 6.12 7.2'
vm_dir=${EMUD_VM_DIR:-$(CDPATH='' cd -- "$here/../.." && pwd)/target/vm}

note() { echo "${0##*/}: $*" >&2; }

die() {
    code=$1
    shift
    note "$*"
    exit "$code"
}

# need COMMAND...: complain about all that are missing at once.
need() {
    absent=
    for tool; do
        command -v "$tool" >/dev/null || absent="$absent $tool"
    done
    [ -z "$absent" ] || die 69 "not found:$absent (Debian packages: see tests/vm/README.md)"
}

# built TEST PROGRAM: where cargo builds it for this test; test programs have a hash in their names.
built() {
    cargo test --manifest-path "$here/../../Cargo.toml" --test "$1" --no-run --message-format=json |
        sed -n 's/.*"name":"'"$2"'".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

# benchmark PROGRAM: the same for a benchmark, or emud, as users have it.
benchmark() {
    cargo build --release --manifest-path "$here/../../Cargo.toml" -p emud -p emud-benches --bin suite --bin emud \
        --message-format=json | sed -n 's/.*"name":"'"$1"'".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

# executable FILE...: complain if one is not.
executable() {
    for program; do
        [ -x "$program" ] || die 70 "no test program was built"
    done
}

# kernel_dir SERIES: holds vmlinuz, lib/modules and, once complete, release.
kernel_dir() { echo "$vm_dir/kernel-$1"; }
