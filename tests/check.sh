#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run every check that needs neither root nor a kernel feature. Each stage prints its name and
# time; all run, even if an earlier one failed. The last line is the sum: "N passed, N failed".
#
# usage: check.sh
#
# A stage that runs Rust tests counts those; any other counts as one.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

export CARGO_TERM_COLOR=never
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
passed=0
failed=0
broken=()
unchecked=()

# stage NAME COMMAND...
stage() {
    local name=$1 began=$SECONDS status=0 good bad
    shift
    echo "=== $name"
    "$@" </dev/null 2>&1 | tee "$log" || status=$?
    read -r good bad < <(awk '/^test result: / { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log")
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1 # it broke before or after its tests
    elif [ "$status" -eq 0 ] && ! grep -q '^test result: ' "$log"; then
        good=1
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    [ "$bad" -eq 0 ] || broken+=("$name")
    echo "=== $name: $good passed, $bad failed, $((SECONDS - began)) s"
    echo
}

clang_format() { clang-format --dry-run -Werror bpf/*.[ch] monitor/bpf/*.[ch]; }

# Private items too: a link between two of them breaks as easily as a public one.
rustdoc() {
    RUSTDOCFLAGS='-D warnings' \
        cargo doc --locked --workspace --no-deps --document-private-items
}

shell_scripts() {
    local scripts
    mapfile -t scripts < <(find tests benches -name '*.sh')
    shellcheck "${scripts[@]}" .ci/run
}

# Advisories need a current database. Without one, this is neither a pass nor a failure.
advisories() {
    local began=$SECONDS reason
    if reason=$(timeout 60 cargo deny --log-level error fetch db 2>&1 </dev/null); then
        stage advisories cargo deny --workspace --locked check advisories
        return
    fi
    reason=$(grep -v '^[[:space:]]*$' <<<"$reason" | tail -n 1)
    unchecked+=("advisories: not checked: cannot fetch the RustSec database: ${reason:-no answer in 60 s}")
    echo "=== advisories"
    echo "${unchecked[-1]}"
    echo "=== advisories: not checked, $((SECONDS - began)) s"
    echo
}

stage rustfmt cargo fmt --all --check
stage clang-format clang_format
stage shellcheck shell_scripts
stage deny cargo deny --workspace --locked check -D warnings licenses bans sources
advisories
stage clippy cargo clippy --locked --workspace --all-targets -- -D warnings
stage rustdoc rustdoc
stage unit cargo test --locked --workspace --lib --bins
stage pure cargo test --locked --test pure

echo "total $((SECONDS / 60)) min $((SECONDS % 60)) s"
[ ${#unchecked[@]} -eq 0 ] || printf '%s\n' "${unchecked[@]}"
[ ${#broken[@]} -eq 0 ] || printf 'failed: %s\n' "${broken[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
