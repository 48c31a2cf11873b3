// SPDX-License-Identifier: MIT OR Apache-2.0
module emud.test/grafana

go 1.21

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
