package slurmconf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// DriverGPU is a GPU as the driver counts it.
type DriverGPU struct {
	// Minor is the number of its device file, 3 of /dev/nvidia3 and 131 of /dev/dri/renderD131; -1: it
	// doesn't answer.
	Minor int
	Model string // product name
	// Divided tells that the GPU is divided into parts (MIG), each of which AutoDetect takes for a GPU.
	Divided bool
}

// ErrOrder tells that it isn't certain which GPU a number of SLURM_JOB_GPUS means.
var ErrOrder = errors.New("the order of Slurm's GPUs isn't certain")

// DriverIndexes gives, for each number that SLURM_JOB_GPUS may have on the node, the GPU
// that Slurm means: its index in the driver's list, or -1 where it isn't there. The
// driver's list is in the order of PCI bus ids, with a place for each GPU that the driver
// counts, whether it answers or not. The error is [ErrOrder] when several answers are
// possible: a GPU is missing, say, and nothing tells which one.
//
// Without AutoDetect the numbers are gres.conf's own order, by device file. With
// AutoDetect=nvml slurmd sorts the GPUs by PCI bus id, with AutoDetect=nvidia by device
// file (Slurm's gres_gpu.c, _merge_system_gres_conf, from 22.05 to 26.05). AutoDetect=rsmi, of AMD's
// GPUs, is in the order of PCI bus ids, too (gpu_rsmi.c), and knows them by their render nodes.
func (m *DeviceMap) DriverIndexes(gpus []DriverGPU) ([]int, error) {
	if m.AutoDetect == "" || m.AutoDetect == "off" {
		return m.matchByFile(gpus)
	}
	if i := slices.IndexFunc(m.Devices, func(d Device) bool { return d.isForeign() }); i >= 0 {
		return nil, fmt.Errorf("AutoDetect=%s, and gres.conf names %s, which isn't a GPU's own device file: %w",
			slurm.Printable(m.AutoDetect, 40), slurm.Printable(m.Devices[i].File, 80), ErrOrder)
	}
	if m.AutoDetect != "nvidia" && slices.ContainsFunc(gpus, func(g DriverGPU) bool { return g.Divided }) {
		return nil, fmt.Errorf("AutoDetect=%s counts the parts of a divided GPU (MIG): %w",
			slurm.Printable(m.AutoDetect, 40), ErrOrder)
	}
	switch m.AutoDetect {
	case "nvidia":
		if !hasRenderNodes(gpus) {
			return m.matchByAutoDetect(gpus, minorOrder)
		}
	case "rsmi":
		if hasRenderNodes(gpus) {
			return m.fromRenderNodes().matchByAutoDetect(renumberFromZero(gpus), driverOrder)
		}
	}
	if hasRenderNodes(gpus) {
		return nil, fmt.Errorf("AutoDetect=%s isn't for AMD's GPUs: %w", slurm.Printable(m.AutoDetect, 40),
			ErrOrder)
	}
	if strings.Contains(m.AutoDetect, "nvml") || m.AutoDetect == "full" { // as slurmd reads it
		return m.matchByAutoDetect(gpus, driverOrder)
	}
	return nil, fmt.Errorf("AutoDetect=%s isn't for NVIDIA GPUs: %w", slurm.Printable(m.AutoDetect, 40),
		ErrOrder)
}

// firstRenderNode is the number of the kernel's first render node: so far are those of
// AMD's GPUs from those of NVIDIA's.
const firstRenderNode = 128

func hasRenderNodes(gpus []DriverGPU) bool {
	return slices.ContainsFunc(gpus, func(g DriverGPU) bool { return g.Minor >= firstRenderNode })
}

// renumberFromZero is GPUs by the numbers of their render nodes, the first of which is 0.
func renumberFromZero(gpus []DriverGPU) []DriverGPU {
	list := slices.Clone(gpus)
	for i := range list {
		list[i].Minor = max(-1, list[i].Minor-firstRenderNode)
	}
	return list
}

// fromRenderNodes returns the configuration with device files so numbered. A file of another kind is none
// that a GPU has.
func (m *DeviceMap) fromRenderNodes() *DeviceMap {
	next := *m
	next.Devices = slices.Clone(m.Devices)
	for i := range next.Devices {
		next.Devices[i].Minor = max(-1, next.Devices[i].Minor-firstRenderNode)
	}
	return &next
}

// matchByFile finds the GPU of each device file.
func (m *DeviceMap) matchByFile(gpus []DriverGPU) ([]int, error) {
	var places []int
	for _, d := range m.Devices {
		if d.File == "" {
			continue // counted, but in no job's list
		}
		place := -1
		if d.Minor >= 0 {
			place = slices.IndexFunc(gpus, func(g DriverGPU) bool { return g.Minor == d.Minor })
		}
		if place >= 0 && (slices.Contains(places, place) || m.hasPartOf(d.Minor)) {
			return nil, fmt.Errorf("gres.conf names %s more than once: %w", slurm.Printable(d.File, 80), ErrOrder)
		}
		places = append(places, place)
	}
	switch {
	case len(places) == 0:
		return nil, fmt.Errorf("gres.conf names no device file of this node's GPUs: %w", ErrOrder)
	case m.hasSeveralTypes() && !m.Counted: // slurm.conf would say which type comes first
		return nil, fmt.Errorf("GPUs of several types, and slurm.conf doesn't say in which order: %w",
			ErrOrder)
	}
	return places, nil
}

// hasPartOf reports whether a part of the GPU with a device file is a device of its own.
func (m *DeviceMap) hasPartOf(minor int) bool {
	return slices.ContainsFunc(m.Devices, func(d Device) bool { return slices.Contains(d.parts, minor) })
}

// matchByAutoDetect finds the GPUs that slurmd finds by itself: all that the driver counts,
// or those of them that the configuration wants, in an order.
func (m *DeviceMap) matchByAutoDetect(
	gpus []DriverGPU,
	order func([]DriverGPU) ([]int, error),
) ([]int, error) {
	if !m.Counted { // one may have gone since slurmd looked
		return nil, fmt.Errorf("slurm.conf doesn't say how many GPUs the node has: %w", ErrOrder)
	}
	all, err := order(gpus)
	if err != nil {
		return nil, err
	}
	wanted, err := m.configuredGPUs(gpus)
	if err != nil {
		return nil, err
	}
	switch fit := m.matchTypes(gpus, wanted); {
	case m.hasTypes() && (len(m.Devices) < len(gpus) || m.hasMinorGap(gpus)) &&
		(m.hasSeveralTypes() || !slices.Equal(all, sortedByFile(gpus))):
		// slurmd gives the types to as many GPUs as are configured, by device file, and
		// keeps the others apart
		return nil, fmt.Errorf("GPUs with types, and more of them than Slurm has: %w", ErrOrder)
	case fit == noneMatches: // slurmd keeps its own GPUs apart from the configured ones, and uses these
		all = sortedByFile(gpus)
	case fit != allMatch:
		return nil, fmt.Errorf("gres.conf's and slurm.conf's types don't fit the names of the GPUs: %w",
			ErrOrder)
	}
	part := slices.Contains(wanted, false) // in which none that doesn't answer is
	places := slices.DeleteFunc(all, func(i int) bool { return i < 0 && part || i >= 0 && !wanted[i] })
	for i, at := range places {
		if at >= 0 && gpus[at].Minor < 0 {
			places[i] = -1
		}
	}
	return places, nil
}

// hasMinorGap reports whether a device file has a number that as many GPUs don't need: one
// that went without a trace leaves a gap in the numbers, or had the last of them.
func (m *DeviceMap) hasMinorGap(gpus []DriverGPU) bool {
	return slices.ContainsFunc(gpus, func(g DriverGPU) bool { return g.Minor >= len(gpus) }) ||
		slices.ContainsFunc(m.Devices, func(d Device) bool { return d.Minor >= len(gpus) })
}

// configuredGPUs tells which of the driver's GPUs are in Slurm's list. One that doesn't
// answer has a place there, but no number.
func (m *DeviceMap) configuredGPUs(gpus []DriverGPU) ([]bool, error) {
	wanted := make([]bool, len(gpus))
	dead := 0
	gap := m.hasMinorGap(gpus)
	for _, g := range gpus {
		if g.Minor < 0 {
			dead++
		}
	}
	nameless, strange := 0, 0 // without a device file; with one that no GPU has
	for _, d := range m.Devices {
		at := -1
		if d.Minor >= 0 {
			at = slices.IndexFunc(gpus, func(g DriverGPU) bool { return g.Minor == d.Minor })
		}
		switch {
		case at >= 0:
			wanted[at] = true
		case d.File == "":
			nameless++
		default:
			strange++
		}
	}
	total := len(m.Devices)
	switch {
	case nameless == 0 && strange == 0:
		return wanted, nil
	case !gap && total == len(gpus) && strange <= dead && (nameless == 0 || nameless == total):
		return slices.Repeat([]bool{true}, len(gpus)), nil
	case !gap && dead == 0 && total < len(gpus) && nameless == total && !m.hasTypes():
		for _, i := range sortedByFile(gpus)[:total] { // as slurmd takes them
			wanted[i] = true
		}
		return wanted, nil
	}
	return nil, fmt.Errorf("%d GPUs of the node for Slurm, %d for the driver, of which %d don't answer: %w",
		total, len(gpus), dead, ErrOrder)
}

// hasTypes reports whether GPUs have a type.
func (m *DeviceMap) hasTypes() bool {
	return slices.ContainsFunc(m.Devices, func(d Device) bool { return d.Type != "" })
}

func (m *DeviceMap) hasSeveralTypes() bool {
	return slices.ContainsFunc(m.Devices, func(d Device) bool {
		return !strings.EqualFold(d.Type, m.Devices[0].Type)
	})
}

// How the types of a configuration fit the names of GPUs.
const (
	allMatch    = iota // each GPU has one type, and as many as there are to be
	noneMatches        // no GPU has any, and all have device files
	someMatch
)

// matchTypes compares the configured types with the names of the GPUs that are wanted. A
// type fits where it is a part of the name, in small letters and with _ for spaces.
func (m *DeviceMap) matchTypes(gpus []DriverGPU, wanted []bool) int {
	if !m.hasTypes() {
		return allMatch
	}
	left := map[string]int{} // configured, less those found
	files := 0
	for _, d := range m.Devices {
		left[strings.ToLower(d.Type)]++
		if d.File != "" {
			files++
		}
	}
	alive, fitting, strange := 0, 0, false
	for i, g := range gpus {
		if g.Minor < 0 || !wanted[i] {
			continue
		}
		alive++
		name := strings.ReplaceAll(strings.ToLower(g.Model), " ", "_")
		kinds := slices.DeleteFunc(slices.Collect(maps.Keys(left)), func(k string) bool {
			return !strings.Contains(name, k)
		})
		if len(kinds) > 0 {
			fitting++
		}
		if len(kinds) != 1 {
			strange = true
			continue
		}
		left[kinds[0]]--
		own := slices.IndexFunc(m.Devices, func(d Device) bool { return d.Minor == g.Minor })
		strange = strange || left[kinds[0]] < 0 || own >= 0 &&
			!strings.EqualFold(m.Devices[own].Type, kinds[0])
	}
	switch {
	case !strange:
		return allMatch
	case fitting == 0 && alive == len(gpus) && files == len(m.Devices):
		return noneMatches
	}
	return someMatch
}

// driverOrder returns the driver's order.
func driverOrder(gpus []DriverGPU) ([]int, error) {
	all := make([]int, len(gpus))
	for i := range all {
		all[i] = i
	}
	return all, nil
}

// minorOrder returns the order of the device files. One that doesn't answer stands where
// its number is missing.
func minorOrder(gpus []DriverGPU) ([]int, error) {
	if !slices.ContainsFunc(gpus, func(g DriverGPU) bool { return g.Minor < 0 }) {
		return sortedByFile(gpus), nil
	}
	all := slices.Repeat([]int{-1}, len(gpus))
	for i, g := range gpus {
		switch {
		case g.Minor >= len(all):
			return nil, fmt.Errorf("GPUs don't answer, and nothing tells which: %w", ErrOrder)
		case g.Minor >= 0:
			all[g.Minor] = i
		}
	}
	return all, nil
}

// sortedByFile returns the indexes of GPUs in the order of their device files, as the
// names are compared: by number.
func sortedByFile(gpus []DriverGPU) []int {
	all, _ := driverOrder(gpus)
	slices.SortStableFunc(all, func(i, j int) int { return gpus[i].Minor - gpus[j].Minor })
	return all
}
