//go:build tools

// Package tools pins the etcd that keeps the test cluster's state.
package tools

import _ "go.etcd.io/etcd/server/v3"
