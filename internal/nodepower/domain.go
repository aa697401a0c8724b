package nodepower

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// ErrAbsent tells that the machine shows no energy counters of its CPUs.
var ErrAbsent = errors.New("no energy counters of CPUs")

// powerDomain is one counter.
type powerDomain struct {
	folder    string
	name      string
	wrapRange uint64 // microjoules at which the counter begins again at zero
}

// Folders of packages and of what lies in one. Others are left alone:
// intel-rapl-mmio counts the same packages again.
var (
	packageFolder   = regexp.MustCompile(`^intel-rapl:\d+$`)
	subdomainFolder = regexp.MustCompile(`^intel-rapl:\d+:\d+$`)
)

// findDomains finds packages and their memory. Cores are parts of packages, and
// psys, the platform, has packages in it: neither is counted again.
func findDomains(powercap fs.FS) ([]powerDomain, error) {
	entries, err := fs.ReadDir(powercap, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	} else if err != nil {
		return nil, fmt.Errorf("energy counters of CPUs: %w", err)
	}
	var found []powerDomain
	for _, e := range entries {
		folder := e.Name()
		isPackage := packageFolder.MatchString(folder)
		if !isPackage && !subdomainFolder.MatchString(folder) {
			continue
		}
		text, err := fs.ReadFile(powercap, folder+"/name")
		if err != nil {
			return nil, fmt.Errorf("energy counters of CPUs: %w", err)
		}
		name := strings.TrimSpace(string(text))
		if isPackage != strings.HasPrefix(name, "package") || !isPackage && name != "dram" {
			continue
		}
		span, err := readNumber(powercap, folder+"/max_energy_range_uj")
		if err != nil {
			return nil, fmt.Errorf("range of %s: %w", name, err)
		}
		found = append(found, powerDomain{folder, name, span})
	}
	if len(found) == 0 {
		return nil, ErrAbsent
	}
	return found, nil
}

func readNumber(files fs.FS, path string) (uint64, error) {
	text, err := fs.ReadFile(files, path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

const microPerJoule = 1e6

// energyBetween returns what was counted between two readings. It isn't known when the
// counter may have wrapped around more than once, and when it was reset.
func (d *powerDomain) energyBetween(before, after uint64, elapsed time.Duration) (dvfsmodel.Joule, bool) {
	counted := after - before
	if after < before {
		counted += d.wrapRange // modulo 2^64, as is the difference
	}
	joules, span := dvfsmodel.Joule(float64(counted)/microPerJoule),
		dvfsmodel.Joule(float64(d.wrapRange)/microPerJoule)
	once := maxDomainPower.Over(elapsed.Seconds()) <= span
	return joules, once && joules <= span && joules <= maxDomainPower.Over((elapsed+counterLag).Seconds())
}
