#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Test emud-k8s: its unit tests, then the agent with an API server, in separate namespaces of network,
# mounts and processes.
#
# usage: test.sh [--kube-apiserver] EMUD
#   --kube-apiserver    the API server of Kubernetes, with etcd, instead of tests/server.py
#
# Needs root, iproute2, ping, jq, python3; for --kube-apiserver etcd, openssl, and Go 1.26, which
# gets and builds the server once.
set -euo pipefail

kubernetes=
if [ "${1-}" = --kube-apiserver ]; then kubernetes=1; shift; fi
emud=$(realpath -- "${1:?usage: test.sh [--kube-apiserver] EMUD}")
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ -z "${EMUD_K8S_FOLDER-}" ]; then
    cargo test --locked --lib --bins
    if [ -n "$kubernetes" ]; then
        export EMUD_K8S_APISERVER=$PWD/target/kube-apiserver
        (
            cd tests/apiserver
            version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
            go build -trimpath -o "$EMUD_K8S_APISERVER" \
                -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" .
        )
    fi
    live=$(cargo test --locked --test live --no-run --message-format=json |
        jq -r 'select(.executable and .target.name == "live") | .executable')
    EMUD_K8S_FOLDER=$(mktemp -d)
    export EMUD_K8S_FOLDER EMUD_K8S_LIVE=$live
    status=0
    unshare --net --mount --pid --fork --kill-child -- "$PWD/test.sh" "$emud" || status=$?
    if [ "$status" != 0 ]; then
        echo "--- agent.log" >&2
        tail -n 40 "$EMUD_K8S_FOLDER/agent.log" >&2 || true
    fi
    rm -rf "$EMUD_K8S_FOLDER"
    find /sys/fs/cgroup -depth -type d -path '*/emudtest-kubepods.slice*' -exec rmdir {} \; 2>/dev/null || true
    exit "$status"
fi
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
EMUD_BIN=$emud "$EMUD_K8S_LIVE" --nocapture
