package config

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// GPUCommands are a site's commands by which epd finds, reads and sets GPUs where it isn't let at
// the driver itself. A command is its words, the first of them a file; none ever
// goes through a shell.
type GPUCommands struct {
	Timeout time.Duration // of one command
	// List prints a line for each GPU, Read one line for one GPU.
	List, Read GPUTable
	// Clocks prints a line for each pair of clocks that a GPU supports, Processes one for each
	// process that computes on it. Without a command there is no such list.
	Clocks, Processes GPUTable
	// How clocks and the power limit are set. Without commands they can't be.
	Core, Memory, Limit GPUSetting
}

// GPUTable is a command that prints a table, and what its columns are.
type GPUTable struct {
	Command []string
	Columns []string // "-" is one that isn't looked at
	// Separator is between columns.
	Separator string
}

// GPUSetting is how something is set and given back.
type GPUSetting struct{ Set, Release []string }

// Bounds of a command's time.
const (
	minCommandTime, maxCommandTime = 0.05, 60 // seconds
	defaultCommandTime             = 5 * time.Second
)

// Columns that commands may print. Those without a unit in their names are words.
var (
	listColumns = []string{"index", "uuid", "bus", "model", "minor", "-"}
	readColumns = []string{
		"power_w", "energy_j", "energy_mj", "energy_uj", "core_mhz", "memory_mhz", "utilisation_percent",
		"memory_used_mib", "memory_total_mib", "limit_w", "limit_min_w", "limit_max_w", "mig", "uuid", "-",
	}
	clockColumns   = []string{"memory_mhz", "core_mhz", "-"}
	processColumns = []string{"pid", "uuid", "-"}
)

// What a command's words may have in braces.
var (
	oneGPU    = []string{"index", "uuid", "bus"}
	oneClock  = []string{"index", "uuid", "bus", "mhz", "lowest_mhz"}
	oneMemory = []string{"index", "uuid", "bus", "mhz"}
	oneLimit  = []string{"index", "uuid", "bus", "watts"}
)

// ReadGPUCommands reads a TOML file of commands. Its error is a [FileError] that lists each fault
// with its line.
func ReadGPUCommands(r io.Reader, name string) (*GPUCommands, error) {
	d, err := parse(r, name)
	if err != nil {
		return nil, err
	}
	c := &GPUCommands{Timeout: defaultCommandTime}
	for _, t := range []*GPUTable{&c.List, &c.Read, &c.Clocks, &c.Processes} {
		t.Separator = ","
	}
	seconds := c.Timeout.Seconds()
	d.readFields("", "", d.root, []field{
		numberField("timeout_s", "How long a command may take.", &seconds,
			numberRange{min: minCommandTime, max: maxCommandTime}),
		requiredField(tableField("list", c.List.fields(listColumns, nil))),
		requiredField(tableField("read", c.Read.fields(readColumns, oneGPU))),
		tableField("clocks", c.Clocks.fields(clockColumns, oneGPU)),
		tableField("processes", c.Processes.fields(processColumns, oneGPU)),
		tableField("core", c.Core.fields(oneClock)),
		tableField("memory", c.Memory.fields(oneMemory)),
		tableField("limit", c.Limit.fields(oneLimit)),
	})
	c.Timeout = time.Duration(seconds * float64(time.Second))
	c.checkTogether(d)
	if err := d.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (t *GPUTable) fields(columns, placeholders []string) []field {
	return []field{
		requiredField(commandField("command", &t.Command, placeholders)),
		requiredField(checkedListField("columns", "What it prints.", &t.Columns,
			func(all []string, i int) string {
				switch {
				case !slices.Contains(columns, all[i]):
					return ", want one of " + strings.Join(columns, ", ")
				case all[i] != "-" && slices.Index(all, all[i]) < i:
					return " twice"
				}
				return ""
			})),
		checkedField(lineField("separator", "What is between columns.", &t.Separator),
			func(s string) error {
				if s == "" {
					return errors.New("want a separator, such as a comma")
				}
				return nil
			}),
	}
}

func (s *GPUSetting) fields(placeholders []string) []field {
	return []field{
		requiredField(commandField("set", &s.Set, placeholders)),
		requiredField(commandField("release", &s.Release, oneGPU)),
	}
}

// commandField is a command's words. The first is a file, by its whole path: which programs
// PATH finds isn't epd's to say.
func commandField(key string, to *[]string, placeholders []string) field {
	return checkedListField(key, "A command.", to, func(all []string, i int) string {
		if i == 0 && !filepath.IsAbs(all[0]) {
			return ", want the whole path of a program, such as /usr/bin/nvidia-smi"
		}
		for rest := all[i]; ; {
			_, after, found := strings.Cut(rest, "{")
			if !found {
				return ""
			}
			name, next, closed := strings.Cut(after, "}")
			if !closed || i == 0 || !slices.Contains(placeholders, name) {
				return ", want " + listOfPlaceholders(placeholders, i == 0)
			}
			rest = next
		}
	})
}

func listOfPlaceholders(names []string, first bool) string {
	if first || len(names) == 0 {
		return "no braces here"
	}
	return "in braces one of {" + strings.Join(names, "}, {") + "}"
}

// checkTogether notes what is missing beside what is there.
func (c *GPUCommands) checkTogether(d *document) {
	want := func(table string, t *GPUTable, columns ...string) {
		for _, column := range columns {
			if len(t.Columns) > 0 && !slices.Contains(t.Columns, column) {
				d.faultAt(table+".columns", "%s.columns have no %s, which is needed", table, column)
			}
		}
	}
	want("list", &c.List, "uuid", "bus", "model")
	want("clocks", &c.Clocks, "memory_mhz", "core_mhz")
	want("processes", &c.Processes, "pid")
	if len(c.Core.Set) > 0 || len(c.Memory.Set) > 0 {
		want("read", &c.Read, "core_mhz", "memory_mhz") // what was set is looked at
	}
	if len(c.Limit.Set) > 0 {
		want("read", &c.Read, "limit_w")
	}
	if slices.Contains(c.Read.Columns, "limit_max_w") {
		want("read", &c.Read, "limit_min_w")
	}
	counters := 0
	for _, column := range c.Read.Columns {
		if strings.HasPrefix(column, "energy_") {
			counters++
		}
	}
	if counters > 1 {
		d.faultAt("read.columns", "read.columns have %d energy counters, want one", counters)
	}
	if usesIndex(c) && len(c.List.Columns) > 0 && !slices.Contains(c.List.Columns, "index") {
		d.faultAt("list.columns", "list.columns have no index, which commands use")
	}
}

// usesIndex reports whether any command names a GPU by its index.
func usesIndex(c *GPUCommands) bool {
	for _, words := range [][]string{
		c.Read.Command, c.Clocks.Command, c.Processes.Command, c.Core.Set, c.Core.Release, c.Memory.Set,
		c.Memory.Release, c.Limit.Set, c.Limit.Release,
	} {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{index}") }) {
			return true
		}
	}
	return false
}
