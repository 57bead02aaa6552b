//go:build tools

// Package tools pins the kwok that plays nodes without machines.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
