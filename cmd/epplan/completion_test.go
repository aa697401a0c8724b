package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/testkit/shareddata"
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

func TestBashIsOfferedWhatMayFollow(t *testing.T) {
	bash, err := exec.LookPath("bash")
	shareddata.Need(t, err == nil, "bash isn't installed")
	const ask = `set -e; eval "$(epplan completion bash)"
ask() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_epplan
	echo "$*: ${COMPREPLY[*]}"
}
ask epplan p
ask epplan config ''
ask epplan model sh
ask epplan plan batch.csv --pol
ask epplan compare batch.csv --json --the
ask epplan plan batch.csv --models ''
ask epplan plan batch.csv --policy lpt
ask epplan plan batch.csv --policy = lpt
ask epplan plan --start=s
ask epplan help mod
ask epplan plan -- --pol
`
	want := `epplan p: plan predict profile prolog
epplan config : init check show
epplan model sh: show
epplan plan batch.csv --pol: --policy
epplan compare batch.csv --json --the: --theta
epplan plan batch.csv --models : 
epplan plan batch.csv --policy lpt: lpt-ff
epplan plan batch.csv --policy = lpt: lpt-ff
epplan plan --start=s: --start=slot
epplan help mod: model
epplan plan -- --pol: 
`
	if got, err := exec.CommandContext(t.Context(), bash, "-c", ask).CombinedOutput(); err != nil ||
		string(got) != want {
		t.Errorf("bash is offered (%v)\n%s\nwant\n%s", err, got, want)
	}
}
