package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// elision is a line of a console block that stands for any others; a block that
// has one is compared around it.
const elision = "[…]"

// prepared are command lines that make what a page takes for granted, beside
// the files of every page.
var prepared = map[string][]string{
	"README.md": {`cp history.csv new.csv`, `epplan config init epplan.toml`},
	"docs/cli.md": {
		`epplan generate openb --nodes 10 --seed 2 stream && mv stream/*.csv . && rm -r stream`,
		`awk -F, 'BEGIN {print "seq,pod_row,name"} NR > 1 && NR < 30 {print NR - 2 "," NR - 2 "," $1}' pods.csv | gzip > arrivals.csv.gz`,
		`awk 'NR == 1 {print "rank," $0} NR > 1 {print NR - 2 "," $0}' nodes.csv > order.csv`,
	},
	"docs/history.md": {
		`mkdir -p .run && ln -sfn "$EPPLAN_SOCKET" .run/controller.sock`,
		`gzip -c log.swf > LLNL-Atlas.swf.gz`,
	},
	"docs/prediction.md": {
		`head -n 381 history.csv > train.csv`, `(head -n 1 history.csv; tail -n 99 history.csv) > test.csv`,
	},
	"docs/how-to/sweep-on-slurm.md": {`cp batch.csv week06.csv`, `cp batch.csv week07.csv`},
	"docs/how-to/measure-your-application.md": {
		`printf '#!/bin/sh\nsleep 0.$(($(cat "$STANDIN/clock") %% 1000 / 10 + 15))\n' > my-application && chmod 755 my-application`,
	},
	"docs/placement.md": {
		`epplan generate openb --nodes 20 --seed 1 openb`,
		`cp openb/pods.csv openb/openb_pod_list_default.csv`,
		`awk -F, -v OFS=, 'NR == 1 {print $0, "energy_weight"} NR > 1 {print $0, 1 + NR % 2}' openb/nodes.csv > two-sites.csv`,
	},
}

func TestConsoleBlocksShowWhatCommandsPrint(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	c := doctest.Claim(t, "cli")
	for _, page := range c.Pages() {
		dir := exampleFolder(t)
		for _, line := range prepared[page] {
			if out, err := shell(t, dir, line); err != nil {
				t.Fatalf("%s: %s: %v\n%s", page, line, err, out)
			}
		}
		lines := doctest.ReadPage(t, page).Lines
		got := strings.Join(lines, "\n")
		var want []string
		next := 0 // line of the page that isn't in want yet
		for _, b := range c.Of(page) {
			want = append(want, lines[next:b.Line]...)
			next = b.Line + strings.Count(b.Text, "\n")
			want = append(want, runBlock(t, c, dir, b)...)
		}
		wantPage(t, filepath.Join(shareddata.Root(t), filepath.FromSlash(page)), got,
			strings.Join(append(want, lines[next:]...), "\n"))
	}
}

// runBlock runs a block's commands, and is its lines as they should be. Commands
// without prompts have to end well.
func runBlock(t *testing.T, c *doctest.Claimed, dir string, b *doctest.Block) []string {
	t.Helper()
	text := strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n")
	if b.Info != "console" {
		for _, s := range b.Steps {
			c.Ran(s)
			if out, err := shell(t, dir, "set -e\n"+s.Command); err != nil {
				t.Errorf("%s: %v\n%s", b.At(), err, out)
			}
		}
		return text
	}
	var want []string
	for i, s := range b.Steps {
		c.Ran(s)
		end := len(text)
		if i+1 < len(b.Steps) {
			end = b.Steps[i+1].Line - b.Line - 1
		}
		begin := s.Line - b.Line - 1
		want = append(want, text[begin:end-len(s.Shown)]...)
		out, err := shell(t, dir, s.Command)
		if err != nil { // one that is to fail says so: …; echo "exit status $?"
			t.Errorf("%s: %s: %v", s.At(), s.Command, err)
		}
		shown := strings.Join(s.Shown, "\n")
		if out = strings.TrimSuffix(out, "\n"); out != "" || shown != "" {
			want = append(want, strings.Split(keepMasked(s.Command, elide(out, shown), shown), "\n")...)
		}
	}
	return want
}

// exampleFolder is a folder with the files that examples name, under their own
// names and under their paths in the project.
func exampleFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := copyExamples(dir); err != nil {
		t.Fatal(err)
	}
	const demo = "testdata/demo"
	if err := os.CopyFS(filepath.Join(dir, demo), os.DirFS(filepath.Join(shareddata.Root(t), demo))); err !=
		nil {
		t.Fatal(err)
	}
	return dir
}

// exampleEnv is the environment of examples: stand-ins of Slurm's, NVIDIA's and
// Lua's commands go before the real ones.
func exampleEnv(dir string) []string {
	return append(os.Environ(), "PATH="+standIns()+":"+os.Getenv("PATH"), "STANDIN="+dir, "TZ=UTC")
}

// standIns is the folder of the stand-ins.
func standIns() string {
	dir, err := filepath.Abs("testdata/standin")
	if err != nil {
		panic(err)
	}
	return dir
}

// shell runs a command line and returns all that it prints. Programs and sockets
// that pages have at their places on a machine are here.
func shell(t *testing.T, dir, line string) (string, error) {
	t.Helper()
	line = strings.NewReplacer("/usr/bin/epplan", "epplan", "/run/epplan/", ".run/", "/etc/slurm",
		"site").Replace(line)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, exampleEnv(dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// elide leaves as many lines out of got as shown does, whatever they are.
func elide(got, shown string) string {
	lines, rest := strings.Split(got, "\n"), strings.Split(shown, "\n")
	at := slices.Index(rest, elision)
	if at < 0 || len(lines) < len(rest) {
		return got
	}
	after := len(rest) - at - 1
	return strings.Join(slices.Concat(lines[:at], []string{elision}, lines[len(lines)-after:]), "\n")
}

// keepMasked is what a command printed, with the lines as they are shown where
// only what is masked differs.
func keepMasked(command, got, shown string) string {
	lines, before := strings.Split(got, "\n"), strings.Split(shown, "\n")
	for i := range min(len(lines), len(before)) {
		if mask(command, lines[i]) == mask(command, before[i]) {
			lines[i] = before[i]
		}
	}
	return strings.Join(lines, "\n")
}

var (
	goVersion  = regexp.MustCompile(`\bgo1\.[\w.]+`)
	longNumber = regexp.MustCompile(`\d+\.\d{7,}(e[-+]?\d+)?`)
	blanks     = regexp.MustCompile(` {2,}`)
	lastCell   = regexp.MustCompile(`(?m)\s+(planning|m?s|[\d.]+)$`)
)

// mask hides what differs from run to run or from processor to processor: the
// release of Go, digits after the sixth of long numbers, the last column of
// compare, which is how long planning took, and how wide columns of reproduce
// are, of which some rows are times.
func mask(command, output string) string {
	output = goVersion.ReplaceAllString(output, "go1")
	output = longNumber.ReplaceAllStringFunc(output, func(number string) string {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number
		}
		return strconv.FormatFloat(x, 'g', 6, 64)
	})
	if strings.HasPrefix(command, "epplan compare ") {
		output = lastCell.ReplaceAllString(output, "")
	}
	if strings.HasPrefix(command, "epplan reproduce ") {
		output = blanks.ReplaceAllString(output, " ")
	}
	return output
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
	dir := exampleFolder(t)
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
