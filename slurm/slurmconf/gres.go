package slurmconf

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// Device is one GPU of a node as its configuration names it.
type Device struct {
	Type  string // "h200", or empty
	File  string // /dev/nvidia3; empty: found by AutoDetect alone
	Minor int    // the number at the end of the file's name; -1: none, or only a part of a GPU
}

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
	m := DeviceMap{AutoDetect: r.auto}
	if r.ownAuto != "" {
		m.AutoDetect = r.ownAuto
	}
	if wanted, ok := nodeGres(fsys, path.Join(dir, "slurm.conf"), node); ok {
		records, m.Counted = mergeGres(records, wanted), true
	}
	for _, g := range records {
		m.Devices = append(m.Devices, g.devices()...)
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

// devices are those of a record; those without a file come by AutoDetect.
func (g *gresRecord) devices() []Device {
	list := make([]Device, g.count)
	for i := range list {
		list[i] = Device{Type: g.kind, Minor: -1}
		switch {
		case g.whole:
			list[i].File = g.files[0]
		case i < len(g.files):
			list[i].File, list[i].Minor = g.files[i], minorOf(g.files[i])
		}
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

// nodeGres is what slurm.conf says of a node's GPUs; false where it doesn't name
// the node, or can't be read.
func nodeGres(fsys fs.FS, name, node string) (list []slurm.Gres, ok bool) {
	common := "" // of NodeName=DEFAULT
	err := readConf(fsys, name, 0, func(_ string, l Line) error {
		words := strings.Fields(l.Text)
		key, value, _ := strings.Cut(words[0], "=")
		if !strings.EqualFold(key, "NodeName") {
			return nil
		}
		gres := common
		for _, w := range words[1:] {
			if k, v, _ := strings.Cut(w, "="); strings.EqualFold(k, "Gres") {
				gres = strings.Trim(v, `"`)
			}
		}
		if strings.EqualFold(value, "DEFAULT") {
			common = gres
			return nil
		}
		names, err := slurm.ExpandHostlist(strings.Trim(value, `"`))
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
	v := map[string]string{}
	for w := range strings.FieldsSeq(l.Text) {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return &slurm.ParseError{
				Source: file, Line: l.Number, Column: strings.Index(l.Text, w) + 1,
				Msg: fmt.Sprintf("%q: want key=value", slurm.Printable(w, 60)),
			}
		}
		v[strings.ToLower(key)] = strings.Trim(value, `"`)
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

// recordOf is the record of a line about GPUs.
func recordOf(v map[string]string) (gresRecord, error) {
	g := gresRecord{kind: v["type"], count: 1}
	list := v["multiplefiles"]
	g.whole = list != ""
	for _, key := range []string{"file", "files"} {
		if v[key] != "" {
			list = v[key]
		}
	}
	var err error
	switch {
	case list != "":
		if g.files, err = slurm.ExpandPaths(list); err != nil {
			return g, err
		}
		if len(g.files) > slurm.MaxGresIndex {
			return g, fmt.Errorf("more than %d device files: %w", slurm.MaxGresIndex, slurm.ErrInvalid)
		}
		if !g.whole {
			g.count = len(g.files)
		}
	case v["count"] != "":
		if g.count, err = strconv.Atoi(v["count"]); err != nil || g.count < 0 || g.count > slurm.MaxGresIndex {
			return g, fmt.Errorf("%q GPUs (Count): want a number up to %d: %w", slurm.Printable(v["count"], 40),
				slurm.MaxGresIndex, slurm.ErrInvalid)
		}
	}
	return g, nil
}

// minorOf reads the number that a device file's name ends with.
func minorOf(file string) int {
	base := filepath.Base(file)
	digits := base[len(strings.TrimRight(base, "0123456789")):]
	n, err := strconv.Atoi(digits)
	if err != nil || n >= 1<<20 {
		return -1
	}
	return n
}
