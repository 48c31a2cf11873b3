#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Print the folders of Debian's dockerd, containerd and slirp4netns, as a PATH. They are unpacked below target/ and
# not installed: the packages would start services, and Docker's changes the firewall.
#
# usage: engines.sh
set -eu

cd "$(dirname "$0")/.."
folder=$PWD/target/engines
if [ ! -x "$folder/usr/bin/slirp4netns" ]; then
    rm -rf "$folder" "$folder.new"
    mkdir -p "$folder.new"
    cd "$folder.new"
    apt-get download -qq docker.io containerd slirp4netns >&2
    for package in *.deb; do dpkg-deb --extract "$package" .; done
    rm -- *.deb
    mv "$folder.new" "$folder"
fi
echo "$folder/usr/bin:$folder/usr/sbin"
