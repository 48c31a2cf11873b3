// SPDX-License-Identifier: Apache-2.0

// The API server of Kubernetes, as its own program is: this module gives its parts their versions.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
