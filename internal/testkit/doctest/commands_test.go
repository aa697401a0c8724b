package doctest_test

import (
	"go/build/constraint"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// The script takes the line that runs the tests from README.md.
const takesTests = `step test run_tests full "$test_command"`

func TestTheCIRunsTheBlocksThatItClaims(t *testing.T) {
	c := doctest.Claim(t, "ci")
	script, err := os.ReadFile(filepath.Join(shareddata.Root(t), ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	runs := make(map[string]bool)
	for _, part := range regexp.MustCompile(`(?m)^step \S+ (.+)$`).FindAllStringSubmatch(string(script), -1) {
		runs[part[1]] = true
	}
	if strings.Contains(string(script), takesTests) {
		runs["make test"] = true
	}
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			for i, line := range strings.Split(strings.TrimSpace(s.Command), "\n") {
				if line, _, _ = strings.Cut(line, " #"); !runs[strings.TrimSpace(line)] {
					t.Errorf("%s:%d: .ci/run has no step %q", s.Page, s.Line+i, line)
				}
			}
			c.Ran(s)
		}
	}
}

// goTest is a command in a page's running text.
var goTest = regexp.MustCompile("`(go test [^`]+)`")

func TestCommandsOfGoNameWhatIsThere(t *testing.T) {
	c := doctest.Claim(t, "go")
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			for i, line := range strings.Split(strings.TrimSpace(s.Command), "\n") {
				checkGoTest(t, s.Page, s.Line+i, line)
			}
			c.Ran(s)
		}
	}
	for _, p := range doctest.Pages(t) {
		for i, line := range p.Lines {
			for _, part := range goTest.FindAllStringSubmatch(line, -1) {
				checkGoTest(t, p.Name, i+1, part[1])
			}
		}
	}
}

// namedTest is a test in a page's running text, or the beginning of its name.
var namedTest = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w+)(…?)`")

func TestTestsThatPagesNameAreThere(t *testing.T) {
	all := make(map[string]bool)
	eachFile(t, "_test.go", func(text string) {
		for _, part := range testName.FindAllStringSubmatch(text, -1) {
			all[part[1]] = true
		}
	})
	found := 0
	for _, p := range doctest.Pages(t) {
		for i, line := range p.Lines {
			for _, part := range namedTest.FindAllStringSubmatch(line, -1) {
				if found++; !all[part[1]] && (part[2] == "" || !hasPrefix(all, part[1])) {
					t.Errorf("%s:%d: there is no %s", p.Name, i+1, part[1])
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d tests named", found)
	}
}

// hasPrefix reports whether one of the names begins like that.
func hasPrefix(names map[string]bool, prefix string) bool {
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// checkGoTest wants the packages, tests and benchmarks that a command names.
func checkGoTest(t *testing.T, page string, line int, command string) {
	t.Helper()
	command, _, _ = strings.Cut(command, " #")
	words := strings.Fields(strings.ReplaceAll(command, "'", ""))
	if len(words) < 3 || words[0] != "go" || words[1] != "test" {
		t.Errorf("%s:%d: %q is no go test command", page, line, command)
		return
	}
	var folders, patterns, tags []string
	for i := 2; i < len(words); i++ {
		switch word := words[i]; {
		case word == "-run" || word == "-bench":
			i++
			if i < len(words) && words[i] != "xxx" && words[i] != "^$" {
				patterns = append(patterns, words[i])
			}
		case word == "-tags":
			i++
			if i < len(words) {
				tags = strings.Split(words[i], ",")
			}
		case word == "-benchtime" || word == "-count" || word == "-timeout" || word == "-cpu" ||
			word == "-fuzz" || word == "-fuzztime":
			i++
		case strings.HasPrefix(word, "./"):
			folders = append(folders, word)
		case !strings.HasPrefix(word, "-"):
			t.Errorf("%s:%d: %q in %q, want a flag or a package", page, line, word, command)
		}
	}
	names := testNames(t, page, line, folders, tags)
	for _, pattern := range patterns {
		first, _, _ := strings.Cut(pattern, "/")
		match, err := regexp.Compile(first)
		if err != nil {
			t.Errorf("%s:%d: %v", page, line, err)
			continue
		}
		if !match.MatchString(names) {
			t.Errorf("%s:%d: no test of %v matches %q", page, line, folders, pattern)
		}
	}
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)

// testNames returns the names of tests in folders that are compiled with these
// build tags, one in a line.
func testNames(t *testing.T, page string, line int, folders, tags []string) string {
	t.Helper()
	var names strings.Builder
	for _, folder := range folders {
		dir, below := strings.CutSuffix(folder, "/...")
		files, err := filepath.Glob(filepath.Join(shareddata.Root(t), dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 && !below {
			t.Errorf("%s:%d: there is no test in %s", page, line, folder)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !compiled(t, string(text), tags) {
				continue
			}
			for _, part := range testName.FindAllStringSubmatch(string(text), -1) {
				names.WriteString(part[1] + "\n")
			}
		}
	}
	return names.String()
}

// machine are the build constraints that hold where a page's commands are typed.
var machine = []string{"linux", "unix", "cgo", "amd64"}

// compiled says whether a file's //go:build line lets it be compiled with these tags.
func compiled(t *testing.T, text string, tags []string) bool {
	t.Helper()
	first, _, _ := strings.Cut(text, "\n")
	if !constraint.IsGoBuild(first) {
		return true
	}
	expr, err := constraint.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	return expr.Eval(func(tag string) bool {
		return slices.Contains(machine, tag) || slices.Contains(tags, tag)
	})
}
