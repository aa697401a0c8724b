package tutorial

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// page is the tutorial.
const page = "docs/tutorial.md"

// usualLab is there while the page's lab runs: anybody's, started by hand.
const usualLab = "/tmp/epplan-lab/lab.env"

var update = flag.Bool("update", false, "write the tutorial's transcript and pictures anew")

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

// claim is what the page says of the time that the commands below it take, as a
// comment before a block: <!-- within 60 s -->.
var claim = regexp.MustCompile(`^<!-- within (\d+) s -->$`)

// TestTheTutorialWorksAsWritten types the page's commands into one shell, in a
// copy of the project without anything beside it. What they print is the page's
// transcript but for numbers, and each block takes no longer than the page says.
func TestTheTutorialWorksAsWritten(t *testing.T) {
	slurmlab.Script(t) // it takes the same: root, and Slurm's packages
	if _, err := os.Stat(usualLab); err == nil {
		t.Skipf("there is a lab, and it isn't this test's to take down: %s", usualLab)
	}
	c := doctest.Claim(t, "tutorial")
	s := openShell(t, copyProject(t), version(t))
	t.Cleanup(func() { s.tidy() })
	text := doctest.ReadPage(t, page)
	shown := make(map[int]string) // by the line of a command
	for _, b := range c.Blocks {
		var took time.Duration
		for _, step := range b.Steps {
			printed, spent := s.run(step.At(), step.Command)
			took += spent
			c.Ran(step)
			shown[step.Line] = printed
			if got, want := masked(printed), masked(strings.Join(step.Shown, "\n")); got != want && !*update {
				t.Errorf("%s: %s\nshows (-update writes it):\n%s\nthe page has:\n%s", step.At(), step.Command,
					printed, strings.Join(step.Shown, "\n"))
			}
		}
		within(t, &text, b, took)
		for _, p := range picturesBelow(&text, b) {
			s.look(p)
		}
	}
	if *update && !t.Failed() {
		write(t, &text, c.Blocks, shown)
	}
}

// within compares the time that a block took with what the page says.
func within(t *testing.T, text *doctest.Page, b *doctest.Block, took time.Duration) {
	t.Helper()
	said := claim.FindStringSubmatch(text.Lines[b.Line-2])
	if said == nil {
		t.Errorf("%s: the line before the block doesn't say how long it takes: <!-- within 60 s -->", b.At())
		return
	}
	seconds, err := strconv.Atoi(said[1])
	if err != nil {
		t.Fatal(err)
	}
	if limit := time.Duration(seconds) * time.Second; took > limit {
		t.Errorf("%s: it took %v, the page says %v", b.At(), took, limit)
	}
	t.Logf("%s: %.1f s of the %d that the page says", b.At(), took.Seconds(), seconds)
}

// copyProject copies what a clone has into a folder of its own.
func copyProject(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "epplan")
	const script = `git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
		tar -c --null -T - | { mkdir "$1" && tar -x -C "$1"; }`
	cp := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", script, "bash", dir)
	cp.Dir = shareddata.Root(t)
	if out, err := cp.CombinedOutput(); err != nil {
		t.Fatalf("copy the project: %v\n%s", err, out)
	}
	return dir
}

// version returns the project's.
func version(t *testing.T) string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--always")
	git.Dir = shareddata.Root(t)
	out, err := git.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// tidy takes down what a test that failed left running.
func (s *shell) tidy() {
	if !s.Failed() {
		return
	}
	if _, err := os.Stat(usualLab); err != nil {
		return // it is down
	}
	slurmlab.Show(s, filepath.Dir(usualLab))
	down := exec.Command(filepath.Join(s.cmd.Dir, "scripts", "lab.sh"), "down") //nolint:noctx // the project's own
	if out, err := down.CombinedOutput(); err != nil {
		s.Logf("lab.sh down: %v\n%s", err, out)
	}
}

// What differs from one run to the next.
var (
	ids     = regexp.MustCompile(`\b[0-9a-f]{7,}(x\d+)?(…|\b)|GPU-[0-9a-f-]+`)
	numbers = regexp.MustCompile(`[-–]?\d[\d.,:]*( ?([kM]?[JWB]|[kMG]?Wh|GiB|m?s|min|%|MHz)\b)?|–`)
	// On a slow machine models come later.
	arms = regexp.MustCompile(`\b(treated|held-out|excluded)\b`)
	// by the lot, with so few runs.
	chance = regexp.MustCompile(`\n +0 workloads? (has|have) no run in one of the groups.*`)
	// The last one may not be told of yet.
	states = regexp.MustCompile(`\b(RUNNING|COMPLETED)\b`)
	bars   = regexp.MustCompile(`[▁▂▃▄▅▆▇█]+`)
	spaces = regexp.MustCompile(`[ \t]+`)
)

// tokens are those of the lab's pages: the beginning of one is enough to be shown,
// and can't be taken for one that may be used.
var tokens = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{24}\b`)

// masked returns a text without numbers, their units, names that are drawn, and the
// widths of columns.
func masked(text string) string {
	for _, m := range []struct {
		what *regexp.Regexp
		by   string
	}{
		{ids, "ID"},
		{numbers, "0"},
		{arms, "ARM"},
		{chance, ""},
		{states, "STATE"},
		{bars, "BAR"},
		{spaces, " "},
	} {
		text = m.what.ReplaceAllString(text, m.by)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// write writes the page anew, with what its commands printed.
func write(t *testing.T, text *doctest.Page, blocks []*doctest.Block, shown map[int]string) {
	t.Helper()
	skip := make(map[int]bool)
	for _, b := range blocks {
		for _, step := range b.Steps {
			first := step.Line + strings.Count(between(text, step), "\\\n")
			for i := range step.Shown {
				skip[first+i] = true
			}
		}
	}
	var out strings.Builder
	for i, line := range text.Lines {
		if skip[i] {
			continue
		}
		out.WriteString(line + "\n")
		if printed := shown[i+1]; printed != "" {
			out.WriteString(tokens.ReplaceAllString(strings.TrimRight(printed, "\n"), "$1…") + "\n")
		}
	}
	if err := os.WriteFile(filepath.Join(shareddata.Root(t), page), []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between returns the text of a command as the page has it; ours are on one line.
func between(text *doctest.Page, step *doctest.Step) string {
	return text.Lines[step.Line-1]
}
