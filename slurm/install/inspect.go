package install

import (
	"regexp"
	"strings"

	"github.com/epplan/epplan/slurm/hooks"
)

var (
	calledModule = regexp.MustCompile(`dofile\("([^"]*)"\)`)
	hookJournal  = regexp.MustCompile(`^[^#]*\sepilog\s.*--journal[ =]('[^']*'|"[^"]*"|[^\s'"]+)`)
	moduleValue  = regexp.MustCompile(`(?m)^local ([A-Z]+) +=[ \t]*"([^"\n]*)"`)
)

// SubmitCall finds the line of a job_submit.lua that calls our module, and
// gives the module's path.
func SubmitCall(script string) (module string, called bool) {
	for line := range strings.Lines(script) {
		if isMarked(line) && submitCall.MatchString(line) {
			return calledModule.FindStringSubmatch(line)[1], true
		}
	}
	return "", false
}

// Installed reports whether a file was written by an installation, and whether it
// is still as it was then.
func Installed(text string) (ours, unchanged bool) {
	return signature.MatchString(text), isIntact(text)
}

// CallsHook reports whether a script of hooks seems to call ours: it names both outside of
// comments.
func CallsHook(script string, hook hooks.Hook) bool {
	named, called := false, false
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			named, called = named || strings.Contains(line, "epplan"), called ||
				strings.Contains(line, string(hook))
		}
	}
	return named && called
}

// HookJournal gives the folder that a script of hooks names as epd's journal; ""
// where it names none.
func HookJournal(script string) string {
	for line := range strings.Lines(script) {
		if m := hookJournal.FindStringSubmatch(line); m != nil {
			return strings.Trim(m[1], "'\"")
		}
	}
	return ""
}

// ModuleValue gives a text setting of our module, such as SOCKET; "" where it
// has none.
func ModuleValue(module, name string) string {
	for _, m := range moduleValue.FindAllStringSubmatch(module, -1) {
		if m[1] == name {
			return m[2]
		}
	}
	return ""
}
