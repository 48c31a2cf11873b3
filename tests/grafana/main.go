// SPDX-License-Identifier: MIT OR Apache-2.0

// Checks a dashboard strictly: unknown fields, missing ones and those of another type are mistakes, also in the
// options of its panels and in their queries.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = dashboard.NewDashboard().UnmarshalJSONStrict(text)
	}
	// The types return an empty list of mistakes, too.
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
