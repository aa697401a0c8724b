package slurm

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Device is one GPU of a node by its position, the number that Slurm puts in
// SLURM_JOB_GPUS.
type Device struct {
	Position int
	Type     string // "h200", or empty
	File     string // /dev/nvidia3
	Minor    int    // the number at the end of the file's name, or -1
}

// DeviceMap is what gres.conf says about a node's GPUs.
type DeviceMap struct {
	Devices    []Device // by position; empty when NVML alone decides
	AutoDetect string   // "nvml", "off" or empty; with nvml and no files the positions are NVML's order by PCI bus id
}

const (
	maxConfBytes = 1 << 20
	maxIncludes  = 16
)

// ReadGresConf reads the file name in files for one node: lines in the order
// they stand in, NodeName filters, continued lines, comments, Include (relative
// to the file). Files and folders that the configuration names are the site's;
// fsys is where they are looked up, such as os.DirFS("/").
func ReadGresConf(fsys fs.FS, name, node string) (DeviceMap, error) {
	if err := ValidNode(node); err != nil {
		return DeviceMap{}, err
	}
	r := gresReader{fsys: fsys, node: node}
	if err := r.file(name, 0); err != nil {
		return DeviceMap{}, err
	}
	for i := range r.out.Devices {
		r.out.Devices[i].Position = i
	}
	return r.out, nil
}

type gresReader struct {
	fsys fs.FS
	node string
	out  DeviceMap
}

func (r *gresReader) file(name string, depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: more than %d nested Include lines: %w", name, maxIncludes, ErrInvalid)
	}
	data, err := fs.ReadFile(r.fsys, name)
	if err != nil {
		return fmt.Errorf("read gres.conf: %w", err)
	}
	if len(data) > maxConfBytes {
		return fmt.Errorf("%s: more than %d bytes: %w", name, maxConfBytes, ErrInvalid)
	}
	for _, line := range confLines(string(escapeInvalid(data, false))) {
		if err := r.line(name, line, depth); err != nil {
			return err
		}
	}
	return nil
}

// confLine is one line of a Slurm configuration, with what continues it.
type confLine struct {
	number int
	text   string
}

// confLines cuts comments, and joins lines that end with a backslash.
func confLines(text string) []confLine {
	var out []confLine
	var open bool
	for i, line := range strings.Split(text, "\n") {
		if at := strings.IndexByte(line, '#'); at >= 0 && (at == 0 || line[at-1] != '\\') {
			line = line[:at]
		}
		line = strings.TrimRight(line, " \t\r")
		body, more := strings.CutSuffix(line, `\`)
		if open {
			out[len(out)-1].text += " " + body
		} else {
			out = append(out, confLine{number: i + 1, text: body})
		}
		open = more
	}
	return slices.DeleteFunc(out, func(l confLine) bool { return strings.TrimSpace(l.text) == "" })
}

func (r *gresReader) line(file string, l confLine, depth int) error {
	words := strings.Fields(l.text)
	if strings.EqualFold(words[0], "include") && len(words) == 2 {
		target := words[1]
		if !strings.HasPrefix(target, "/") {
			target = path.Join(path.Dir(file), target)
		}
		if err := r.file(strings.TrimPrefix(target, "/"), depth+1); err != nil {
			return &ParseError{Source: file, Line: l.number, Msg: "Include", Err: err}
		}
		return nil
	}
	v := map[string]string{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return &ParseError{Source: file, Line: l.number, Column: strings.Index(l.text, w) + 1, Msg: fmt.Sprintf("%q: want key=value", Printable(w, 60))}
		}
		v[strings.ToLower(key)] = strings.Trim(value, `"`)
	}
	if err := r.entry(v); err != nil {
		return &ParseError{Source: file, Line: l.number, Msg: "gres", Err: err}
	}
	return nil
}

func (r *gresReader) entry(v map[string]string) error {
	if list, named := v["nodename"]; named {
		names, err := ExpandHostlist(list)
		if err != nil {
			return err
		}
		if !slices.Contains(names, r.node) {
			return nil
		}
	}
	if auto, ok := v["autodetect"]; ok {
		r.out.AutoDetect = strings.ToLower(auto)
	}
	if !strings.EqualFold(v["name"], "gpu") {
		return nil
	}
	list := v["file"]
	if list == "" {
		list = v["multiplefiles"]
	}
	if list == "" {
		return nil
	}
	files, err := expandFiles(list)
	if err != nil {
		return err
	}
	for _, f := range files {
		r.out.Devices = append(r.out.Devices, Device{Type: v["type"], File: f, Minor: minorOf(f)})
	}
	if len(r.out.Devices) > maxGresIndex {
		return fmt.Errorf("more than %d devices: %w", maxGresIndex, ErrInvalid)
	}
	return nil
}

// expandFiles expands "/dev/nvidia[2-3,5,7]" and lists of such, in order.
func expandFiles(list string) ([]string, error) {
	if strings.ContainsRune(list, 0) || !strings.HasPrefix(list, "/") {
		return nil, fmt.Errorf("file %q: want an absolute path", Printable(list, 80))
	}
	var out []string
	for start := 0; start <= len(list); {
		part, next, err := hostPart(list, start)
		if err != nil {
			return nil, err
		}
		start = next
		head, tail, ranged := strings.Cut(part, "[")
		if !ranged {
			out = append(out, part)
			continue
		}
		inside, rest, _ := strings.Cut(tail, "]")
		numbers, err := expandRanges(inside)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			out = append(out, head+n+rest)
		}
	}
	return out, nil
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

// At gives the device at a position.
func (m *DeviceMap) At(position int) (Device, bool) {
	if position < 0 || position >= len(m.Devices) {
		return Device{}, false
	}
	return m.Devices[position], true
}
