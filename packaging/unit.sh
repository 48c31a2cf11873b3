#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Boot Debian 12 with the package in a guest with kernel 6.1, where systemd runs emud@.service, which follows
# its interface, with engines fq and hold, and emud-metrics and emud-watch. Needs root, debootstrap, qemu.
#
# usage: unit.sh PACKAGE
set -euo pipefail

package=$(realpath -- "${1:?usage: unit.sh PACKAGE}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tests/vm/kernels.sh 6.1
kernel=${EMUD_VM_DIR:-$PWD/target/vm}/kernel-6.1
release=$(cat "$kernel/release")
image=$(packaging/chroot.sh bookworm systemd-sysv,udev,kmod,iproute2)
scratch=$(mktemp -d)
system=$scratch/system
trap 'rm -rf "$scratch"' EXIT

mkdir "$system"
tar -C "$system" --exclude './usr/share/doc' --exclude './usr/share/locale' --exclude './var/cache/apt' \
    --exclude './var/lib/apt' -xf "$image"
dpkg-deb -x "$package" "$system"
dpkg-deb -e "$package" "$system/root/control"
modules=$system/usr/lib/modules/$release
mkdir -p "$modules"
(cd "$kernel/lib/modules/$release" &&
    cp -r --parents kernel/net/{sched,bridge,llc,802} kernel/drivers/net/{veth,ifb,tun}.ko kernel/lib modules.* "$modules/")
depmod -b "$system" "$release"

cat >"$system/root/try" <<'END'
#!/bin/bash
exec >/dev/ttyS0 2>&1
failed() { echo "RESULT FAILED: $*"; systemctl status 'emud@*' --no-pager; systemctl poweroff; exit; }
# within SECONDS COMMAND...: a software CPU beside other jobs is slow.
within() {
    local n
    for ((n = 0; n < $1; n++)); do "${@:2}" && return; sleep 1; done
    return 1
}
listed() { emud list | grep -q "^$1[[:space:]].*$2"; }
inactive() { [ "$(systemctl is-active "$1")" = inactive ]; }

systemd-analyze verify --man=no emud@v0.service || failed verify
echo 'link.delay = "20ms"' >/etc/emud/v0.toml
echo 'link.delay = "30ms"' >/etc/emud/br-lan.toml
systemctl enable emud@v0 "emud@$(systemd-escape br-lan)" || failed enable
ip link add v0 type veth peer name v1
within 120 listed v0 'engine fq' || failed 'v0 has appeared, nothing is attached'
echo 'link.delay = "80ms"' >/etc/emud/v0.toml
# Its programs have ended, but not its start.
within 120 systemctl is-active -q emud@v0
systemctl restart emud@v0 && emud show v0 | grep -q 80ms || failed 'restart does not apply the file'
ip link set v0 down; ip link set v0 name lan0; ip link set lan0 up
within 120 inactive emud@v0 || failed 'active, and v0 has another name'
! listed lan0 || failed 'the link stays under the new name'
ip link set lan0 down; ip link set lan0 name v0; ip link set v0 up
within 120 listed v0 'engine fq' || failed 'v0 has its name again, nothing is attached'
within 120 systemctl is-active -q emud@v0
ip link set v0 down; ip link set v0 name lan0; ip link set lan0 name v0; ip link set v0 up
sleep 2
within 120 listed v0 'engine fq' || failed 'v0 had another name for a moment, nothing is attached'
within 120 systemctl is-active -q emud@v0
ip link del v0; ip link add v0 type veth peer name v1
sleep 2
within 120 listed v0 'engine fq' || failed 'v0 has returned at once, nothing is attached'
within 120 systemctl is-active -q emud@v0
before=$(systemctl show -p MainPID --value emud@v0)
kill -9 "$before"
again() { [ "$(systemctl show -p MainPID --value emud@v0)" != "$before" ] && systemctl is-active -q emud@v0; }
within 120 again && listed v0 'engine fq' || failed 'not attached again after kill -9'
ip link del v0
within 120 inactive emud@v0 || failed 'active without v0'
ip link add v0 type veth peer name v1
within 120 listed v0 'engine fq' || failed 'v0 has returned, nothing is attached'
systemctl stop emud@v0 || failed stop
! listed v0 || failed 'stop does not detach'
echo 'link.delay = "80ms"
[[rule]]
match = { host = "later.test" }
link = "none"' >/etc/emud/v0.toml
systemctl start --no-block emud@v0
tried_again() { [ "$(systemctl show -p NRestarts --value emud@v0)" -ge 1 ]; }
within 120 tried_again || failed 'the name is not resolved, and it is not tried again'
echo '192.0.2.1 later.test' >>/etc/hosts
within 120 listed v0 'engine fq' || failed 'the name is resolved, nothing is attached'
within 120 systemctl is-active -q emud@v0
systemctl stop emud@v0 || failed 'stop after a failure'
modprobe -r sch_fq
rm "/usr/lib/modules/$(uname -r)/kernel/net/sched/sch_fq.ko"
ip link add br-lan type bridge
within 120 listed br-lan 'engine hold' || failed 'br-lan has appeared, nothing is attached'
within 120 systemctl is-active -q 'emud@br\x2dlan'
sleep 5
listed br-lan 'engine hold' || failed 'the holder has ended'
systemctl stop 'emud@br\x2dlan' || failed 'stop of br-lan'
! listed br-lan || failed 'stop does not detach br-lan'
! systemctl is-failed -q 'emud@*' || failed 'a unit has failed'
systemctl start 'emud@br\x2dlan' || failed 'start of br-lan'
emud attach v0 --profile lte || failed 'attach of v0'
ip netns add far
ip -n far link add v0 type veth peer name v1
emud --netns far attach v0 --profile lte || failed 'attach of v0 in far'
systemctl enable --now emud-metrics emud-watch || failed 'enable of the services'
scraped() { (exec 3<>/dev/tcp/127.0.0.1/9109 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && grep -q "$1" <&3); }
within 120 scraped '^emud_link_info{netns="far",interface="v0",profile="lte"' || failed 'no metrics of v0 in far'
# The service has a namespace of mounts, to which later names come, too.
ip netns add later
ip -n later link add v0 type veth peer name v1
emud --netns later attach v0 --profile dsl || failed 'attach of v0 in later'
within 120 scraped '^emud_link_info{netns="later",interface="v0",profile="dsl"' || failed 'no metrics of v0 in later'
# With what emud-watch leaves to attach: the link ends with the service, the one with `emud.for` goes on.
emud --netns far detach v0 && emud --netns later detach v0 || failed 'detach of v0'
sed 's,^ExecStart=.*,ExecStart=/usr/bin/like,' /usr/lib/systemd/system/emud-watch.service >/run/systemd/system/like.service
printf '#!/bin/sh\nemud --netns far attach v0 -p lte --while-pid $$ && emud --netns later attach v0 -p lte --for 10min\nexec sleep 1000' >/usr/bin/like
chmod 755 /usr/bin/like
systemctl daemon-reload && systemctl start like || failed 'start of a service like emud-watch'
in_both() { emud list --all | grep -q '^netns far' && emud list --all | grep -q '^netns later'; }
within 120 in_both || failed 'a service like emud-watch does not attach'
systemctl stop like
in_later() { list=$(emud list --all) && ! grep -q '^netns far' <<<"$list"; }
within 120 in_later || failed 'the link does not end with the service'
emud list --all | grep -q '^netns later' || failed 'the link ends before its time'
[ "$(systemctl show -p NRestarts --value emud-watch)" = 0 ] && systemctl is-active -q emud-watch || failed emud-watch
/root/control/prerm remove
list=$(emud list --all) && [ -z "$list" ] || failed 'a link stays when the package is removed'
! systemctl is-active -q emud-metrics emud-watch || failed 'a service stays when the package is removed'
echo 'RESULT OK'
systemctl poweroff
END
chmod 755 "$system/root/try"
cat >"$system/etc/systemd/system/try.service" <<'END'
[Unit]
After=multi-user.target
[Service]
ExecStart=/root/try
END
wants=$system/etc/systemd/system/multi-user.target.wants
mkdir -p "$wants"
ln -s ../try.service "$wants/try.service"
for unit in getty.target systemd-logind.service apt-daily.timer apt-daily-upgrade.timer; do
    ln -sf /dev/null "$system/etc/systemd/system/$unit"
done
ln -sf /lib/systemd/system/multi-user.target "$system/etc/systemd/system/default.target"
(cd "$system" && find . -print0 | cpio --null -o -H newc --quiet) >"$scratch/initramfs"
rm -rf "$system"

# Its options are those of tests/vm/run.sh.
timeout --kill-after=5 1800 qemu-system-x86_64 -accel tcg,thread=single -cpu max,-cx16 -m 1500 -nodefaults \
    -no-user-config -display none -no-reboot -nic none -kernel "$kernel/vmlinuz" -initrd "$scratch/initramfs" \
    -append "console=ttyS0 rdinit=/lib/systemd/systemd systemd.show_status=0 loglevel=4 panic=-1 tsc=reliable cryptomgr.notests" \
    -serial "file:$scratch/console" </dev/null || true
grep -aqx $'RESULT OK\r*' "$scratch/console" || {
    tail -n 40 "$scratch/console" >&2
    echo "unit.sh: the unit has failed in the guest" >&2
    exit 1
}
echo "emud@.service follows its interface, with engines fq and hold; emud-metrics and emud-watch serve"
