//go:build tools

// Package tools pins the Prometheus and promtool that the tests run.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
