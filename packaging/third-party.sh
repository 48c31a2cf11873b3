#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Print the licences of what a static binary contains besides this project's: crates, Rust's standard
# library, musl, and for emud libbpf with the headers that its BPF programs include, libelf and zlib. Needs musl,
# libbpf-dev, jq.
#
# usage: third-party.sh TARGET PACKAGE
#   PACKAGE    emud or emud-k8s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export LC_ALL=C
target=${1:?usage: third-party.sh TARGET PACKAGE}
package=${2:?usage: third-party.sh TARGET PACKAGE}
manifest=Cargo.toml
features=(--features vendored)
[ "$package" = emud ] || { manifest=kubernetes/Cargo.toml; features=(--no-default-features); }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# As dist.sh builds it. Procedural macros, which run on this machine, count: what they write is compiled
# into the binary.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo tree --manifest-path "$manifest" --locked "${features[@]}" --target "$target" -e normal --prefix none --format '{p}' |
    awk '{ print $1 "\t" substr($2, 2) }' | sort -u >"$scratch/contained"
cargo metadata --manifest-path "$manifest" --locked --format-version 1 "${features[@]}" \
    --filter-platform "$target" --filter-platform "$host" |
    jq -r '.packages[] | [.name, .version, .license // "?", .repository // "-", .manifest_path,
        (.authors | join(", ") | if . == "" then "-" else . end), .source // ""] | @tsv' |
    sort -u >"$scratch/all"
missing=$(comm -23 "$scratch/contained" <(cut -f 1,2 "$scratch/all" | sort))
[ -z "$missing" ] || { echo "third-party.sh: cargo metadata has no ${missing//$'\t'/ }" >&2; exit 1; }

# text NAME FILE: identical texts are printed once, after the names of all that have them.
text() {
    local sum
    sum=$(sha256sum <"$2" | cut -d ' ' -f 1)
    [ -e "$scratch/$sum.text" ] || cp "$2" "$scratch/$sum.text"
    echo "$1" >>"$scratch/$sum.names"
}

cat <<END
The binary $package contains the following packages, each under the licence beside its name ("OR": at the
user's option). The texts of the licences follow.

END
while IFS=$'\t' read -r name version licence repository manifest_of authors source; do
    # Packages of this repository are under LICENSE.
    [ -n "$source" ] || continue
    grep -qxF "$name"$'\t'"$version" "$scratch/contained" || continue
    printf '%-44s %s, %s\n' "$name $version" "$licence" "$repository"
    found=
    while IFS= read -r -d '' file; do
        text "$name $version" "$file"
        found=1
    # Shorter ones name a file that the crate may not have.
    done < <(find "$(dirname "$manifest_of")" -type f -size +200c -print0 |
        grep -zEi '/(licen[cs]e|unlicen[cs]e|copying|copyright|notice)[^/]*$' | grep -zEv '\.rs$' | sort -z)
    [ -z "$found" ] || continue
    # Some crates are published without a text.
    case $licence,$authors in
    *Apache-2.0*) text "$name $version" LICENSES/Apache-2.0.txt ;;
    MIT,[!-]*)
        sed "s/^Copyright .*/Copyright (c) $authors/" LICENSES/MIT.txt >"$scratch/mit"
        text "$name $version" "$scratch/mit"
        ;;
    *) echo "third-party.sh: $name $version ($licence) has no text of its licence" >&2; exit 1 ;;
    esac
done <"$scratch/all"

rust=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
sed -E 's/<[^>]*>//g; s/&#60;|&lt;/</g; s/&#62;|&gt;/>/g; s/&#34;|&quot;/"/g; s/&#39;/'\''/g; s/&amp;/\&/g; s/[[:space:]]+$//' \
    "$rust" | cat -s >"$scratch/rust"
text "the standard library of $(rustc --version)" "$scratch/rust"
text "musl (the C library)" /usr/share/doc/musl/copyright
printf '%-44s %s\n' "Rust's standard library" "MIT OR Apache-2.0, and others, below" musl "MIT, below"
if [ "$package" = emud ]; then
    text "libbpf (headers of the BPF programs)" /usr/share/doc/libbpf-dev/copyright
    printf '%-44s %s\n' "libbpf's headers for BPF programs" "BSD-2-Clause OR LGPL-2.1, below" \
        "libbpf, in libbpf-sys" "BSD-2-Clause OR LGPL-2.1, below" \
        "libelf of elfutils, in libbpf-sys" "GPL-2.0-or-later OR LGPL-3.0-or-later, below" \
        "zlib, in libbpf-sys" "Zlib, below"
    echo
    echo "The sources of emud and of these crates are all that is needed to build it with another libelf."
fi

for names in "$scratch"/*.names; do
    printf '\n%s\n' "$(printf '=%.0s' {1..80})"
    cat "$names"
    printf '%s\n\n' "$(printf '=%.0s' {1..80})"
    cat "${names%.names}.text"
done
