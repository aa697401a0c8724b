package amdgpu

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/gpu"
)

// Options are the surroundings of a machine's AMD GPUs.
type Options struct {
	// Sysfs is the kernel's folder of devices; nil means "/sys".
	Sysfs Sysfs
	// Notes is the folder that holds what the GPUs were set to before; it outlives the
	// process, and belongs to root. "" keeps it in memory: a process that is killed
	// can't be cleaned up after then.
	Notes string
	// Driver tells this load of the driver from others: what was noted before a reload isn't
	// given back. "" is of all.
	Driver string
	// Root tells that the process may do what root may.
	Root bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Library finds the AMD GPUs of a machine.
type Library struct {
	sys    Sysfs
	notes  *noteFolder
	driver string
	root   bool
	now    func() time.Time
}

var _ gpu.Library = (*Library)(nil)

// Open makes a library; it looks for nothing yet. Without the amdgpu driver the error says
// so, and is [gpu.ErrNotSupported].
func Open(o Options) (*Library, error) {
	l := &Library{
		sys: o.Sysfs, notes: &noteFolder{dir: o.Notes}, driver: o.Driver, root: o.Root, now: o.Now,
	}
	if l.sys == nil {
		l.sys = Folder("/sys")
	}
	if l.now == nil {
		l.now = time.Now
	}
	if _, err := l.sys.Names("class/drm"); err != nil {
		return nil, fmt.Errorf("AMD: no graphics driver is loaded, want amdgpu (%w): %w", err,
			gpu.ErrNotSupported)
	}
	return l, nil
}

// Close gives nothing back: the GPUs stay as they are.
func (l *Library) Close() error { return nil }

// amdVendor is AMD's PCI vendor id.
const amdVendor = "0x1002"

var (
	cardName   = regexp.MustCompile(`^card[0-9]+$`)
	renderName = regexp.MustCompile(`^renderD([0-9]+)$`)
	pciAddress = regexp.MustCompile(`^([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$`)
)

// Devices is part of [gpu.Library]: the GPUs that the amdgpu driver has, by their PCI
// addresses. One without an id of its own can't be told from others, and is left out with an error.
func (l *Library) Devices() ([]gpu.Device, error) {
	addresses, err := l.addresses()
	if err != nil {
		return nil, fmt.Errorf("AMD: count GPUs: %w", err)
	}
	devices := make([]gpu.Device, len(addresses))
	var errs []error
	at := make(map[string]int) // by UUID
	for i, address := range addresses {
		d, err := l.open(address)
		if err == nil {
			first, twice := at[d.id.UUID]
			at[d.id.UUID] = i
			if twice {
				devices[first] = nil
				err = fmt.Errorf("its unique_id is that of %s, too", addresses[first])
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("AMD: open GPU %d, %s: %w", i, address, err))
			continue
		}
		devices[i] = d
	}
	return devices, errors.Join(errs...)
}

// addresses returns the PCI addresses of the GPUs that the amdgpu driver has, in order.
func (l *Library) addresses() ([]string, error) {
	names, err := l.sys.Names("class/drm")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		if !cardName.MatchString(name) {
			continue // a connector, or a render node
		}
		device := filepath.Join("class/drm", name, "device")
		vendor, err := l.sys.ReadFile(filepath.Join(device, "vendor"))
		if err != nil || strings.TrimSpace(string(vendor)) != amdVendor {
			continue // another maker's, or a part of a divided GPU, which has no PCI device
		}
		driver, err := l.sys.Readlink(filepath.Join(device, "driver"))
		if err != nil || filepath.Base(driver) != "amdgpu" {
			continue
		}
		link, err := l.sys.Readlink(device)
		if err != nil {
			return nil, err
		}
		if address := filepath.Base(link); pciAddress.MatchString(address) {
			found = append(found, address)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(busOf(a), busOf(b)) })
	return slices.Compact(found), nil
}

// busOf returns a PCI address in NVML's long form, by which GPUs sort as numbers do.
func busOf(address string) string {
	m := pciAddress.FindStringSubmatch(address)
	domain := strings.Repeat("0", 8-len(m[1])) + m[1]
	return strings.ToUpper(fmt.Sprintf("%s:%s:%s.%s", domain, m[2], m[3], m[4]))
}

// open makes a device of one address.
func (l *Library) open(address string) (*Device, error) {
	d := &Device{
		library: l, files: files{l.sys, filepath.Join("bus/pci/devices", address)},
		id: gpu.Identity{Bus: busOf(address), Minor: -1},
	}
	unique, err := d.files.text("unique_id")
	if err != nil || strings.Trim(unique, "0") == "" {
		return nil, errors.Join(errors.New("no unique_id, by which it could be told from others"), err)
	}
	if _, err := strconv.ParseUint(unique, 16, 64); err != nil {
		return nil, fmt.Errorf("unique_id %.40q, want 16 hexadecimal digits", unique)
	}
	d.id.UUID = "GPU-" + strings.ToLower(unique) // as HIP and ROCR_VISIBLE_DEVICES have it
	for _, name := range d.files.names("drm") {
		if m := renderName.FindStringSubmatch(name); m != nil && d.id.Minor < 0 {
			d.id.Minor, _ = strconv.Atoi(m[1])
		}
	}
	if d.id.Minor < 0 {
		return nil, errors.New("no device file renderD… by which gres.conf could name it")
	}
	d.id.Model = d.model()
	for _, name := range d.files.names("hwmon") {
		folder := filepath.Join("hwmon", name)
		if text, err := d.files.text(filepath.Join(folder, "name")); err == nil && text == "amdgpu" {
			d.sensors = sensors{d.files, folder}
		}
	}
	if err := d.detectCapability(); err != nil {
		return nil, d.classify(err)
	}
	return d, nil
}

// models are the names of boards whose memory doesn't tell theirs, by PCI device id as the
// public list of PCI ids has them.
var models = map[string]string{
	"0x738c": "AMD Instinct MI100",
	"0x7408": "AMD Instinct MI250X",
	"0x740c": "AMD Instinct MI250X",
	"0x740f": "AMD Instinct MI210",
	"0x74a0": "AMD Instinct MI300A",
	"0x74a1": "AMD Instinct MI300X",
	"0x74a5": "AMD Instinct MI325X",
}

// model returns the board's name, by its own memory where that has one.
func (d *Device) model() string {
	if name, err := d.files.text("product_name"); err == nil && name != "" {
		return name
	}
	id, err := d.files.text("device")
	if err != nil {
		return "AMD GPU"
	}
	if name, known := models[id]; known {
		return name
	}
	return "AMD GPU " + id
}
