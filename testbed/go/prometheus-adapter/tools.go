//go:build tools

// Package tools pins the adapter that the benchmarks compare the rules of ours with.
package tools

import _ "sigs.k8s.io/prometheus-adapter/cmd/adapter"
