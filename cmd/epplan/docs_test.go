package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// The documentation is tested: what it says of flags follows from the program,
// and what its console blocks show is what the commands print. With -update it
// is rewritten instead.

const commandPage = "../../docs/cli.md"

// leaves are the commands that do something, each with its name as it is typed.
func leaves(commands []*cli.Command, parent string) map[string]*cli.Command {
	found := make(map[string]*cli.Command)
	for _, c := range commands {
		name := parent + " " + c.Name
		if len(c.Subcommands) == 0 || len(c.Flags) > 0 {
			found[name] = c
		}
		maps.Copy(found, leaves(c.Subcommands, name))
	}
	return found
}

// readPage is the text of a page.
func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name) //nolint:gosec // the project's own pages
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantPage compares a page with what it should be, or rewrites it.
func wantPage(t *testing.T, name, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil { //nolint:gosec // a page that everybody may read
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date (go test ./cmd/epplan -update rewrites it):\n%s", filepath.Base(name), firstDifference(got, want))
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: %q\nshould be: %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, should be %d", len(g), len(w))
}

// usageBlock is the part of the command page that follows from the program.
var usageBlock = regexp.MustCompile(`(?s)(<!-- usage of (epplan [a-z ]+) -->\n).*?(<!-- end of usage -->)`)

func TestTheCommandPageListsEveryCommandWithItsFlags(t *testing.T) {
	page := readPage(t, commandPage)
	commands := leaves((&terminal{}).app().Commands, "epplan")
	seen := make(map[string]bool)
	want := usageBlock.ReplaceAllStringFunc(page, func(block string) string {
		part := usageBlock.FindStringSubmatch(block)
		c, ok := commands[part[2]]
		if !ok {
			t.Errorf("%s describes %s, which isn't there", commandPage, part[2])
			return block
		}
		seen[part[2]] = true
		return part[1] + usageText(c) + part[3]
	})
	for name := range commands {
		if !seen[name] {
			t.Errorf("%s doesn't describe %s", commandPage, name)
		}
	}
	wantPage(t, commandPage, page, want)
}

// usageText is a command's purpose, usage line and flags in Markdown.
func usageText(c *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s.\n\n    %s\n\n%s", strings.ToUpper(c.Usage[:1])+c.Usage[1:], c.UsageText, descriptionText(c))
	if len(c.Flags) == 0 {
		return b.String()
	}
	b.WriteString("| flag | meaning | default |\n|------|---------|---------|\n")
	for _, f := range c.Flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		names := "--" + strings.Join(f.Names(), ", -")
		usage := doc.GetUsage()
		if before, rest, found := strings.Cut(usage, "`"); found {
			placeholder, after, _ := strings.Cut(rest, "`")
			names, usage = "--"+f.Names()[0]+" "+placeholder+strings.TrimPrefix(names, "--"+f.Names()[0]), before+placeholder+after
		}
		byDefault := strings.Trim(doc.GetDefaultText(), `"`)
		if _, isBool := f.(*cli.BoolFlag); isBool {
			byDefault = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", names, strings.ReplaceAll(usage, "|", `\|`), byDefault)
	}
	return b.String() + "\n"
}

// descriptionText is a description without its examples; its indented lines are
// shown as they are.
func descriptionText(c *cli.Command) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(c.Description) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, exampleMark) {
			continue
		}
		if next := strings.HasPrefix(line, "  "); next != indented {
			indented = next
			b.WriteString("\n")
		}
		if indented {
			line = "  " + line
		}
		b.WriteString(line + "\n")
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// consoleBlock is a console block: commands after "$ ", each with its output.
var consoleBlock = regexp.MustCompile("(?s)(```console\n)(.*?)(```)")

// Lines of a console block that stand for any others; a block that has one is
// compared around it.
const elision = "[…]"

func TestConsoleBlocksShowWhatCommandsPrint(t *testing.T) {
	for _, name := range []string{commandPage, "../../README.md"} {
		page := readPage(t, name)
		dir := exampleFolder(t)
		want := consoleBlock.ReplaceAllStringFunc(page, func(block string) string {
			part := consoleBlock.FindStringSubmatch(block)
			return part[1] + rerun(t, dir, part[2]) + part[3]
		})
		wantPage(t, name, page, want)
	}
}

// exampleFolder is a folder with the files that examples name, under their own
// names and under their paths in the project.
func exampleFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := copyExamples(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "testdata", "demo"), os.DirFS("../../testdata/demo")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rerun runs the commands of a block that are epplan's, or write its input, and
// returns the block with their output, as it was where only what is masked
// differs.
func rerun(t *testing.T, dir, block string) string {
	t.Helper()
	var b strings.Builder
	for _, step := range strings.SplitAfter("\n"+block, "\n$ ")[1:] {
		step = strings.TrimSuffix(step, "\n$ ")
		command, shown, _ := strings.Cut(step, "\n")
		b.WriteString("$ " + command + "\n")
		shown = strings.TrimSuffix(shown, "\n")
		if program, _, _ := strings.Cut(command, " "); program == "epplan" || program == "printf" {
			got := strings.TrimSuffix(shell(t, dir, command), "\n")
			shown = keepMasked(command, elide(got, shown), shown)
		}
		if shown != "" {
			b.WriteString(shown + "\n")
		}
	}
	return b.String()
}

// shell runs a command line and returns all that it prints.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line) //nolint:gosec // examples of the project's own pages
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", line, err)
	}
	return string(out)
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
	lastCell   = regexp.MustCompile(`(?m)\s+(planning|m?s|[\d.]+)$`)
)

// mask hides what differs from run to run or from processor to processor: the
// release of Go, digits after the sixth of long numbers, and the last column of
// compare, which is how long planning took.
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
	return output
}

// exampleMark begins the lines of a description that are examples.
const exampleMark = "Example: "

// examples are the example command lines of commands, in order.
func examples(commands []*cli.Command) []string {
	var found []string
	for _, c := range commands {
		for line := range strings.Lines(c.Description) {
			if example, ok := strings.CutPrefix(line, exampleMark); ok {
				found = append(found, strings.TrimRight(example, "\n"))
			}
		}
		found = append(found, examples(c.Subcommands)...)
	}
	return found
}

func TestEveryExampleOfTheHelpWorksAsTyped(t *testing.T) {
	dir := exampleFolder(t)
	app := (&terminal{}).app()
	lines := examples(append([]*cli.Command{{Description: app.Description}}, app.Commands...))
	if len(lines) < len(leaves(app.Commands, "epplan")) {
		t.Errorf("%d examples, want one for each command", len(lines))
	}
	for _, line := range lines {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line) //nolint:gosec // the program's own examples
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, &stderr)
		}
	}
}

func TestEveryCommandHasItsExampleInAScript(t *testing.T) {
	page := readPage(t, commandPage)
	for name, c := range leaves((&terminal{}).app().Commands, "epplan") {
		if len(examples([]*cli.Command{c})) == 0 {
			t.Errorf("%s --help has no example", name)
		}
		_, section, _ := strings.Cut(page, "<!-- usage of "+name+" -->")
		_, block, _ := strings.Cut(section, "```console\n$ ")
		shown, _, _ := strings.Cut(block, "\n")
		shown, _, _ = strings.Cut(shown, " >")
		if !strings.HasPrefix(shown, name) {
			t.Errorf("docs/cli.md: the first example of %s is %q", name, shown)
			continue
		}
		script := strings.ReplaceAll(strings.TrimPrefix(name, "epplan "), " ", "_") + ".txtar"
		text, err := os.ReadFile(filepath.Join("testdata/script", script)) //nolint:gosec // the tests' own files
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has no script %s", name, script)
		} else if !bytes.Contains(text, []byte("\nexec "+shown+"\n")) && !bytes.HasPrefix(text, []byte("exec "+shown+"\n")) {
			t.Errorf("%s doesn't run the example of docs/cli.md: %s", script, shown)
		}
	}
}
