#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Build the initramfs of a test guest.
#
# usage: initramfs.sh SERIES OUT [SRC[:DST]]...
#
# SRC is a file or folder of this machine, DST its absolute path in the guest (a trailing slash:
# keep the name; default /root/NAME). Programs take the shared libraries they need along.
# The part that is the same for all guests of a kernel is kept in target/vm.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

# iproute2's distributions for netem and its name tables sit outside the programs.
programs='dash bash ip tc ping iperf3 ethtool kmod'
modules='virtio_net veth ifb tun vxlan dummy 8021q bridge team macvlan nft_chain_nat nft_masq pktgen zram null_blk tcp_bbr esp4 xfrm_user authenc crypto_null sctp'
kmod_names='modprobe insmod rmmod lsmod modinfo depmod'

[ $# -ge 2 ] || die 64 "usage: initramfs.sh SERIES OUT [SRC[:DST]]..."
series=$1
out=$2
shift 2
kernel=$(kernel_dir "$series")
[ -e "$kernel/release" ] || die 66 "kernel $series is not there: run kernels.sh $series"
release=$(cat "$kernel/release")
# shellcheck disable=SC2086 # a list of names
need busybox cpio ldd strip depmod modprobe $programs

# libraries_of FILE: absolute paths of the shared libraries and the loader; none when static.
libraries_of() {
    ldd "$1" 2>/dev/null | awk '
        /not found/ { print $1 " not found" | "cat >&2"; bad = 1 }
        $2 == "=>" && $3 ~ /^\// { print $3; next }
        $1 ~ /^\// { print $1 }
        END { exit bad }' || die 66 "$1 needs a library this machine lacks"
}

is_elf() { [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; }

# add FILE STAGE DEST: with libraries, which keep their path because the loader searches there.
add() {
    mkdir -p "$2$(dirname "$3")"
    is_elf "$1" || {
        cp -L --preserve=mode "$1" "$2$3"
        return 0
    }
    # Line tables are most of a test program, and a slow CPU has to unpack them.
    strip -S -o "$2$3" "$1"
    libraries=$(libraries_of "$1") || exit
    for library in $libraries; do
        [ -e "$2$library" ] && continue
        # Already in the part common to all guests.
        [ "$2" != "$base_stage" ] && [ -e "$base_stage$library" ] && continue
        mkdir -p "$2$(dirname "$library")"
        cp -L --preserve=mode "$library" "$2$library"
    done
}

# pack STAGE: owned by root, independent of the user. A folder of mktemp would be closed to other users.
pack() { chmod 755 "$1" && (cd "$1" && find . -print0 | sort -z | cpio --null -o -H newc -R 0:0 --quiet); }

# Merged /usr as on Debian, so both paths of a file work.
make_tree() {
    for dir in bin sbin lib lib64; do
        mkdir -p "$1/usr/$dir"
        ln -s "usr/$dir" "$1/$dir"
    done
    for dir in dev proc sys run tmp root etc mnt var/lib; do mkdir -p "$1/$dir"; done
    ln -s ../run "$1/var/run"
    ln -s ../proc/self/mounts "$1/etc/mtab"
    echo 'root:x:0:0:root:/root:/bin/sh' >"$1/etc/passwd"
    echo 'root:x:0:' >"$1/etc/group"
    echo '127.0.0.1 localhost guest' >"$1/etc/hosts"
}

add_programs() {
    for program in $programs; do
        path=$(command -v "$program")
        add "$path" "$1" "/usr/bin/$program"
    done
    ln -s dash "$1/usr/bin/sh"
    # The kernel requests modules through /sbin/modprobe.
    for name in $kmod_names; do ln -s ../bin/kmod "$1/usr/sbin/$name"; done
    cp -RL /etc/iproute2 "$1/etc/iproute2"
    for dist in /usr/lib/tc/*.dist /usr/lib/*/tc/*.dist; do
        [ -e "$dist" ] || continue
        mkdir -p "$1$(dirname "$dist")"
        cp -L "$dist" "$1$dist"
    done
    # A real program of the same name wins over busybox.
    cp -L "$(command -v busybox)" "$1/usr/bin/busybox"
    for applet in $(busybox --list); do
        [ -e "$1/usr/bin/$applet" ] || [ -e "$1/usr/sbin/$applet" ] || ln -s busybox "$1/usr/bin/$applet"
    done
}

# Every scheduler, classifier and action plus $modules, with what they depend on, and what zram
# compresses with where that is a module; the kernel then loads what is used by itself, as on a real
# machine.
add_modules() {
    tree=$kernel/lib/modules/$release/kernel
    wanted="$modules $(find "$tree/net/sched" -name '*.ko' -exec basename {} .ko \;)"
    wanted="$wanted $(find "$tree/crypto" -name lzo-rle.ko -exec basename {} .ko \;)"
    mkdir -p "$1/usr/lib/modules/$release"
    # shellcheck disable=SC2086 # a list of names
    modprobe -d "$kernel" -S "$release" --show-depends -a $wanted |
        awk '$1 == "insmod" { print $2 }' | sort -u >"$base.modules"
    [ -s "$base.modules" ] || die 70 "no modules found for $release"
    while read -r path; do
        relative=${path#*"/lib/modules/$release/"}
        mkdir -p "$1/usr/lib/modules/$release/$(dirname "$relative")"
        cp "$path" "$1/usr/lib/modules/$release/$relative"
    done <"$base.modules"
    for table in order builtin builtin.modinfo; do
        cp "$kernel/lib/modules/$release/modules.$table" "$1/usr/lib/modules/$release/"
    done
    depmod -b "$1" "$release"
}

# What the common part is made of; another value means it is stale.
base_key() {
    # shellcheck disable=SC2046,SC2086 # lists of names
    stat -L -c '%n %s %Y' "$here/initramfs.sh" "$here/common.sh" "$here/guest-init.sh" \
        "$kernel/release" $(command -v $programs busybox)
}

build_base() {
    rm -rf "$base_stage" "$base.key"
    make_tree "$base_stage"
    add_programs "$base_stage"
    add_modules "$base_stage"
    cp "$here/guest-init.sh" "$base_stage/init"
    chmod 755 "$base_stage/init"
    pack "$base_stage" >"$base.cpio"
    base_key >"$base.key"
}

base=$kernel/base
base_stage=$kernel/base.d
# Two runs at once must not build it twice in the same folder.
exec 9>"$kernel/lock"
flock 9
if ! [ -e "$base.key" ] || [ "$(base_key)" != "$(cat "$base.key")" ]; then
    build_base
fi
flock -u 9

extra_stage=$(mktemp -d "$vm_dir/extra.XXXXXX")
trap 'rm -rf "$extra_stage"' EXIT
make_tree "$extra_stage"
for spec; do
    source=${spec%%:*}
    [ -e "$source" ] || die 66 "no such file: $source"
    name=$(basename "$source")
    case $spec in
    *:*/) dest=${spec#*:}$name ;;
    *:*) dest=${spec#*:} ;;
    *) dest=/root/$name ;;
    esac
    case $dest in /*) ;; *) die 64 "not an absolute path in the guest: $dest" ;; esac
    if [ -d "$source" ]; then
        (cd "$source" && find . -type f) >"$extra_stage.list"
        while read -r file; do
            add "$source/$file" "$extra_stage" "$dest/${file#./}"
        done <"$extra_stage.list"
        rm -f "$extra_stage.list"
    else
        add "$source" "$extra_stage" "$dest"
    fi
done
# The kernel unpacks concatenated archives in order.
{ cat "$base.cpio" && pack "$extra_stage"; } >"$out"
