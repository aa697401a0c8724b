package smi

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

// device is one GPU as a tool prints it; 0 and "" where it doesn't say.
type device struct {
	line         int    // where it begins
	id           string // by which the tool tells GPUs apart
	name         string
	architecture string
	pairs        map[dvfsmodel.Setting]bool // supported clocks
	levels       levels                     // of AMD's GPUs, instead of pairs
	application  dvfsmodel.Setting          // default application clocks
	boost        dvfsmodel.MHz              // the highest clock that its maker promises
	top          dvfsmodel.Setting
	limit        config.PowerLimit
	draw         dvfsmodel.Watt
	isIdle       bool
	isModule     bool // the module has readings of its own
}

// levels are the clocks between which AMD's GPUs choose.
type levels struct{ core, mem []dvfsmodel.MHz }

// Bounds of what a tool can print.
const (
	maxDevices = 4096
	maxMHz     = 100_000
	maxWatts   = 100_000
	maxBytes   = 64 << 20
	maxLine    = 1 << 20
	maxPairs   = 100_000
)

// fault is a line of the output that can't be right.
type fault struct {
	file string
	line int
	msg  string
}

func (f *fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.msg) }

// reader collects the devices of an output.
type reader struct {
	file    string
	line    int
	devices []*device
	byID    map[string]*device
	list    []string // names of nvidia-smi -L, in order
}

func (r *reader) faultf(format string, args ...any) error {
	return &fault{r.file, r.line, queue.Printable(fmt.Sprintf(format, args...))}
}

// device returns the device of an id; a second output about the same GPU adds to it.
func (r *reader) device(id string) (*device, error) {
	if d, ok := r.byID[id]; ok {
		return d, nil
	}
	if len(r.devices) == maxDevices {
		return nil, r.faultf("more than %d GPUs", maxDevices)
	}
	d := &device{line: r.line, id: id, pairs: make(map[dvfsmodel.Setting]bool)}
	r.devices, r.byID[id] = append(r.devices, d), d
	return d, nil
}

// Read describes the GPU models of a tool's output: nvidia-smi -q as text or XML, rocm-smi or amd-smi
// static. Outputs may follow one another: what they say of one GPU is put together.
func Read(in io.Reader, file string, options *Options) ([]Model, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", file, err)
	case len(text) > maxBytes:
		return nil, fmt.Errorf("%s: more than %d MiB, want the output of one node", file, maxBytes>>20)
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, fmt.Errorf("%s:1: binary data, want the text or XML that nvidia-smi, rocm-smi or amd-smi "+
			"prints", file)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	r := &reader{file: file, byID: make(map[string]*device)}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		err = r.readXML(text)
	} else {
		err = r.readText(text)
	}
	if err != nil {
		return nil, err
	}
	if len(r.devices) == 0 {
		return nil, fmt.Errorf("%s: no GPU in it, want the output of nvidia-smi -q -x, rocm-smi -a or amd-smi "+
			"static", file)
	}
	if len(r.list) == len(r.devices) {
		for i, d := range r.devices {
			d.name = cmp.Or(d.name, r.list[i])
		}
	}
	return r.models(options)
}

var (
	nvidiaGPU = regexp.MustCompile(`^(?:GPU|Attached GPU) +([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$`)
	nvidiaL   = regexp.MustCompile(`^GPU +[0-9]+: +(.+?) +\(UUID: `)
	rocmLine  = regexp.MustCompile(`^(GPU\[[0-9]+\])\s*: ?(.*)$`)
	amdGPU    = regexp.MustCompile(`^GPU: +([0-9]+)\s*$`)
	rocmTable = regexp.MustCompile(`^Supported (\w+) frequencies`)
	level     = regexp.MustCompile(`^(?:LEVEL )?([0-9]{1,3})$`)
)

// readText reads the lines of any of the tools.
func (r *reader) readText(text []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	var at section
	for lines.Scan() {
		r.line++
		line := strings.TrimRight(lines.Text(), " \t\r")
		var err error
		if m := nvidiaGPU.FindStringSubmatch(line); m != nil {
			at = section{}
			at.device, err = r.device(strings.ToLower(m[1]))
		} else if m := amdGPU.FindStringSubmatch(line); m != nil {
			at = section{isAMD: true}
			at.device, err = r.device("amd " + m[1])
		} else if m := nvidiaL.FindStringSubmatch(line); m != nil {
			r.list = append(r.list, m[1])
		} else if m := rocmLine.FindStringSubmatch(line); m != nil {
			err = r.readRocm(&at, m[1], m[2])
		} else if at.device != nil && line != "" && (line[0] == ' ' || line[0] == '\t') {
			err = r.readKey(&at, line)
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		r.line++
		return r.faultf("more than %d bytes, want the output of nvidia-smi, rocm-smi or amd-smi", maxLine)
	}
	return nil
}

// section is where in the output of a GPU a reader is.
type section struct {
	device *device
	isAMD  bool
	heads  []head        // the open headings, outermost first
	mem    dvfsmodel.MHz // whose core clocks follow
	table  string        // of rocm-smi: sclk, mclk
}

type head struct {
	indent int
	name   string
}

// path joins the headings and a key, as in "clocks/graphics".
func (s *section) path(key string) string {
	names := make([]string, 0, len(s.heads)+1)
	for _, h := range s.heads {
		names = append(names, h.name)
	}
	return strings.ToLower(strings.Join(append(names, key), "/"))
}

// readKey reads an indented line: a heading, or a key with its value.
func (r *reader) readKey(s *section, line string) error {
	text := strings.TrimLeft(line, " \t")
	indent := len(line) - len(text)
	for len(s.heads) > 0 && s.heads[len(s.heads)-1].indent >= indent {
		s.heads = s.heads[:len(s.heads)-1]
	}
	key, value, hasValue := strings.Cut(text, ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !hasValue || value == "" {
		s.heads = append(s.heads, head{indent, key})
		return nil
	}
	path := s.path(key)
	if s.isAMD {
		return r.setAMD(s.device, path, value)
	}
	if path == "supported clocks/memory" {
		s.heads = append(s.heads, head{indent, "at"}) // its core clocks stand below it
		s.mem = 0
		return r.clock(&s.mem, value)
	}
	if path == "supported clocks/at/graphics" {
		return r.addPair(s.device, s.mem, value)
	}
	return r.setNVIDIA(s.device, path, value)
}

// setNVIDIA takes one value of nvidia-smi -q.
func (r *reader) setNVIDIA(d *device, path, value string) error {
	section, _, _ := strings.Cut(path, "/")
	switch path {
	case "product name":
		return r.setName(d, value)
	case "product architecture":
		d.architecture = value
	case "default applications clocks/graphics":
		return r.clock(&d.application.Core, value)
	case "default applications clocks/memory":
		return r.clock(&d.application.Mem, value)
	case "max clocks/graphics":
		return r.clock(&d.top.Core, value)
	case "max clocks/memory":
		return r.clock(&d.top.Mem, value)
	case "max customer boost clocks/graphics":
		return r.clock(&d.boost, value)
	case "clocks event reasons/idle", "clocks throttle reasons/idle":
		d.isIdle = value == "Active"
	}
	switch section {
	case "module power readings":
		d.isModule = d.isModule || strings.HasSuffix(value, " W")
	case "power readings", "gpu power readings":
		return r.setPower(d, strings.TrimPrefix(path, section+"/"), value)
	}
	return nil
}

func (r *reader) setPower(d *device, key, value string) error {
	switch key {
	case "default power limit":
		return r.watts(&d.limit.Default, value)
	case "min power limit":
		return r.watts(&d.limit.Min, value)
	case "max power limit":
		return r.watts(&d.limit.Max, value)
	case "power draw", "average power draw":
		return r.watts(&d.draw, value)
	}
	return nil
}

// setAMD takes one value of amd-smi static.
func (r *reader) setAMD(d *device, path, value string) error {
	path = strings.ReplaceAll(path, "_", " ")
	switch path {
	case "asic/market name":
		return r.setName(d, value)
	case "limit/max power", "limit/ppt0/max power limit":
		return r.watts(&d.limit.Max, value)
	case "limit/ppt0/min power limit", "limit/min power":
		if value == "0 W" {
			return nil // any
		}
		return r.watts(&d.limit.Min, value)
	case "limit/socket power", "limit/ppt0/socket power limit":
		return r.watts(&d.limit.Default, value)
	}
	for prefix, to := range map[string]*[]dvfsmodel.MHz{
		"clock/sys/frequency levels/": &d.levels.core, "clock/mem/frequency levels/": &d.levels.mem,
	} {
		if key, ok := strings.CutPrefix(path, prefix); ok && level.MatchString(strings.ToUpper(key)) {
			return r.addLevel(to, value)
		}
	}
	return nil
}

// readRocm reads a line of rocm-smi, which names its GPU.
func (r *reader) readRocm(s *section, gpu, text string) error {
	d, err := r.device("rocm " + gpu)
	if err != nil {
		return err
	}
	if m := rocmTable.FindStringSubmatch(text); m != nil {
		s.table = m[1]
		return nil
	}
	key, value, ok := strings.Cut(text, ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !ok || value == "":
		s.table = ""
	case strings.EqualFold(key, "Card series"):
		return r.setName(d, value)
	case key == "Max Graphics Package Power (W)":
		return r.watts(&d.limit.Max, value+" W")
	case s.table == "sclk" && level.MatchString(key):
		return r.addLevel(&d.levels.core, value)
	case s.table == "mclk" && level.MatchString(key):
		return r.addLevel(&d.levels.mem, value)
	}
	return nil
}

func (r *reader) setName(d *device, value string) error {
	const longest = 120
	switch {
	case isNotAvailable(value), strings.HasPrefix(value, "0x"):
		return nil
	case len(value) > longest:
		return r.faultf("a name of %d bytes, want a GPU model's", len(value))
	case queue.Printable(value) != value:
		return r.faultf("the name %q, want a GPU model's", value)
	case d.name != "" && d.name != value:
		return r.faultf("GPU %s is %q, and was %q before", d.id, value, d.name)
	}
	d.name = value
	return nil
}

// isNotAvailable reports whether a tool says that it can't tell.
func isNotAvailable(value string) bool {
	lower := strings.ToLower(value)
	for _, word := range []string{"n/a", "[n/a]", "unknown", "not supported", "requested func", "[not "} {
		if strings.HasPrefix(lower, word) {
			return true
		}
	}
	return value == ""
}

func (r *reader) clock(to *dvfsmodel.MHz, value string) error {
	if isNotAvailable(value) {
		return nil
	}
	x, err := parseQuantity(value, "mhz")
	if err != nil || x <= 0 || x > maxMHz || x != math.Trunc(x) {
		return r.faultf("the clock %q, want one such as 1410 MHz", value)
	}
	*to = dvfsmodel.MHz(x)
	return nil
}

func (r *reader) watts(to *dvfsmodel.Watt, value string) error {
	if isNotAvailable(value) {
		return nil
	}
	x, err := parseQuantity(value, "w")
	if err != nil || x <= 0 || x > maxWatts {
		return r.faultf("the power %q, want one such as 400.00 W", value)
	}
	*to = dvfsmodel.Watt(x)
	return nil
}

// parseQuantity reads a number with its unit, which may stand close to it.
func parseQuantity(value, unit string) (float64, error) {
	number, ok := strings.CutSuffix(strings.ToLower(value), unit)
	if !ok {
		return 0, strconv.ErrSyntax
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
		return 0, strconv.ErrRange
	}
	return x, err
}

func (r *reader) addPair(d *device, mem dvfsmodel.MHz, value string) error {
	var core dvfsmodel.MHz
	if err := r.clock(&core, value); err != nil || core == 0 {
		return err
	}
	if mem == 0 {
		return r.faultf("the core clock %q stands under no memory clock", value)
	}
	if len(d.pairs) == maxPairs {
		return r.faultf("more than %d pairs of clocks", maxPairs)
	}
	d.pairs[dvfsmodel.Setting{Core: core, Mem: mem}] = true
	return nil
}

// addLevel adds a level of AMD's; a star marks the one that runs.
func (r *reader) addLevel(to *[]dvfsmodel.MHz, value string) error {
	var clock dvfsmodel.MHz
	if err := r.clock(&clock, strings.TrimSpace(strings.TrimSuffix(value, "*"))); err != nil {
		return err
	}
	const most = 100
	if len(*to) == most {
		return r.faultf("more than %d levels of a clock", most)
	}
	if clock > 0 {
		*to = append(*to, clock)
	}
	return nil
}
