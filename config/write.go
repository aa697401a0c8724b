package config

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

const configHead = `# Configuration of epplan. Every key may be left out; the values below are the
# defaults. A line that begins with "# key =" is a default that comes from
# somewhere else.
`

const showHead = "# Effective configuration of epplan. Each comment says where the value comes from.\n"

// DefaultText returns the default configuration as a file with comments. Loading
// it gives [Default].
func DefaultText() string {
	c := Default()
	var out bytes.Buffer
	out.WriteString(configHead)
	c.writeTo(&out, writeMeaning)
	return out.String()
}

// Show writes the effective configuration as TOML, each value with a comment
// that says where it comes from. It can be loaded again.
func (c *Config) Show(w io.Writer) error {
	var out bytes.Buffer
	out.WriteString(showHead)
	c.writeTo(&out, c.writeSource)
	_, err := w.Write(out.Bytes())
	return err
}

// fieldAnnotator writes one field of a table at a path.
type fieldAnnotator func(out *bytes.Buffer, path string, f field)

func (c *Config) writeTo(out *bytes.Buffer, show fieldAnnotator) {
	writeTable(out, "objective", "[objective]", c.objective.fields(), show)
	writeTable(out, "policy", "[policy]", c.Policy.fields(), show)
	writeTable(out, "safety", "[safety]", c.Safety.fields(), show)
	writeTable(out, "live", "[live]", c.Live.fields(), show)
	writeTable(out, "live.pick", "[live.pick]", c.Live.Pick.fields(), show)
	writeTable(out, "live.plan", "[live.plan]", c.Live.Plan.fields(), show)
	writeTable(out, "live.hours", "[live.hours]", c.Live.Hours.fields(), show)
	writeTable(out, "live.sharing", "[live.sharing]", c.Live.Sharing.fields(), show)
	writeTable(out, "live.adapt", "[live.adapt]", c.Live.Adapt.fields(), show)
	writeTable(out, "live.cap", "[live.cap]", c.Live.Cap.fields(), show)
	writeTable(out, "live.profile", "[live.profile]", c.Live.Profile.fields(), show)
	writeTable(out, "predict", "[predict]", c.Predict.fields(), show)
	writeTable(out, "records", "[records]", c.Records.fields(), show)
	writeTable(out, "factors", "[factors]", c.Factors.fields(), show)
	writeTable(out, "budget", "[budget]", c.Budget.fields(), show)
	writeTable(out, "web", "[web]", c.Web.fields(), show)
	writeTable(out, "web.oidc", "[web.oidc]", c.Web.OIDC.fields(), show)
	writeTable(out, "cluster", "[cluster]", c.clusterFields(), show)
	writeTable(out, "cluster.sharing", "[cluster.sharing]", c.sharedGPU.fields(), show)
	for i := range c.cluster.Classes {
		path := "cluster.nodes[" + strconv.Itoa(i) + "]"
		writeTable(out, path, "[[cluster.nodes]]",
			append(classFields(&c.cluster.Classes[i]), c.shared[i].fields()...), show)
	}
	for i := range c.gpus {
		path := "gpu[" + strconv.Itoa(i) + "]"
		writeTable(out, path, "[[gpu]]", c.gpus[i].setFields(), show)
	}
}

func writeTable(out *bytes.Buffer, path, header string, fields []field, show fieldAnnotator) {
	out.WriteString("\n" + header + "\n")
	for _, f := range fields {
		show(out, path, f)
	}
}

// writeMeaning puts a field's meaning above it.
func writeMeaning(out *bytes.Buffer, _ string, f field) {
	if f.doc != "" {
		out.WriteString("# " + strings.ReplaceAll(f.doc, "\n", "\n# ") + "\n")
	}
	if f.isDerived {
		fmt.Fprintf(out, "# %s = %s # from %s\n", f.key, f.format(), f.from)
		return
	}
	fmt.Fprintf(out, "%s = %s\n", f.key, f.format())
}

// writeSource puts behind a field where its value comes from.
func (c *Config) writeSource(out *bytes.Buffer, path string, f field) {
	from := "default"
	if f.isDerived {
		from = f.from
	}
	if pos, ok := c.origin[joinKey(path, f.key)]; ok {
		from = pos.String()
	}
	fmt.Fprintf(out, "%s = %s # %s\n", f.key, f.format(), from)
}

// setFields returns the fields that a profile has values for.
func (p *Profile) setFields() []field {
	absent := map[string]bool{
		"aliases":          len(p.Aliases) == 0,
		"default_core_mhz": p.Default.Core == 0,
		"default_mem_mhz":  p.Default.Mem == 0,
		"clocks":           len(p.Clocks) == 0,
		"range":            p.Range == "",
		"busy_w":           p.BusyW == 0,
		"energy_weight":    p.EnergyWeight == 0,
		"vendor":           p.Vendor == "",
		"memory_gb":        p.MemoryGB == 0,
		"limit_w_min":      p.PowerLimit.Min == 0,
		"limit_w_default":  p.PowerLimit.Default == 0,
		"limit_w_max":      p.PowerLimit.Max == 0,
		"core_lock":        p.CoreLock == nil,
		"memory_lock":      p.MemoryLock == nil,
		"energy_scope":     p.EnergyScope == "",
		"estimate":         len(p.Estimate) == 0,
		"source":           p.Source == "",
	}
	return slices.DeleteFunc(p.fields(), func(f field) bool { return absent[f.key] })
}

// Text returns the profile as a table of a file that [ReadProfiles] reads.
func (p *Profile) Text() string {
	var out bytes.Buffer
	writeTable(&out, "", "[[gpu]]", p.setFields(), func(out *bytes.Buffer, _ string, f field) {
		out.WriteString(f.key + " = " + f.format() + "\n")
	})
	return out.String()
}

// WriteModels writes models as a file that [ReadModels] reads.
func WriteModels(w io.Writer, models *Models) error {
	var out bytes.Buffer
	out.WriteString("# Models of workloads. Coefficients are relative to the base clocks.\n")
	for i := range models.list {
		models.list[i].write(&out)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (m *Model) write(out *bytes.Buffer) {
	out.WriteString("\n[[model]]\n")
	put := func(key, text string, given bool) {
		if given {
			out.WriteString(key + " = " + text + "\n")
		}
	}
	put("workload", strconv.Quote(m.Workload), true)
	put("gpu_model", strconv.Quote(m.GPUModel), true)
	put("form", strconv.Quote(formText(m.Form)), true)
	put("base_core_mhz", numberText(float64(m.Base.Core)), true)
	put("base_mem_mhz", numberText(float64(m.Base.Mem)), true)
	put("base_cap_w", numberText(float64(m.Base.Cap)), m.Base.Cap > 0)
	put("caps_w", numbersText(m.Caps), len(m.Caps) > 0)
	put("settings", strconv.Itoa(m.Settings), m.Settings > 0)
	put("time_mape", numberText(m.TimeMAPE), m.TimeMAPE > 0)
	put("power_mape", numberText(m.PowerMAPE), m.PowerMAPE > 0)
	put("source", strconv.Quote(m.Source), m.Source != "")
	put("clocks", clocksText(m.Clocks), len(m.Clocks) > 0)
	if len(m.Corrections) > 0 {
		out.WriteString("corrections = [\n")
		for _, c := range m.Corrections {
			under := ""
			if c.Cap > 0 {
				under = "cap_w = " + numberText(float64(c.Cap)) + ", "
			}
			fmt.Fprintf(out, "  { core_mhz = %s, mem_mhz = %s, %stime = %s, power = %s },\n",
				numberText(float64(c.Core)), numberText(float64(c.Mem)), under, numberText(c.Time),
				numberText(c.Power))
		}
		out.WriteString("]\n")
	}
	if m.Form != dvfsmodel.PaperForm() {
		out.WriteString("[model.coefficients]\n")
	}
	known := false
	for _, c := range m.Coefficients {
		put(c.Name, numberText(c.Value), c.Value != 0 || !dvfsmodel.IsOptional(c.Name))
		known = known || c.StdErr > 0
	}
	if !known {
		return
	}
	out.WriteString("[model.std_errors]\n")
	for _, c := range m.Coefficients {
		put(c.Name, numberText(c.StdErr), c.StdErr > 0)
	}
}
