package slurmconf

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// Device is one GPU of a node as its configuration names it.
type Device struct {
	Type string // "h200", or empty
	File string // /dev/nvidia3; empty: found by AutoDetect alone
	// Minor is 3 of /dev/nvidia3, and 131 of /dev/dri/renderD131 or of the card beside it; -1: the file isn't known
	// to be a whole GPU's.
	Minor int

	parts  []int // minors of GPUs that it has a part of (MultipleFiles)
	linked bool  // File isn't the name by which AutoDetect knows the GPU
}

// isForeign reports whether the configuration names a file that is no GPU's own.
func (d *Device) isForeign() bool { return d.File != "" && (d.Minor < 0 || d.linked) }

// DeviceMap is what gres.conf and slurm.conf say about a node's GPUs. From it follows which GPU a number of
// SLURM_JOB_GPUS means: [DeviceMap.DriverIndexes].
type DeviceMap struct {
	Devices []Device // in the order in which Slurm keeps them before it looks for GPUs by itself
	// AutoDetect is in lower case: "nvml", "nvidia", "off", … or empty.
	AutoDetect string
	// Counted tells that slurm.conf says how many GPUs the node has. Devices are as many then.
	Counted bool
}

// ReadGres reads gres.conf and slurm.conf in a folder for one node, as slurmd does:
// NodeName filters, continued lines, comments, Include (relative to the file), records
// with a NodeName after those without, a node's own AutoDetect before the global one,
// types and counts as slurm.conf has them. A slurm.conf that can't be read, or that
// doesn't name the node, leaves Counted false. Files that the configuration names are the
// site's; fsys is where they are looked up, such as os.DirFS("/").
func ReadGres(fsys fs.FS, dir, node string) (DeviceMap, error) {
	if err := slurm.ValidNode(node); err != nil {
		return DeviceMap{}, err
	}
	r := gresParser{node: node}
	if err := readConf(fsys, path.Join(dir, "gres.conf"), 0, r.addLine); err != nil {
		return DeviceMap{}, fmt.Errorf("read gres.conf: %w", err)
	}
	records := slices.Concat(r.common, r.own)
	nameless := func(g gresRecord) bool { return len(g.files) == 0 }
	if n := len(slices.DeleteFunc(slices.Clone(records), nameless)); n > 0 && n < len(records) {
		return DeviceMap{}, fmt.Errorf("read gres.conf: GPUs with File beside some without: %w", slurm.ErrInvalid)
	}
	m := DeviceMap{AutoDetect: r.auto}
	if r.ownAuto != "" {
		m.AutoDetect = r.ownAuto
	}
	if wanted, ok := nodeGres(fsys, path.Join(dir, "slurm.conf"), node); ok {
		records, m.Counted = mergeGres(records, wanted), true
	}
	for _, g := range records {
		m.Devices = append(m.Devices, g.devices(fsys)...)
	}
	if len(m.Devices) > slurm.MaxGresIndex {
		return DeviceMap{}, fmt.Errorf("%s: more than %d GPUs: %w", path.Join(dir, "gres.conf"),
			slurm.MaxGresIndex, slurm.ErrInvalid)
	}
	return m, nil
}

// gresRecord is one line of gres.conf about GPUs.
type gresRecord struct {
	kind  string // Type
	files []string
	whole bool // all files are of one device (MultipleFiles)
	count int  // of devices
}

// devices returns those of a record; those without a file come by AutoDetect.
func (g *gresRecord) devices(fsys fs.FS) []Device {
	list := make([]Device, g.count)
	for i := range list {
		list[i] = Device{Minor: -1}
		switch {
		case g.whole:
			list[i].File = g.files[0]
			for _, file := range g.files {
				if part := deviceOf(fsys, file); part.Minor >= 0 {
					list[i].parts = append(list[i].parts, part.Minor)
				}
			}
		case i < len(g.files):
			list[i] = deviceOf(fsys, g.files[i])
		}
		list[i].Type = g.kind
	}
	return list
}

// mergeGres puts records in the order of slurm.conf's types and cuts them to its
// counts. GPUs that no record has are added without a file.
func mergeGres(records []gresRecord, wanted []slurm.Gres) []gresRecord {
	var out []gresRecord
	left := slices.Clone(records)
	for _, w := range wanted {
		count := int(min(w.Count, slurm.MaxGresIndex))
		for count > 0 {
			i := slices.IndexFunc(left, func(g gresRecord) bool {
				return w.Type == "" || strings.EqualFold(g.kind, w.Type)
			})
			if i < 0 {
				out = append(out, gresRecord{kind: w.Type, count: count})
				break
			}
			g := left[i]
			left = slices.Delete(left, i, i+1)
			g.count = min(g.count, count)
			if w.Type == "" {
				g.kind = ""
			}
			count -= g.count
			out = append(out, g)
		}
	}
	return out
}

// nodeGres returns what slurm.conf says of a node's GPUs; false where it doesn't name
// the node, or can't be read.
func nodeGres(fsys fs.FS, name, node string) (list []slurm.Gres, ok bool) {
	common := "" // of NodeName=DEFAULT
	err := readConf(fsys, name, 0, func(file string, l Line) error {
		if first := firstKey.FindStringSubmatch(l.Text); first == nil || !strings.EqualFold(first[1], "NodeName") {
			return nil
		}
		v, err := l.pairs(file)
		if err != nil {
			return err
		}
		gres := cmp.Or(v["gres"], common)
		if strings.EqualFold(v["nodename"], "DEFAULT") {
			common = gres
			return nil
		}
		names, err := slurm.ExpandHostlist(v["nodename"])
		if err != nil || !slices.Contains(names, node) {
			return err
		}
		list, err = slurm.ParseGres(gres)
		ok = true
		return err
	})
	if err != nil {
		return nil, false
	}
	return slices.DeleteFunc(list, func(g slurm.Gres) bool { return g.Name != "gpu" }), ok
}

// gresParser collects what gres.conf says for one node.
type gresParser struct {
	node          string
	common, own   []gresRecord // without and with a NodeName
	auto, ownAuto string
}

// addLine takes one line of gres.conf.
func (r *gresParser) addLine(file string, l Line) error {
	v, err := l.pairs(file)
	if err != nil {
		return err
	}
	if err := r.addEntry(v); err != nil {
		return &slurm.ParseError{Source: file, Line: l.Number, Msg: "gres", Err: err}
	}
	return nil
}

// addEntry takes the keys of one line, in lower case.
func (r *gresParser) addEntry(v map[string]string) error {
	list, named := v["nodename"]
	if named {
		names, err := slurm.ExpandHostlist(list)
		if err != nil {
			return err
		}
		if !slices.Contains(names, r.node) {
			return nil
		}
	}
	isGPU := strings.EqualFold(v["name"], "gpu")
	switch auto := strings.ToLower(v["autodetect"]); {
	case auto == "":
	case named:
		r.ownAuto = auto
	case v["name"] == "": // with a name but no node slurmd ignores it
		r.auto = auto
	}
	if !isGPU {
		return nil
	}
	g, err := recordOf(v)
	if err != nil {
		return err
	}
	if named {
		r.own = append(r.own, g)
	} else {
		r.common = append(r.common, g)
	}
	return nil
}

// recordOf returns the record of a line about GPUs. What slurmd refuses to start with is an error.
func recordOf(v map[string]string) (g gresRecord, err error) {
	g = gresRecord{kind: v["type"], count: 1}
	list := cmp.Or(v["file"], v["files"])
	if whole := v["multiplefiles"]; whole != "" {
		if g.whole = true; list != "" {
			return g, fmt.Errorf("a File beside MultipleFiles: %w", slurm.ErrInvalid)
		}
		list = whole
	}
	if list != "" {
		if g.files, err = slurm.ExpandPaths(list); err != nil {
			return g, err
		}
		switch {
		case len(g.files) > slurm.MaxGresIndex:
			return g, fmt.Errorf("more than %d device files: %w", slurm.MaxGresIndex, slurm.ErrInvalid)
		case !g.whole:
			g.count = len(g.files)
		case len(g.files) < 2:
			return g, fmt.Errorf("MultipleFiles with one file: %w", slurm.ErrInvalid)
		}
	}
	if v["count"] == "" {
		return g, nil
	}
	count, err := strconv.Atoi(v["count"])
	if err != nil || count < 0 || count > slurm.MaxGresIndex {
		return g, fmt.Errorf("%q GPUs (Count): want a number up to %d: %w", slurm.Printable(v["count"], 40),
			slurm.MaxGresIndex, slurm.ErrInvalid)
	}
	if list != "" && count != g.count {
		return g, fmt.Errorf("%d device files, and Count=%d: %w", g.count, count, slurm.ErrInvalid)
	}
	g.count = count
	return g, nil
}
