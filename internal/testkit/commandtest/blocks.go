package commandtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// elision is a line of a console block that stands for any others; a block that
// has one is compared around it.
const elision = "[…]"

// ConsoleBlocks wants the console blocks of the book to show what their commands print.
func (p *Program) ConsoleBlocks(t *testing.T, c *doctest.Claimed) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	for _, page := range c.Pages() {
		dir := p.ExampleFolder(t)
		for _, line := range p.Prepared[page] {
			if out, err := p.shell(t, dir, line); err != nil {
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
			want = append(want, p.runBlock(t, c, dir, b)...)
		}
		p.WantPage(t, filepath.Join(shareddata.Root(t), filepath.FromSlash(page)), got,
			strings.Join(append(want, lines[next:]...), "\n"))
	}
}

// runBlock runs a block's commands, and is its lines as they should be. Commands
// without prompts have to end well.
func (p *Program) runBlock(t *testing.T, c *doctest.Claimed, dir string, b *doctest.Block) []string {
	t.Helper()
	text := strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n")
	if b.Info != "console" {
		for _, s := range b.Steps {
			c.Ran(s)
			if out, err := p.shell(t, dir, "set -e\n"+s.Command); err != nil {
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
		out, err := p.shell(t, dir, s.Command)
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

// ExampleFolder returns a folder with the files that examples name, under their own
// names and under their paths in the project.
func (p *Program) ExampleFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := CopyExamples(t, dir); err != nil {
		t.Fatal(err)
	}
	const demo = "testdata/demo"
	if err := os.CopyFS(filepath.Join(dir, demo), os.DirFS(filepath.Join(shareddata.Root(t), demo))); err !=
		nil {
		t.Fatal(err)
	}
	return dir
}

// exampleEnv returns the environment of examples: stand-ins of Slurm's, NVIDIA's and
// Lua's commands go before the real ones.
func (p *Program) exampleEnv(dir string) []string {
	return append(
		os.Environ(),
		"PATH="+strings.Join(append(slices.Clone(p.Path), os.Getenv("PATH")), ":"),
		"STANDIN="+dir,
		"TZ=UTC",
	)
}

// shell runs a command line and returns all that it prints. Programs and sockets
// that pages have at their places on a machine are here.
func (p *Program) shell(t *testing.T, dir, line string) (string, error) {
	t.Helper()
	line = strings.NewReplacer("/usr/bin/epplan", "epplan", "/run/epplan/", ".run/", "/etc/slurm",
		"site").Replace(line)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, p.exampleEnv(dir)
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

// keepMasked returns what a command printed, with the lines as they are shown where
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
	if strings.HasPrefix(command, "epplab reproduce ") {
		output = blanks.ReplaceAllString(output, " ")
	}
	return output
}
