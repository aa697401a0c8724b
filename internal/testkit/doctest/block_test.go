package doctest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
)

func pageOf(name string, lines ...string) *doctest.Page {
	return &doctest.Page{Name: name, Lines: lines}
}

func TestABlockBelongsToItsPagesRunnerUnlessTheLineBeforeSaysOtherwise(t *testing.T) {
	const name = "docs/cli.md"
	for _, c := range []struct {
		before, info, runner, notRun string
	}{
		{"", "console", "cli", ""},
		{"Text.", "sh", "cli", ""},
		{"<!-- run by slurm -->", "console", "slurm", ""},
		{"<!-- not run: it needs a moon -->", "console", "", "it needs a moon"},
		{"", "text", "", ""},
		{"", "toml", "", ""},
		{"<!-- run by cli -->", "toml", "cli", ""},
	} {
		blocks, faults := pageOf(name, c.before, "```"+c.info, "$ true", "```").Blocks()
		if len(faults) > 0 || len(blocks) != 1 {
			t.Fatalf("%q: %d blocks, %v", c.before, len(blocks), faults)
		}
		if b := blocks[0]; b.Runner != c.runner || b.NotRun != c.notRun || b.Line != 2 {
			t.Errorf("%q %s: %+v", c.before, c.info, b)
		}
	}
	if blocks, _ := pageOf("elsewhere/notes.md", "```sh", "true", "```").Blocks(); blocks[0].Runner != "" {
		t.Errorf("a page of no runner: %q", blocks[0].Runner)
	}
}

func TestStepsAreCommandsBehindPromptsWithWhatTheyShow(t *testing.T) {
	blocks, faults := pageOf("docs/slurm.md", "```console", "# one \\", "    more", "shown", "", "$ two",
		"head# three", "  indented", "```").Blocks()
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := []doctest.Step{
		{Page: "docs/slurm.md", Line: 2, Prompt: "# ", Command: "one more", Shown: []string{"shown", ""}},
		{Page: "docs/slurm.md", Line: 6, Prompt: "$ ", Command: "two"},
		{Page: "docs/slurm.md", Line: 7, Prompt: "head# ", Command: "three", Shown: []string{"  indented"}},
	}
	for i, s := range blocks[0].Steps {
		w := &want[i]
		if s.Line != w.Line || s.Prompt != w.Prompt || s.Command != w.Command ||
			!slices.Equal(s.Shown, w.Shown) {
			t.Errorf("%+v, want %+v", *s, *w)
		}
	}
	if blocks, _ := pageOf("docs/cli.md", "```sh", "one", "# remark", "two",
		"```").Blocks(); len(blocks[0].Steps) != 1 || blocks[0].Steps[0].Command != "one\n# remark\ntwo\n" {
		t.Errorf("a block without prompts: %+v", blocks[0].Steps)
	}
}

func TestWhatNoTestCouldRunIsNamedWithFileAndLine(t *testing.T) {
	for want, lines := range map[string][]string{
		"p.md:2: a block without a word":             {"", "```", "x", "```"},
		"p.md:2: output without a command":           {"```console", "x", "$ y", "```"},
		"p.md:1: the block has no end":               {"```sh", "x"},
		"p.md:2: a command that is only indented":    {"", "    epplan plan x", ""},
		"p.md:1: a command that is only indented":    {"    $ anything", ""},
		"p.md:2: a command in a block of text: make": {"```text", "make test", "```"},
	} {
		p := pageOf("p.md", lines...)
		_, faults := p.Blocks()
		faults = append(faults, p.Stray()...)
		if len(faults) != 1 || !strings.HasPrefix(faults[0], want) {
			t.Errorf("%q: %q", want, faults)
		}
	}
	p := pageOf("p.md", "<!-- usage of epplan x -->", "    epplan x FILE", "<!-- end of usage -->",
		"    Φ = steady", "```text", "epd ─▶ x", "```")
	if stray := p.Stray(); len(stray) > 0 {
		t.Errorf("%q", stray)
	}
}

func TestOutputIsComparedByLine(t *testing.T) {
	for _, c := range []struct {
		got, want string
		same      bool
	}{
		{"a\n", "a", true},
		{"a\nb\n", "a", false},
		{"", "a", false},
		{"a  12 b\n", "a … b", true},
		{"a\nx\ny\nb\n", "a\n…\nb", true},
		{"a\nb\n", "a\n…\nb", true},
		{"a\nb\n", "…", true},
		{"a.c\n", "a.c", true},
		{"abc\n", "a.c", false},
		{"x\n", "", false},
	} {
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, "\n")
		}
		if doctest.Shows(c.got, want) != c.same {
			t.Errorf("%q beside %q: want %v", c.got, c.want, c.same)
		}
	}
}
