#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Print the folder of Debian's prometheus and promtool. They are unpacked below target/ and not
# installed: the package would start a server.
#
# usage: prometheus.sh
set -eu

cd "$(dirname "$0")/.."
folder=$PWD/target/prometheus
if [ ! -x "$folder/usr/bin/promtool" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    cd "$folder"
    apt-get download -qq prometheus >&2
    dpkg-deb --extract prometheus_*.deb .
    rm prometheus_*.deb
fi
echo "$folder/usr/bin"
