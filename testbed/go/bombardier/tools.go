//go:build tools

// Package tools pins the HTTP load generator of the benchmarks.
package tools

import _ "github.com/codesenberg/bombardier"
