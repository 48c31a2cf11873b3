#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Check the dashboard in contrib/ by the types of the Grafana Foundation SDK (Apache-2.0), strictly. Needs Go, jq
# and its module proxy.
#
# usage: grafana.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/grafana"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
dashboard=../../contrib/grafana/emud-links.json
go build -o "$scratch/check" .
"$scratch/check" "$dashboard"
# Of each kind that it must find: a dashboard, the options of a panel, a query; an unknown field, a wrong
# type, a missing field.
for mistake in '.panles = []' '.panels[0].options.grphMode = "none"' '.panels[6].targets[0].exrp = ""' \
    '.refresh = 5' '.panels[6].options.tooltip.mode = 1' 'del(.panels[6].options.legend.calcs)'; do
    jq "$mistake" "$dashboard" >"$scratch/wrong.json"
    ! "$scratch/check" "$scratch/wrong.json" 2>/dev/null || { echo "grafana.sh: $mistake is not found" >&2; exit 1; }
done
