#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run every check that needs neither root nor a kernel feature. Each job prints its name and
# time; all run, even if an earlier one failed. The last line is the sum: "N passed, N failed".
#
# usage: check.sh
#
# A job that runs Rust tests counts those; any other counts as one (tests/jobs.sh).
# shellcheck disable=SC2317 # jobs call the functions
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

. tests/jobs.sh

clang_format() { clang-format --dry-run -Werror bpf/*.[ch] bpf/{abi,aqm}/*.h monitor/bpf/*.[ch]; }

# A header includes what it needs, so that the order of others does not matter.
headers() {
    printf '%s\n' bpf/*.h bpf/{abi,aqm}/*.h |
        xargs -P "$(nproc)" -I HEADER "${CLANG:-clang}" -target bpf -fsyntax-only -Werror=implicit -Wno-undefined-internal \
            -I "/usr/include/$(uname -m)-linux-gnu" -include HEADER -x c /dev/null
}

# Private items too: a link between two of them breaks as easily as a public one.
rustdoc() {
    RUSTDOCFLAGS='-D warnings' \
        cargo doc --locked --workspace --no-deps --document-private-items
}

shell_scripts() {
    local scripts
    mapfile -t scripts < <(find tests benches packaging kubernetes src -name '*.sh' -not -path '*/target/*')
    shellcheck "${scripts[@]}" .ci/run
}

# Advisories need a current database. Without one, this is neither a pass nor a failure.
advisories() {
    local began=$SECONDS reason
    if reason=$(timeout 60 cargo deny --log-level error fetch db 2>&1 </dev/null); then
        job advisories cargo deny --workspace --locked check advisories
        return
    fi
    reason=$(grep -v '^[[:space:]]*$' <<<"$reason" | tail -n 1)
    unchecked+=("advisories: not checked: cannot fetch the RustSec database: ${reason:-no answer in 60 s}")
    echo "=== advisories"
    echo "${unchecked[-1]}"
    echo "=== advisories: not checked, $((SECONDS - began)) s"
    echo
}

# What a user builds, with the oldest Rust that Cargo.toml promises. rustup installs it the first time.
# Without rustup or a network, this is neither a pass nor a failure.
oldest_rust() {
    local version
    version=$(sed -n 's/^rust-version = "\(.*\)"$/\1.0/p' Cargo.toml)
    if ! cargo "+$version" --version &>/dev/null &&
        ! timeout 300 rustup toolchain install "$version" --profile minimal --no-self-update &>/dev/null; then
        unchecked+=("oldest-rust: not checked: rustup cannot install Rust $version")
        echo "=== oldest-rust"
        echo "${unchecked[-1]}"
        echo
        return
    fi
    job oldest-rust cargo "+$version" check --locked --target-dir "${CARGO_TARGET_DIR:-target}/oldest-rust"
}

# The programs and bindings in the crates are those of this tree; `make dist` installs emud from them.
crates() (
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    packaging/crates.sh --compare "${CARGO_TARGET_DIR:-target}/debug" "$made"
)

job rustfmt cargo fmt --all --check
job rustfmt-kubernetes cargo fmt --manifest-path kubernetes/Cargo.toml --check
job clang-format clang_format
job headers headers
job shellcheck shell_scripts
job style tests/style.sh
job deny cargo deny --workspace --locked check -D warnings licenses bans sources
job deny-kubernetes cargo deny --manifest-path kubernetes/Cargo.toml --config kubernetes/deny.toml --locked \
    check -D warnings licenses bans sources
advisories
job clippy cargo clippy --locked --workspace --all-targets -- -D warnings
# A separate program, under another licence.
job clippy-kubernetes cargo clippy --locked --manifest-path kubernetes/Cargo.toml --all-targets -- -D warnings
job rustdoc rustdoc
job doc cargo test --locked --doc
oldest_rust
job unit cargo test --locked --workspace --lib --bins
job unit-kubernetes cargo test --locked --manifest-path kubernetes/Cargo.toml --lib --bins
job pure cargo test --locked --test pure
# Built for the tests above.
job crates crates
job docs tests/docs.sh "${CARGO_TARGET_DIR:-target}/debug/emud"

finish
