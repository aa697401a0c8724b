package main

import (
	"regexp"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// TestEveryFlagThatNamesAFileToWriteIsKnownAsOne reads the flags' own help: one
// that is to be written but isn't known as such could be written over a file that
// is read.
func TestEveryFlagThatNamesAFileToWriteIsKnownAsOne(t *testing.T) {
	writes := regexp.MustCompile("`FILE`.* to write|(draw|write) .*to `FILE`|`FILE` to (write|draw)")
	found := 0
	var look func(path string, list []*cli.Command)
	look = func(path string, list []*cli.Command) {
		for _, c := range list {
			for _, f := range c.Flags {
				text, ok := f.(*cli.StringFlag)
				if !ok {
					continue
				}
				if wants := writes.MatchString(text.Usage); wants != terminal.IsOutput(f) {
					t.Errorf("%s %s --%s: %q, known as one to write: %v", path, c.Name, text.Name,
						text.Usage, terminal.IsOutput(f))
				} else if wants {
					found++
				}
			}
			look(path+" "+c.Name, c.Subcommands)
		}
	}
	look("epplan",
		anApp().Commands)
	if found < 10 {
		t.Errorf("%d flags name a file to write, want ten or more: the help's words have changed", found)
	}
}
