package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/testkit/doctest"
)

// The documentation is tested: what it says of flags follows from the program,
// and what its console blocks show is what the commands print. With -update it
// is rewritten instead.

func TestTheCommandPageListsEveryCommandWithItsFlags(t *testing.T) { underTest().CommandPage(t) }

func TestEveryExampleOfTheHelpWorksAsTyped(t *testing.T) { underTest().ExamplesWork(t) }

func TestEveryCommandHasItsExampleInAScript(t *testing.T) { underTest().ExamplesInScripts(t) }

func TestConsoleBlocksShowWhatCommandsPrint(t *testing.T) {
	underTest().ConsoleBlocks(t, doctest.Claim(t, "cli"))
}

// prepared are command lines that make what a page takes for granted, beside
// the files of every page.
var prepared = map[string][]string{
	"docs/history.md": {
		`mkdir -p .run && ln -sfn "$EPPLAN_SOCKET" .run/controller.sock`,
		`gzip -c log.swf > LLNL-Atlas.swf.gz`,
	},
	"docs/prediction.md": {
		`head -n 381 history.csv > train.csv`, `(head -n 1 history.csv; tail -n 99 history.csv) > test.csv`,
	},
	"docs/how-to/measure-your-application.md": {
		`printf '#!/bin/sh\nsleep 0.$(($(cat "$STANDIN/clock") %% 1000 / 10 + 15))\n' > my-application && chmod 755 my-application`,
	},
}

// A TOML block of a page is a part of a configuration, of a models file or of a
// file of profiles, as the program reads them.
func TestTOMLBlocksOfPagesAreRight(t *testing.T) {
	for _, b := range doctest.BlocksOf(t, "toml") {
		if err := readTOML(t, b.Text); err != nil {
			t.Errorf("%s: %v", b.At(), err)
		}
	}
}

// readTOML wants one of the commands that read TOML to take a text.
func readTOML(t *testing.T, text string) error {
	t.Helper()
	dir := underTest().ExampleFolder(t)
	name := filepath.Join(dir, "page.toml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "factors.csv"),
		[]byte("time,carbon_g_per_kwh\n2026-11-21T18:00:00Z,310\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadProfiles(strings.NewReader(text), name); err == nil {
		return nil
	}
	var faults []string
	for _, args := range [][]string{
		{"config", "check", name},
		{"model", "show", name},
		{"plan", filepath.Join(dir, "tasks.csv"), "--config", name, "--rows", "1"},
	} {
		code, _, stderr := inProcess(t, args...)
		if code == 0 {
			return nil
		}
		faults = append(faults, strings.TrimSpace(stderr))
	}
	return fmt.Errorf("no command reads it: %s", strings.Join(faults, "; "))
}

// Help lists each command once, but for those that Slurm calls.
func TestHelpListsTheCommandsForPeople(t *testing.T) {
	listed := map[string]int{"prolog": 1, "epilog": 1, "suspend": 1, "resume": 1}
	for _, g := range groups {
		for _, name := range g.Commands {
			listed[name]++
		}
	}
	p := newProgram()
	for _, c := range p.App(p.NewTerminal(strings.NewReader(""), io.Discard, io.Discard)).Commands {
		if listed[c.Name] != 1 {
			t.Errorf("%s is in %d groups, want 1", c.Name, listed[c.Name])
		}
		delete(listed, c.Name)
	}
	if len(listed) > 0 {
		t.Errorf("no commands: %v", listed)
	}
}
