#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Build what users install, into target/dist, and try each: a static binary, a Debian package, images
# of containers, and crates that need no clang. Needs root for the tries.
#
# usage: dist.sh [SUITE...]
#   SUITE    in whose fresh systems the package and the binary are tried (default: bookworm bullseye trixie of Debian,
#            and jammy noble of Ubuntu and alpine if the same mirror has them); `none`: nothing is tried
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suites=("${@:-bookworm}")
[ $# -gt 0 ] || suites=(bookworm bullseye trixie jammy noble alpine)
machine=$(uname -m)
target=$machine-unknown-linux-musl
dist=$PWD/target/dist
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
rm -rf "$dist"
mkdir -p "$dist"

step() { echo "=== $1"; }

# static PROGRAM [OPTION]...: built by cargo; statically linked also where the target's default is not.
static() {
    local program=$1
    shift
    step "static $program"
    CARGO_PROFILE_RELEASE_STRIP=symbols RUSTFLAGS="-C target-feature=+crt-static" \
        cargo build --release --locked --target "$target" --target-dir "$targets" "$@"
    if readelf -l "$built/$program" | grep INTERP; then
        echo "dist.sh: $program needs a dynamic loader" >&2
        exit 1
    fi
}

targets=${CARGO_TARGET_DIR:-$PWD/target}
built=$targets/$target/release
# Engine qdisc's libbpf and elfutils' libelf are built for musl. What they need beside it: the kernel's headers, and
# declarations of functions that elfutils compiles against and libelf does not call.
headers=$targets/$target/headers
mkdir -p "$headers"
ln -sfn /usr/include/linux /usr/include/asm-generic "/usr/include/$machine-linux-gnu/asm" "$headers/"
cp packaging/argp.h "$headers/"
export "CFLAGS_${target//-/_}=-Wno-error -idirafter $headers"
export ac_cv_search_argp_parse='none required' ac_cv_search_fts_close='none required' ac_cv_search__obstack_free='none required'
static emud --features vendored
# Its exit code depends on this kernel.
if ("$built/emud" doctor 2>&1 || true) | grep 'was built without'; then
    echo "dist.sh: the static binary lacks engine qdisc" >&2
    exit 1
fi
name=emud-$version-$machine-linux
packaging/third-party.sh "$target" emud >"$dist/THIRD-PARTY"
# The package is for /usr, the archive for /usr/local: the unit has the path.
for prefix in /usr /usr/local; do
    make -s install EMUD="$built/emud" DESTDIR="$dist/root" PREFIX=$prefix
    cp "$dist/THIRD-PARTY" "$dist/root$prefix/share/doc/emud/"
done
tar -C "$dist/root/usr/local" --owner=0 --group=0 --numeric-owner --sort=name --transform "s,^\.,$name," -cJf "$dist/$name.tar.xz" .

step "man pages and units"
for page in "$dist"/root/usr/share/man/man[15]/*.[15]; do
    said=$(groff -man -ww -W break -z -K utf8 -rLL=78n "$page" 2>&1) || { echo "$page: groff failed" >&2; exit 1; }
    [ -z "$said" ] || { echo "$said" >&2; exit 1; }
done
if command -v systemd-analyze >/dev/null; then
    # It checks that the programs of a unit exist.
    mkdir "$dist/unit"
    for unit in packaging/*.service; do
        file=${unit#*/}
        sed "s,/usr/bin/emud,$built/emud," "$unit" >"$dist/unit/${file/@/@eth0}"
    done
    SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$dist"/unit/*
    rm -r "$dist/unit"
fi

step "Debian package"
cargo deb --no-build --no-strip --target "$target" --output "$dist/"

step "crates"
packaging/crates.sh "$built" "$dist"

if command -v podman >/dev/null; then
    static emud-k8s --manifest-path kubernetes/Cargo.toml
    mkdir "$dist/k8s"
    cp "$built/emud-k8s" "$dist/k8s/"
    packaging/third-party.sh "$target" emud-k8s >"$dist/k8s/THIRD-PARTY"
    step "images"
    packaging/image.sh "$dist/root" "$dist/k8s" "$version" "$dist"
    rm -r "$dist/k8s"
else
    echo "no podman: no images"
fi

if [ "${suites[0]}" != none ]; then
    for suite in "${suites[@]}"; do
        step "try $suite"
        status=0
        packaging/try.sh "$suite" "$dist"/emud_*.deb "$dist/$name.tar.xz" || status=$?
        case $status,$suite in
        0,*) ;;
        69,jammy | 69,noble | 69,alpine) echo "$suite: NOT TRIED" ;;
        *) exit "$status" ;;
        esac
    done
    if [ "$machine" = x86_64 ]; then
        step "try the units"
        packaging/unit.sh "$dist"/emud_*.deb
    fi
fi
rm -rf "$dist/root" "$dist/THIRD-PARTY"
(cd "$dist" && sha256sum -- *.* >SHA256SUMS && cat SHA256SUMS)
