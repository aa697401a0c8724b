package amdgpu

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// The kernel's files of clocks.
const (
	levelFile  = "power_dpm_force_performance_level"
	limitsFile = "pp_od_clk_voltage"
	coreFile   = "pp_dpm_sclk"
	memFile    = "pp_dpm_mclk"
)

// clockLevel is one line of a list of clocks, "1: 800Mhz *".
type clockLevel struct {
	index int
	mhz   dvfsmodel.MHz
}

var (
	levelLine   = regexp.MustCompile(`(?i)^([0-9]+):\s*([0-9]+)\s*mhz\s*\*?$`)
	asleepLine  = regexp.MustCompile(`(?i)^S:\s*[0-9]+\s*mhz\s*\*?$`)
	sectionLine = regexp.MustCompile(`^[A-Z][A-Z0-9_]*:$`)
)

// parseLevels reads a list of clocks. That of a GPU in deep sleep stands before the list.
func parseLevels(list []string) ([]clockLevel, error) {
	var found []clockLevel
	for _, line := range list {
		m := levelLine.FindStringSubmatch(line)
		switch {
		case line == "", asleepLine.MatchString(line):
			continue
		case m == nil:
			return nil, fmt.Errorf("%.60q in a list of clocks, want one such as \"1: 800Mhz\": %w", line, errText)
		}
		index, err := strconv.Atoi(m[1])
		mhz, second := strconv.Atoi(m[2])
		if err := errors.Join(err, second); err != nil {
			return nil, fmt.Errorf("%w: %w", errText, err)
		}
		found = append(found, clockLevel{index, dvfsmodel.MHz(mhz)})
	}
	return found, nil
}

func trim(data []byte) []byte { return bytes.TrimSpace(data) }

// lines returns those of a file, without blanks around them.
func lines(data []byte) []string {
	list := strings.Split(string(trim(data)), "\n")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// levels reads a file that lists clocks.
func (f files) levels(name string) ([]clockLevel, error) {
	text, err := f.text(name)
	if err != nil {
		return nil, err
	}
	found, err := parseLevels(lines([]byte(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return found, nil
}

// clockLimits is within what the firmware may move the clocks now; a span without a highest clock
// isn't there.
type clockLimits struct{ core, mem span }

// limits reads them. Until 2024 the drivers of MI200 and MI300 called the section of the core
// clock GFXCLK and had the running clock between the two limits. Sections that have
// voltages, too, are of boards before Vega 20 and are left out.
func (f files) limits() (clockLimits, error) {
	text, err := f.text(limitsFile)
	if err != nil {
		return clockLimits{}, err
	}
	sections := make(map[string][]string)
	section := ""
	for _, line := range lines([]byte(text)) {
		if sectionLine.MatchString(line) {
			section = line
			continue
		}
		sections[section] = append(sections[section], line)
	}
	spanOf := func(names ...string) span {
		for _, name := range names {
			if found, err := parseLevels(sections[name]); err == nil && len(found) > 0 {
				return span{found[0].mhz, found[len(found)-1].mhz}
			}
		}
		return span{}
	}
	return clockLimits{
		core: spanOf("OD_SCLK:", "GFXCLK:"), mem: spanOf("OD_MCLK:", "MCLK:"),
	}, nil
}

// limitCommand returns the command that makes a clock the lowest (0) or the highest (1).
func limitCommand(domain string, index int, f dvfsmodel.MHz) string {
	return fmt.Sprintf("%s %d %.0f", domain, index, float64(f))
}

// commit writes commands and makes them take effect.
func (f files) commit(commands ...string) error {
	for _, command := range append(commands, "c") {
		if err := f.write(limitsFile, command); err != nil {
			return err
		}
	}
	return nil
}

// allowLevels lets the firmware use the levels within limits.
func (f files) allowLevels(name string, limits span) error {
	found, err := f.levels(name)
	if err != nil {
		return err
	}
	var chosen []string
	for _, l := range found {
		if limits.Lo <= l.mhz && l.mhz <= limits.Hi {
			chosen = append(chosen, strconv.Itoa(l.index))
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("%s has no clock from %v to %v MHz", name, float64(limits.Lo), float64(limits.Hi))
	}
	return f.write(name, strings.Join(chosen, " "))
}
