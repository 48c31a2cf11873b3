#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Make the crates emud-monitor and emud with compiled BPF programs and bindings in them, and install
# emud from them without clang, with engine qdisc and without.
#
# usage: crates.sh [--compare] BUILT OUTPUT
#   --compare  only make them, and compare their programs and bindings with those of this tree
#   BUILT      folder of a build of this tree, which has compiled the programs
#   OUTPUT     folder for the crates
set -euo pipefail

installs=1
[ "${1-}" != --compare ] || { installs=; shift; }
built=$(realpath -- "${1:?usage: crates.sh [--compare] BUILT OUTPUT}")
output=$(realpath -- "${2:?usage: crates.sh [--compare] BUILT OUTPUT}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Dependencies are built once; the crates themselves are in a new folder each time.
kept=${CARGO_TARGET_DIR:-$PWD/target}/crates
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# compiled PACKAGE OBJECT FOLDER: the newest output of the build script.
compiled() {
    local out
    # shellcheck disable=SC2012 # names of cargo
    out=$(dirname "$(ls -t "$built"/build/"$1"-*/out/"$2" | head -n 1)")
    mkdir -p "$3"
    cp "$out"/*.o "$out"/*.rs "$3/"
}

# Without a repository cargo packs every file, also those that git does not know.
mkdir "$scratch/tree" "$scratch/crates" "$scratch/fresh"
git archive --format tar HEAD | tar -x -C "$scratch/tree"
compiled emud link-all.bpf.o "$scratch/tree/bpf/compiled"
clang=${CLANG:-clang}
# kptr_clang: the one that build.rs takes for engine qdisc.
kptr_clang() {
    local named version
    for named in "$clang" clang-{24..15}; do
        version=$("$named" -dumpversion 2>/dev/null) || continue
        [ "${version%%.*}" -lt 15 ] || { echo "$named"; return; }
    done
}
# compile CLANG SOURCE OBJECT [ARGUMENT]...: as the build scripts do.
compile() {
    "$1" -g -O2 -target bpf -mcpu=v3 "-I/usr/include/$(uname -m)-linux-gnu" "${@:4}" -c "$2" -o "$3"
}
# BUILT may be built without engine qdisc; what is built from the crate has it.
kptr=$(kptr_clang)
qdisc=$scratch/tree/bpf/compiled/qdisc
if [ ! -s "$qdisc.bpf.o" ] && [ -n "$kptr" ]; then
    # Here, as what BUILT has: the type information names the folder.
    compile "$kptr" bpf/qdisc.bpf.c "$qdisc.bpf.o" -DEMUD_SERVES=0
    compile "$kptr" bpf/qdisc.bpf.c "$qdisc-serves.bpf.o" -DEMUD_SERVES=1
fi
[ -s "$qdisc.bpf.o" ] || echo "crates.sh: no clang 15 or later: the crates are without engine qdisc" >&2
compiled emud-monitor monitor.bpf.o "$scratch/tree/monitor/bpf/compiled"
# A crate has the licences beside its Cargo.toml.
cp -r "$scratch"/tree/LICENSE* "$scratch/tree/monitor/"
(cd "$scratch/tree" && cargo package -q --locked --offline --no-verify --allow-dirty -p emud-monitor -p emud --target-dir "$scratch/target")
cp "$scratch"/target/package/*.crate "$output/"

# The programs and bindings in the crates are those of this tree.
for crate in "$output"/*.crate; do tar -C "$scratch/crates" -xf "$crate"; done
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
# same CRATE FOLDER OBJECT SOURCE [ARGUMENT]...: compiled as the build script does. Type information has
# the names of files.
same() {
    local object=$scratch/crates/$1-$version/bpf/compiled/$3
    local by=$clang
    if [ "$4" = qdisc.bpf.c ]; then
        [ -s "$object" ] || return 0
        by=$kptr
    fi
    (cd "$2" && compile "$by" "bpf/$4" "$scratch/fresh/object" "${@:5}")
    llvm-strip -g -o "$scratch/fresh/a" "$scratch/fresh/object"
    llvm-strip -g -o "$scratch/fresh/b" "$object"
    cmp "$scratch/fresh/a" "$scratch/fresh/b"
}
# bound CRATE FOLDER: the bindings in the crate are those that the build script makes of this tree. With CLANG=true it
# compiles nothing.
bound() {
    local script file bound=$scratch/fresh/$1 target
    script=$({ find "$built/build" "$built/../../release/build" -path "*/$1-????????????????/build-script-build" 2>/dev/null || true; } |
        xargs -r ls -t | head -n 1)
    [ -n "$script" ] || { echo "crates.sh: no build script of $1 beside $built" >&2; exit 1; }
    # BUILT may be for another target than this machine's.
    target=$(basename "$(dirname "$built")")
    [[ $target = *-linux-* ]] || target=$(rustc -vV | sed -n 's/^host: //p')
    mkdir "$bound"
    (cd "$2" && OUT_DIR=$bound TARGET=$target CLANG=true "$script" >/dev/null)
    for file in "$bound"/*.rs; do
        cmp "$file" "$scratch/crates/$1-$version/bpf/compiled/$(basename "$file")"
    done
}
for pair in emud:. emud-monitor:monitor; do
    bound "${pair%:*}" "${pair#*:}"
    for source in "${pair#*:}"/bpf/*.bpf.c; do
        source=$(basename "$source")
        case $source in
            link.bpf.c | qdisc.bpf.c) ;;
            *) same "${pair%:*}" "${pair#*:}" "${source%.c}.o" "$source" ;;
        esac
    done
done
same emud . qdisc.bpf.o qdisc.bpf.c -DEMUD_SERVES=0
same emud . qdisc-serves.bpf.o qdisc.bpf.c -DEMUD_SERVES=1
for object in "$scratch/crates/emud-$version"/bpf/compiled/link-*.bpf.o; do
    object=$(basename "$object")
    name=${object#link-}
    # The table of build.rs.
    has=$(sed -n "s/^    (\"${name%.bpf.o}\", \"\([^=]*\)\"),\$/\1/p" build.rs)
    [ -n "$has" ] || { echo "crates.sh: build.rs does not list $object" >&2; exit 1; }
    same emud . "$object" link.bpf.c "-DEMUD_BUILT=($has)"
done

[ -n "$installs" ] || exit 0

# No clang, no libclang. After as and ar: what builds libbpf.
mkdir "$scratch/bin"
for program in cargo rustc cc ld gcc as ar make pkg-config sh awk cat cp \
    cut grep head install ln mkdir rm sed sort tr uname; do
    ! command -v "$program" >/dev/null || ln -s "$(command -v "$program")" "$scratch/bin/$program"
done
# installed [OPTION]
installed() {
    PATH=$scratch/bin CLANG=/nonexistent LIBCLANG_PATH=/nonexistent cargo install -q --debug --no-track --force "$@" \
        --path "$scratch/crates/emud-$version" --root "$scratch/installed" --target-dir "$kept" \
        --config "patch.crates-io.emud-monitor.path=\"$scratch/crates/emud-monitor-$version\""
    "$scratch/installed/bin/emud" --version
    "$scratch/installed/bin/emud" profile check lte
}
installed --no-default-features
installed
# Whatever this kernel supports, and the exit code is.
doctor=$("$scratch/installed/bin/emud" doctor 2>&1 || true)
if [ -s "$scratch/crates/emud-$version/bpf/compiled/qdisc.bpf.o" ] && grep 'was built without' <<<"$doctor"; then
    exit 1
fi
find "$kept/debug" -depth -name '*emud*' -exec rm -r {} +
