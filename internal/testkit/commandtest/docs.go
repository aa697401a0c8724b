package commandtest

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
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/manual"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/urfave/cli/v2"
)

// The documentation is tested: what it says of flags follows from the program,
// and what its console blocks show is what the commands print. With -update it
// is rewritten instead.

// Leaves returns the commands that do something, each with its name as it is typed.
func Leaves(commands []*cli.Command, parent string) map[string]*cli.Command {
	found := make(map[string]*cli.Command)
	for _, c := range commands {
		name := parent + " " + c.Name
		if len(c.Subcommands) == 0 || len(c.Flags) > 0 {
			found[name] = c
		}
		maps.Copy(found, Leaves(c.Subcommands, name))
	}
	return found
}

// ReadPage returns the text of a page.
func ReadPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// WantPage compares a page with what it should be, or rewrites it.
func (p *Program) WantPage(t *testing.T, name, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if p.Update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date (go test ./%s -update rewrites it):\n%s", filepath.Base(name), p.Package,
		FirstDifference(got, want))
}

// FirstDifference shows the first line in which two texts differ.
func FirstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: %q\nshould be: %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, should be %d", len(g), len(w))
}

// usageBlock is the part of the command page that follows from the program.
var usageBlock = regexp.MustCompile(`(?s)(<!-- usage of ([a-z][a-z -]+) -->\n).*?(<!-- end of usage -->)`)

// CommandPage wants the page of commands to have each with its flags.
func (p *Program) CommandPage(t *testing.T) {
	t.Helper()
	page := ReadPage(t, filepath.Join(shareddata.Root(t), p.Page))
	commands := Leaves(p.App().Commands, p.Name)
	seen := make(map[string]bool)
	want := usageBlock.ReplaceAllStringFunc(page, func(block string) string {
		part := usageBlock.FindStringSubmatch(block)
		c, ok := commands[part[2]]
		if !ok {
			t.Errorf("%s describes %s, which isn't there", p.Page, part[2])
			return block
		}
		seen[part[2]] = true
		return part[1] + manual.Usage(c) + part[3]
	})
	for name := range commands {
		if !seen[name] {
			t.Errorf("%s doesn't describe %s", p.Page, name)
		}
	}
	p.WantPage(t, filepath.Join(shareddata.Root(t), p.Page), page, want)
}

// examples returns the example command lines of commands, in order.
func examples(commands []*cli.Command) []string {
	var found []string
	for _, c := range commands {
		for line := range strings.Lines(c.Description) {
			if example, ok := strings.CutPrefix(line, manual.ExampleMark); ok {
				found = append(found, strings.TrimRight(example, "\n"))
			}
		}
		found = append(found, examples(c.Subcommands)...)
	}
	return found
}

// ExamplesWork runs the examples of the help.
func (p *Program) ExamplesWork(t *testing.T) {
	t.Helper()
	dir := p.ExampleFolder(t)
	app := p.App()
	lines := examples(append([]*cli.Command{{Description: app.Description}}, app.Commands...))
	if len(lines) < len(Leaves(app.Commands, p.Name)) {
		t.Errorf("%d examples, want one for each command", len(lines))
	}
	for _, line := range lines {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, p.exampleEnv(dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, &stderr)
		}
	}
}

// ExamplesInScripts wants each command to have an example, and a script that runs it.
func (p *Program) ExamplesInScripts(t *testing.T) {
	t.Helper()
	page := ReadPage(t, filepath.Join(shareddata.Root(t), p.Page))
	for name, c := range Leaves(p.App().Commands, p.Name) {
		if len(examples([]*cli.Command{c})) == 0 {
			t.Errorf("%s --help has no example", name)
		}
		_, section, _ := strings.Cut(page, "<!-- usage of "+name+" -->")
		_, block, _ := strings.Cut(section, "```console\n$ ")
		shown, _, _ := strings.Cut(block, "\n")
		shown, _, _ = strings.Cut(shown, " >")
		if !strings.HasPrefix(shown, name) {
			t.Errorf("%s: the first example of %s is %q", p.Page, name, shown)
			continue
		}
		script := strings.ReplaceAll(strings.TrimPrefix(name, p.Name+" "), " ", "_") + ".txtar"
		text, err := os.ReadFile(filepath.Join("testdata/script", script))
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has no script %s", name, script)
		} else if !bytes.Contains(text, []byte("\nexec "+shown+"\n")) &&
			!bytes.HasPrefix(text, []byte("exec "+shown+"\n")) {
			t.Errorf("%s doesn't run the example of %s: %s", script, p.Page, shown)
		}
	}
}
