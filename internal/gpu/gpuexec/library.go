package gpuexec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/statedir"
)

// Options are the surroundings of a machine's GPUs.
type Options struct {
	// Root is the folder in which /proc and /sys tell the numbers of device files; "" means "/".
	Root string
	// Profiles are the GPU models whose clocks are known; nil means the built-in ones.
	Profiles *config.Profiles
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Library finds GPUs by commands.
type Library struct {
	commands *config.GPUCommands
	root     string
	profiles *config.Profiles
	now      func() time.Time
}

var _ gpu.Library = (*Library)(nil)

// Open reads a file of commands; it runs none. The file must be one that nobody else can
// have written.
func Open(file string, o Options) (*Library, error) {
	if err := statedir.CheckFile(file); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("GPU commands: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	commands, err := config.ReadGPUCommands(f, file)
	if err != nil {
		return nil, fmt.Errorf("GPU commands: %w", err)
	}
	l := &Library{commands: commands, root: o.Root, profiles: o.Profiles, now: o.Now}
	if l.root == "" {
		l.root = "/"
	}
	if l.profiles == nil {
		l.profiles = config.BuiltinProfiles()
	}
	if l.now == nil {
		l.now = time.Now
	}
	return l, nil
}

// Close gives nothing back: the GPUs stay as they are.
func (l *Library) Close() error { return nil }

// Devices is part of [gpu.Library]: those that the list has, by their PCI bus ids.
func (l *Library) Devices() ([]gpu.Device, error) {
	rows, err := l.table(&l.commands.List, nil)
	if err != nil {
		return nil, fmt.Errorf("GPU commands: list the GPUs: %w", err)
	}
	found := make([]*Device, 0, len(rows))
	var errs []error
	for i := range rows {
		d, err := l.open(&rows[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("GPU commands: %w", err))
			if d == nil { // its place isn't known, and so nobody's is
				return nil, errors.Join(errs...)
			}
		}
		found = append(found, d)
	}
	slices.SortStableFunc(found, func(a, b *Device) int { return strings.Compare(a.id.Bus, b.id.Bus) })
	devices := make([]gpu.Device, len(found))
	for i, d := range found {
		twice := slices.ContainsFunc(found, func(o *Device) bool {
			return o != d && (o.id.UUID == d.id.UUID || o.id.Bus == d.id.Bus)
		})
		switch {
		case twice:
			errs = append(errs, fmt.Errorf("GPU commands: %s is listed twice", d.id))
		case d.id.Minor >= 0:
			devices[i] = d
		}
	}
	return devices, errors.Join(errs...)
}

var (
	busText  = regexp.MustCompile(`^(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])$`)
	uuidText = regexp.MustCompile(`^GPU-[0-9A-Za-z-]{4,64}$`)
	hexText  = regexp.MustCompile(`^(?:0x)?([0-9a-fA-F]{8,16})$`)
)

// open makes a device of a line of the list. With an error the device may be one that is known by
// its place alone, which has no device file.
func (l *Library) open(r *row) (*Device, error) {
	d := &Device{library: l, index: r.cells["index"]}
	m := busText.FindStringSubmatch(r.cells["bus"])
	if m == nil {
		return nil, r.fault("bus", "want a PCI bus id, such as 00000000:3B:00.0")
	}
	var domain uint64
	if m[1] != "" {
		domain, _ = strconv.ParseUint(m[1], 16, 32)
	}
	d.id = gpu.Identity{
		Bus:   strings.ToUpper(fmt.Sprintf("%08x:%s:%s.%s", domain, m[2], m[3], m[4])),
		Model: r.cells["model"], UUID: r.cells["uuid"], Minor: -1,
	}
	if hex := hexText.FindStringSubmatch(d.id.UUID); hex != nil { // rocm-smi's unique id
		d.id.UUID = "GPU-" + strings.Repeat("0", 16-len(hex[1])) + strings.ToLower(hex[1])
	}
	if _, err := strconv.Atoi(d.index); err != nil && d.index != "" {
		return nil, r.fault("index", "want a number")
	}
	if !uuidText.MatchString(d.id.UUID) {
		return d, r.fault("uuid", "want GPU-… or a number of 16 hexadecimal digits")
	}
	if d.id.Model == "" {
		return d, r.fault("model", "want a name")
	}
	minor, err := l.minor(r, strings.ToLower(fmt.Sprintf("%04x:%s:%s.%s", domain, m[2], m[3], m[4])))
	if err != nil {
		return d, err
	}
	if err := d.findBounds(); err != nil {
		return d, err
	}
	d.id.Minor = minor
	return d, nil
}

// minor is the number of a GPU's device file: by the list, or by what NVIDIA's and AMD's
// drivers tell everybody of a PCI address.
func (l *Library) minor(r *row, address string) (int, error) {
	if cell, ok := r.cells["minor"]; ok {
		n, err := strconv.Atoi(cell)
		if err != nil || n < 0 {
			return -1, r.fault("minor", "want a number")
		}
		return n, nil
	}
	name := filepath.Join(l.root, "proc/driver/nvidia/gpus", address, "information")
	if information, err := os.ReadFile(name); err == nil {
		for line := range strings.Lines(string(information)) {
			if _, number, ok := strings.Cut(line, "Device Minor:"); ok {
				return strconv.Atoi(strings.TrimSpace(number))
			}
		}
	}
	names, err := filepath.Glob(filepath.Join(l.root, "sys/bus/pci/devices", address, "drm/renderD*"))
	if err == nil && len(names) == 1 {
		return strconv.Atoi(strings.TrimPrefix(filepath.Base(names[0]), "renderD"))
	}
	return -1, fmt.Errorf("%s: line %d: no driver tells the number of the device file of %s, want a "+
		"column minor", r.command, r.line, r.cells["bus"])
}
