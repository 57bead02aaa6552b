// Command grafana holds dashboards against Grafana's schema, as the Grafana Foundation SDK has it.
//
// For each file it prints the faults: fields that the schema does not know, fields that are missing,
// values of another type or outside of what is allowed, in the dashboard, its panels' options and
// their queries. It exits with 1 where there is one.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	status := 0
	for _, name := range os.Args[1:] {
		if err := check(name); err != nil {
			fmt.Printf("%s: %s\n", name, err)
			status = 1
		}
	}
	os.Exit(status)
}

func check(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var found dashboard.Dashboard
	if err := some(found.UnmarshalJSONStrict(text)); err != nil {
		return err
	}
	return some(found.Validate())
}

// some returns an error only if there is one: the SDK also returns empty lists of them.
func some(err error) error {
	var faults cog.BuildErrors
	if errors.As(err, &faults) && len(faults) == 0 {
		return nil
	}
	return err
}
