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

func (t *terminal) versionCommand() *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version",
		Description: "Example: epplan version --json",
		Flags:       []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := checkArgs(c, 0, 0, "none"); err != nil {
				return err
			}
			return t.printVersion(c.Bool("json"))
		},
	}
}

func (t *terminal) printVersion(asJSON bool) error {
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

func jsonFlag() *cli.BoolFlag { return boolFlag("json", "print JSON") }

func csvFlag() *cli.BoolFlag { return boolFlag("csv", "print CSV") }
