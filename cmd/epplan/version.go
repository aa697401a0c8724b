package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/urfave/cli/v2"
)

// version is set by the linker in make build.
var version = "devel"

func versionCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version",
		Description: "Example: epplan version --json",
		Flags:       []cli.Flag{jsonFlag()},
		Action: t.runs(takesNone(func(t *terminal, c *cli.Context) error {
			return printVersion(t, c.Bool("json"))
		})),
	}
}

func printVersion(t *terminal, asJSON bool) error {
	return t.print(func(w io.Writer) error {
		if asJSON {
			return json.NewEncoder(w).Encode(struct {
				Version string `json:"version"`
				Go      string `json:"go"`
			}{version, runtime.Version()})
		}
		_, err := fmt.Fprintf(w, "epplan %s (%s)\n", version, runtime.Version())
		return err
	})
}
