package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// placesOf are the places of a command line that may have values: its commands,
// and their flags with what is said of them.
func placesOf(commands []*cli.Command, parent string, found map[string]string) {
	for _, c := range commands {
		name := strings.TrimSpace(parent + " " + c.Name)
		found[name] = c.ArgsUsage
		for _, f := range c.Flags {
			flag := "--" + f.Names()[0]
			if doc, ok := f.(cli.DocGenerationFlag); ok {
				found[name+" "+flag] = doc.GetUsage()
				found[flag] += " " + doc.GetUsage()
			}
		}
		placesOf(c.Subcommands, name, found)
	}
}

func TestValuesAreCompletedWhereTheHelpNamesThem(t *testing.T) {
	places := make(map[string]string)
	placesOf(anApp().Commands, "", places)
	word := regexp.MustCompile(`[A-Za-z0-9][\w-]*`)
	for at, of := range completionValues() {
		usage, ok := places[at]
		if !ok {
			t.Errorf("values are offered at %q, which isn't there", at)
			continue
		}
		if len(of()) == 0 {
			t.Errorf("%s has no values", at)
		}
		if strings.HasSuffix(at, "--policy") || strings.HasSuffix(at, "--base") ||
			strings.HasSuffix(at, "--gpu-model") || at == "gpus" || at == "jobs --state" {
			continue // too many for a line of help
		}
		named := word.FindAllString(usage, -1)
		for _, value := range of() {
			if value != "knapsack" && !slices.Contains(named, value) {
				t.Errorf("%s: %s is offered, and the help is %q", at, value, usage)
			}
		}
	}
}
