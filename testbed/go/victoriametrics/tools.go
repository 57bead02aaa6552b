//go:build tools

// Package tools pins the PromQL server that is not Prometheus.
package tools

import _ "github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics"
