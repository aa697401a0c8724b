package archtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// unnamedRooms returns the packages that a document doesn't name by their folder.
func unnamedRooms(m module, document string) []string {
	named := make(map[string]bool)
	for _, word := range regexp.MustCompile(`[\w./-]+`).FindAllString(document, -1) {
		named[strings.TrimRight(word, "/.")] = true
	}
	var found []string
	for _, p := range m.own {
		if room := m.room(p.ImportPath); !named[room] {
			found = append(found, "docs/architecture.md doesn't name "+room)
		}
	}
	return found
}

func TestTheArchitecturePageNamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(rootDir(t), "docs", "architecture.md"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no docs/architecture.md yet")
	} else if err != nil {
		t.Fatal(err)
	}
	report(t, unnamedRooms(thisModule(t), string(page)))
}

func TestAPackageThatThePageForgetsIsFound(t *testing.T) {
	m := newModule(fixturePath, "", []pkg{
		{ImportPath: fixturePath + "/queue"},
		{ImportPath: fixturePath + "/planner"},
		{ImportPath: fixturePath + "/planner/pick"},
		{ImportPath: fixturePath + "/planner/place"},
	})
	wantViolations(t, unnamedRooms(m, "The `queue/` and planner/pick, of planners. See planner/places."),
		"name planner", "name planner/place")
}

// machinePath matches the absolute paths of one machine, which have no place in
// the project. It is written so that it doesn't match itself.
var machinePath = regexp.MustCompile(`(^|[^\w.])/(wor[k]|roo[t]|tmp/bash_job[s])(/|\b)`)

// machinePaths names each line of a file with the path of some machine.
func machinePaths(name, text string) []string {
	var found []string
	for i, line := range strings.Split(text, "\n") {
		if match := machinePath.FindString(line); match != "" {
			found = append(found,
				fmt.Sprintf("%s:%d: the path of a machine: %s", name, i+1, strings.TrimSpace(match)))
		}
	}
	return found
}

// projectFiles returns the files that git tracks, or would with `git add .`.
func projectFiles(t *testing.T, root string) []string {
	t.Helper()
	_, noCheckout := os.Stat(filepath.Join(root, ".git"))
	_, noGit := exec.LookPath("git")
	shareddata.Need(t, noCheckout == nil && noGit == nil, "this is no git checkout, or git isn't installed")
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*",
		"ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

func TestNoFileNamesThePathOfAMachine(t *testing.T) {
	root := rootDir(t)
	for _, name := range projectFiles(t, root) {
		text, err := fs.ReadFile(os.DirFS(root), name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not committed yet
		} else if err != nil {
			t.Fatal(err)
		}
		report(t, machinePaths(name, string(text)))
	}
}

func TestThePathOfAMachineIsFound(t *testing.T) {
	text := strings.ReplaceAll(`a: fine
see ^work/main/x.go
cd ^work
"^tmp/bash_jobs.0/1"
HOME=^root/.cache
../work/x and homework/x and /workers and //host/path
idle/work`, "^", "/")
	wantViolations(t, machinePaths("x.md", text), "x.md:2:", "x.md:3:", "x.md:4:", "x.md:5:")
}

// namedInCode finds links of pages to what a file of Go declares, such as
// [`Agent.Apply`](../internal/agent/apply.go).
var namedInCode = regexp.MustCompile("\\[`([A-Za-z.]+)`\\]\\(([^)#]+\\.go)\\)")

// misplacedNames returns the links of a page to functions and types that aren't declared in
// the file that the link names.
func misplacedNames(page string, read func(file string) (string, error)) []string {
	var found []string
	for _, link := range namedInCode.FindAllStringSubmatch(page, -1) {
		text, err := read(link[2])
		if err != nil {
			found = append(found, fmt.Sprintf("%s: %v", link[1], err))
			continue
		}
		pattern := `(?m)^(func|type) ` + link[1] + `\b`
		if of, method, ok := strings.Cut(link[1], "."); ok {
			pattern = `(?m)^func \(\w+ \*?` + of + `\) ` + method + `\b`
		}
		if !regexp.MustCompile(pattern).MatchString(text) {
			found = append(found, fmt.Sprintf("%s doesn't declare %s", link[2], link[1]))
		}
	}
	return found
}

func TestPagesForDevelopersNameWhatIsInTheCode(t *testing.T) {
	docs := filepath.Join(rootDir(t), "docs")
	pages, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		links += len(namedInCode.FindAll(page, -1))
		report(t, misplacedNames(string(page), func(file string) (string, error) {
			text, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(file)))
			return string(text), err
		}))
	}
	if links == 0 {
		t.Error("no page names anything")
	}
}

func TestANameThatIsNotInItsFileIsFound(t *testing.T) {
	read := func(string) (string, error) {
		return "package a\n\nfunc (a *A) Do() {}\n\ntype B struct{}\n\nfunc c() {}\n", nil
	}
	page := "[`A.Do`](a.go) [`A.Done`](a.go) [`B`](a.go) [`c`](a.go) [`Do`](a.go) [`B.c`](a.go)"
	wantViolations(t, misplacedNames(page, read), "declare A.Done", "declare Do", "declare B.c")
}

// nearLimit matches what is said of the guard: what becomes of a run whose limit comes near.
var nearLimit = regexp.MustCompile(`(?i)limits?\s+(comes|came)\s+near|(comes|came)\s+near\s+(its|their)\s+limit`)

// unexempted returns the paragraphs, rows and points of a page that speak of the guard and don't say that
// clocks of a user's choice are exempt.
func unexempted(name, text string) []string {
	var found []string
	for _, part := range regexp.MustCompile(`\n\n|\n\|`).Split(text, -1) {
		if match := nearLimit.FindString(part); match != "" && !strings.Contains(part, "fix") {
			found = append(found, fmt.Sprintf("%s: %q, and not a word on epplan:fixed", name, match))
		}
	}
	return found
}

func TestEachWordOnTheGuardSaysThatFixedClocksAreExempt(t *testing.T) {
	root := rootDir(t)
	spoken := 0
	for _, name := range projectFiles(t, root) {
		if !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if nearLimit.Match(text) {
			spoken++
		}
		report(t, unexempted(name, string(text)))
	}
	if spoken < 5 {
		t.Errorf("the guard is spoken of in %d pages only: do these words still find it?", spoken)
	}
	if got := unexempted("x", "a\n\nwhere the limit\ncomes near,\n\nclocks go back; fixed\n"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// Who reads of savings reads by which keys it is bounded how much later jobs are done for it.
func TestPagesOfSavingsNameTheKeysThatBoundTheirCost(t *testing.T) {
	root := rootDir(t)
	for name, keys := range map[string][]string{
		"README.md": {"max_slowdown", "max_turnaround"}, "docs/slurm.md": {"max_slowdown", "max_turnaround"},
		"docs/reference/config.md": {"max_slowdown", "max_turnaround"}, "docs/savings.md": {"max_slowdown"},
		"docs/how-to/read-savings.md": {"max_slowdown"},
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("%s doesn't name %s", name, key)
			}
		}
	}
}
