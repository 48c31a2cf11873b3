#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Install the Debian package in a fresh, minimal system, attach a link in a separate network namespace, and remove both.
# Then the same with the archive, which alone is tried in a system without dpkg. Prints the time from the empty system to
# the link. The kernel is that of this machine. Needs root and debootstrap.
#
# usage: try.sh SUITE PACKAGE ARCHIVE
set -euo pipefail

suite=${1:?usage: try.sh SUITE PACKAGE ARCHIVE}
package=$(realpath -- "${2:?usage: try.sh SUITE PACKAGE ARCHIVE}")
archive=$(realpath -- "${3:?usage: try.sh SUITE PACKAGE ARCHIVE}")

if [ -z "${EMUD_TRY_INSIDE-}" ]; then
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    image=$(packaging/chroot.sh "$suite")
    EMUD_TRY_INSIDE=$image exec unshare --net --mount --pid --fork --kill-child -- "$0" "$suite" "$package" "$archive"
fi

system=$(mktemp -d)
trap 'umount -lR "$system"; rmdir "$system"' EXIT
# In memory: an empty system, whatever the disk does.
mount -t tmpfs -o size=2G tmpfs "$system"
tar -C "$system" -xf "$EMUD_TRY_INSIDE"
mount -t proc proc "$system/proc"
# The number of CPUs is there.
mount -t sysfs sysfs "$system/sys"
mount --rbind /dev "$system/dev"
mount --make-rslave "$system/dev"
mount -t tmpfs tmpfs "$system/run"
# The system has no ip.
ip link set lo up
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
cp "$package" "$system/root/emud.deb"

inside() { chroot "$system" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"; }

# unit FILE: the programs that a unit starts are there.
unit() {
    local program found=
    while IFS= read -r program; do
        [ -x "$system$program" ] || { echo "try.sh: $1 starts $program, which is not there" >&2; exit 1; }
        found=1
    done < <(sed -n 's/^Exec[A-Za-z]*=-\?\([^ ]*\).*/\1/p' "$system$1")
    [ -n "$found" ]
}

# since TIME: print the time from the empty system to the link.
since() {
    local took=$((${EPOCHREALTIME/./} - $1))
    echo "$suite: from the empty system to the link in $((took / 1000)) ms"
    [ "$took" -lt 10000000 ] || { echo "try.sh: more than 10 s" >&2; exit 1; }
}

units=(emud@ emud-metrics emud-watch)
if [ -x "$system/usr/bin/dpkg" ]; then
    began=${EPOCHREALTIME/./}
    inside dpkg -i /root/emud.deb >/dev/null
    inside emud attach v0 --profile lte
    since "$began"
    [ "$(inside emud list)" != "" ]
    inside emud show v0 | grep -q 'lte'
    inside emud set v0 down.delay=80ms >/dev/null
    inside emud detach v0 >/dev/null
    attached=$(inside emud list)
    [ -z "$attached" ]
    # minbase keeps documentation; what is not there was not packed.
    for file in man/man1/emud-attach.1.gz man/man5/emud-profile.5.gz man/man5/emud-scenario.5.gz man/man5/emud-log.5.gz \
        bash-completion/completions/emud zsh/site-functions/_emud fish/vendor_completions.d/emud.fish \
        doc/emud/copyright doc/emud/LICENSES/BSD-2-Clause.txt doc/emud/THIRD-PARTY doc/emud/README.md \
        doc/emud/docs/log.schema.json doc/emud/docs/shared.toml; do
        [ -e "$system/usr/share/$file" ] || { echo "try.sh: no /usr/share/$file" >&2; exit 1; }
    done
    for name in "${units[@]}"; do unit "/usr/lib/systemd/system/$name.service"; done
    [ -d "$system/etc/emud" ]
    inside dpkg --purge emud >/dev/null
    [ ! -e "$system/usr/bin/emud" ]
fi
began=${EPOCHREALTIME/./}
tar -C "$system/usr/local" --strip-components=1 -xf "$archive"
[ -s "$system/usr/local/share/doc/emud/THIRD-PARTY" ]
inside emud attach v0 --profile dsl
since "$began"
[ "$(inside emud list)" != "" ]
for name in "${units[@]}"; do unit "/usr/local/lib/systemd/system/$name.service"; done
inside emud detach v0 >/dev/null
