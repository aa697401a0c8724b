package config

import (
	"fmt"
	"math"
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
	readByPlans = "Read by the commands that plan (`plan`, `compare`, `explain`, `replay`), and by `epd` " +
		"for its decisions."
	readByEPD = "Read by `epd` at its start, and again by [`epplan " +
		"reload`](../cli.md#epplan-reload) or SIGHUP."
)

// configTables returns the tables of a configuration, in the order of DefaultText.
func configTables() []described {
	c := Default()
	class, shared := newClass(), sharedClass{}
	return []described{
		{"[objective]", readByPlans, c.objective.fields()},
		{
			"[policy]", "Read by the commands that plan. `--policy`, `--theta` and `--rho` go before it.",
			c.Policy.fields(),
		},
		{"[safety]", readByPlans, c.Safety.fields()},
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
		{
			"[factors]", readByEPD + " The price counts in plans, too, where the objective is `cost`.",
			c.Factors.fields(),
		},
		{"[budget]", readByEPD, c.Budget.fields()},
		{"[web]", readByEPD, c.Web.fields()},
		{
			"[cluster]", "Read by the commands that plan; `epd` takes from it what nodes use beside " +
				"their GPUs.", c.clusterFields(),
		},
		{
			"[cluster.sharing]",
			"Power and run times of GPUs that tasks share, by clock, and what sharing costs.",
			c.sharedGPU.fields(),
		},
		{
			"[[cluster.nodes]]", "A kind of node; as many tables as there are kinds. A file that has one " +
				"replaces all of the default ones.",
			append(classFields(&class), shared.fields()...),
		},
		{
			"[[gpu]]", "A GPU model that epplan doesn't know, or knows otherwise. `--power` of `epplan " +
				"replay` reads such tables too.", (&Profile{HostW: defaultHostW}).fields(),
		},
	}
}

// otherTables returns those of files that aren't configurations.
func otherTables() []described {
	paper, fitted, capped := &Model{}, &Model{}, &Model{}
	return []described{
		{
			"[[cpu]]", "A CPU model, in a file for `--power` of `epplab replay`; the first one is that of " +
				"nodes that don't say.", (&CPU{Threads: 1}).fields(),
		},
		{
			"[[model]] of the paper's form",
			"A workload on a GPU model, in a models file: `epplan model fit` writes them, " +
				"`--models` reads them.",
			paper.fields(map[string]any{"form": formText(dvfsmodel.PaperForm())}),
		},
		{
			"[[model]] of another form", "The same keys, but `coefficients` as a table.",
			fitted.fields(map[string]any{"form": "log-knee+log-quadratic"}),
		},
		{
			"[[model]] of the form capped",
			"Where several power caps were measured. The keys of another form, and two more.",
			capped.capFields(),
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
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", f.key, cell(byDefault), cell(f.expected), cell(f.doc))
}

func referenceText() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Written by go test ./config -update. -->

One TOML file serves the commands that plan and ` + "`epd`" + `. Every key may be left out. ` +
		"`epplan config init`" + ` writes a file with
all of them, ` + "`epplan config check`" + ` finds mistakes with line and column, ` + "`epplan config show`" +
		` says where each value comes from.
Numbers are at most 1e15; keys end in their unit: ` + "`_s`" + ` seconds, ` + "`_w`" + ` watts, ` + "`_j`" +
		` joules, ` + "`_mhz`" + ` megahertz, ` + "`_gib`" + ` 2³⁰ bytes.
A file with a mistake is refused as a whole; ` + "`epd`" + ` then keeps the configuration that was in force.

`)
	section := func(d described) {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| key | default | takes | meaning |\n|---|---|---|---|\n",
			d.header, d.note)
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
