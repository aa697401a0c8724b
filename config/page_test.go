package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

// referencePage is written from the same fields that read the files.
const referencePage = "../docs/reference/config.md"

// described is a table of a file, with what the fields themselves don't say.
type described struct {
	header string
	note   string
	fields []field
}

const (
	readByBoth = "For plans, and for `epd`'s decisions."
	readByEPD  = "" // the page's head says so for all of these tables
)

// configTables returns the tables of a configuration, in the order of DefaultText.
func configTables() []described {
	c := Default()
	class, shared := newClass(), sharedClass{}
	return []described{
		{"[objective]", readByBoth, c.objective.fields()},
		{
			"[policy]", "For plans. `--policy`, `--theta` and `--rho` override it.",
			c.Policy.fields(),
		},
		{"[safety]", readByBoth, c.Safety.fields()},
		{"[live]", readByEPD, c.Live.fields()},
		{"[live.pick]", readByEPD, c.Live.Pick.fields()},
		{"[live.plan]", readByEPD, c.Live.Plan.fields()},
		{"[live.hours]", readByEPD, c.Live.Hours.fields()},
		{"[live.sharing]", readByEPD, c.Live.Sharing.fields()},
		{"[live.adapt]", readByEPD, c.Live.Adapt.fields()},
		{"[live.cap]", readByEPD, c.Live.Cap.fields()},
		{"[live.profile]", readByEPD, c.Live.Profile.fields()},
		{"[predict]", readByEPD, c.Predict.fields()},
		{"[records]", readByEPD, c.Records.fields()},
		{"[factors]", readByEPD, c.Factors.fields()},
		{"[budget]", readByEPD, c.Budget.fields()},
		{"[web]", readByEPD, c.Web.fields()},
		{"[web.oidc]", readByEPD, c.Web.OIDC.fields()},
		{
			"[cluster]", "For plans; `epd` reads only the power of nodes beside their GPUs.",
			c.clusterFields(),
		},
		{
			"[cluster.sharing]",
			"Power and run times of shared GPUs by clock.",
			c.sharedGPU.fields(),
		},
		{
			"[[cluster.nodes]]", "One table for each kind of node. They replace all default ones.",
			append(classFields(&class), shared.fields()...),
		},
		{
			"[[gpu]]", "A GPU model that epplan doesn't know, or knows otherwise. `--power` of `epplan " +
				"replay` reads these tables too.", (&Profile{HostW: defaultHostW}).fields(),
		},
	}
}

// otherTables returns those of files that aren't configurations.
func otherTables() []described {
	paper, fitted, capped := &Model{}, &Model{}, &Model{}
	return []described{
		{
			"[[cpu]]", "A CPU model, in a file for `--power` of `epplab replay`. The first is that of " +
				"nodes without one.", (&CPU{Threads: 1}).fields(),
		},
		{
			"[[model]] of the paper's form",
			"A workload on a GPU model, written by `epplan model fit` and read by `--models`.",
			paper.fields(map[string]any{"form": formText(dvfsmodel.PaperForm())}),
		},
		{
			"[[model]] of other forms", "The same keys, but `coefficients` in place of `p0_w` to `t0_s`; with the " +
				"form `capped`, for several power caps, also the caps.",
			append(slices.DeleteFunc(fitted.fields(map[string]any{"form": "log-knee+log-quadratic"}),
				func(f field) bool { return f.key != "coefficients" }), capped.capFields()...),
		},
	}
}

// fieldRow returns a field as a row of a table in Markdown.
func fieldRow(f field) string {
	byDefault := ""
	switch {
	case f.required:
		byDefault = "required"
	case f.isDerived:
		byDefault = "from " + f.from
	case f.format != nil:
		byDefault = f.format()
		if byDefault == `""` || byDefault == "[]" || byDefault == numberText(math.NaN()) {
			byDefault = ""
		} else {
			byDefault = "`" + byDefault + "`"
		}
	}
	cell := func(s string) string { return strings.NewReplacer("\n", " ", "|", `\|`).Replace(s) }
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", f.key, cell(byDefault), cell(taken(f.expected)), cell(f.doc))
}

var (
	// tableOf matches the description of a value that is a table, whose keys the field's own text states.
	tableOf = regexp.MustCompile(`^a table of (?:partitions|hostlists|GPU models), each with ([^;]*).*`)
	inRange = regexp.MustCompile(`a number from (\S+) to (\S+)`)
	integer = regexp.MustCompile(`a whole number from (\S+) to (\S+)`)
)

// taken returns the description of a field's values, which is worded for messages, as the page has it.
func taken(expected string) string {
	expected = tableOf.ReplaceAllString(expected, "$1")
	for _, short := range []struct{ long, short string }{
		{", up to 1e+15", ""},
		{"a number from 0 to 1e+15", "≥ 0"},
		{"a number from 1 to 1e+15", "≥ 1"},
		{"a number above ", "> "},
		{" times the default clock, not MHz", ""},
		{"a line of text", "text"},
		{"an array of ", ""},
		{"true or false", "boolean"},
		{"one of ", ""},
		{"a mode", "mode"},
	} {
		expected = strings.ReplaceAll(expected, short.long, short.short)
	}
	return inRange.ReplaceAllString(integer.ReplaceAllString(expected, "integer $1–$2"), "$1–$2")
}

// pageHead is the beginning of the page, with ' for each backquote.
const pageHead = `# Configuration

<!-- Written by go test ./config -update. -->

One TOML file configures the commands that plan ('plan', 'compare', 'explain', 'replay') and 'epd'. Every
key is optional. 'epplan config init' writes a file with all keys, 'epplan config check' finds mistakes with
line and column, 'epplan config show' says where each value comes from. If a file has a mistake, all of it
is refused, and 'epd' keeps the configuration in force.

'epd' reads [live] to [web] at its start, and again by ['epplan reload'](../cli.md#epplan-reload) or SIGHUP.
Numbers are at most 1e15. Keys end in their unit: '_s' seconds, '_w' watts, '_j' joules, '_mhz' megahertz,
'_gib' 2³⁰ bytes.

`

func referenceText() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(pageHead, "'", "`"))
	section := func(d described) {
		fmt.Fprintf(&b, "## %s\n\n", d.header)
		if d.note != "" {
			b.WriteString(d.note + "\n\n")
		}
		b.WriteString("| key | default | takes | meaning |\n|---|---|---|---|\n")
		for _, f := range d.fields {
			b.WriteString(fieldRow(f))
		}
		b.WriteString("\n")
	}
	for _, d := range configTables() {
		section(d)
	}
	b.WriteString("# Other files in TOML\n\n")
	for _, d := range otherTables() {
		section(d)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestTheReferencePageIsWhatTheFieldsSay(t *testing.T) {
	golden(t, referencePage, referenceText())
}

func TestEveryKeyIsExplained(t *testing.T) {
	for _, d := range append(configTables(), otherTables()...) {
		for _, f := range d.fields {
			if f.doc == "" || f.expected == "" {
				t.Errorf("%s %s: %q, takes %q", d.header, f.key, f.doc, f.expected)
			}
		}
	}
}

// A table that files may have and the page has not.
func TestTheReferencePageHasEveryTableOfTheDefaultFile(t *testing.T) {
	listed := make(map[string]bool)
	for _, d := range configTables() {
		listed[d.header] = true
	}
	for line := range strings.Lines(DefaultText()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") && !listed[line] {
			t.Errorf("the page has no %s", line)
		}
	}
}
