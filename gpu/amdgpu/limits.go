package amdgpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// Levels of performance that matter here.
const (
	levelAuto        = "auto"
	levelManual      = "manual"
	levelDeterminism = "perf_determinism" // the highest core clock is limited, and nothing else
)

// levels that can be given back.
var levels = []string{
	levelAuto, "low", "high", levelManual, "profile_standard", "profile_min_sclk", "profile_min_mclk",
	"profile_peak", levelDeterminism,
}

// step is that of core clocks in a GPU's table: the highest clock can be any whole MHz.
const step dvfsmodel.MHz = 100

// Clocks returns the core clocks that can be the highest, for each memory clock that can be: up
// to what was in force before anything was set. It is read once. A memory clock that can't
// be set is the one at which the GPU works.
func (d *Device) Clocks() (gpu.Clocks, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clocks == nil {
		table, err := d.readClocks()
		if err != nil {
			return gpu.Clocks{}, d.fault(gpu.OpClocks, err)
		}
		d.clocks = &table
	}
	return d.clocks.Clone(), nil
}

func (d *Device) readClocks() (gpu.Clocks, error) {
	open, err := d.library.notes.open(d.id.UUID, false)
	if err != nil && d.library.root {
		return gpu.Clocks{}, err
	}
	var before *note
	if err == nil { // others than root see what is in force
		before, err = d.validNote(open)
		open.close()
		if err != nil {
			return gpu.Clocks{}, err
		}
	}
	if before == nil || before.Core.Hi == 0 {
		if before, err = d.currentNote(); err != nil {
			return gpu.Clocks{}, err
		}
	}
	cores, err := d.coreClocks(before.Core)
	if err != nil {
		return gpu.Clocks{}, err
	}
	mems, err := d.files.levels(memFile)
	if err != nil {
		return gpu.Clocks{}, err
	}
	var table gpu.Clocks
	for _, level := range slices.Backward(mems) {
		if before.Mem.Hi > 0 && level.mhz > before.Mem.Hi || slices.Contains(table.Mem, level.mhz) {
			continue
		}
		table.Mem = append(table.Mem, level.mhz)
		if !d.Capability().Can(gpu.MemClock) {
			break
		}
	}
	slices.Sort(table.Mem)
	slices.Reverse(table.Mem)
	if len(table.Mem) == 0 || len(cores) == 0 {
		return gpu.Clocks{}, fmt.Errorf("no list of clocks: %w", gpu.ErrNotSupported)
	}
	for range table.Mem {
		table.Core = append(table.Core, cores)
	}
	return table, nil
}

// coreClocks returns the core clocks that can be the highest, falling. The lowest limit itself
// can't: the kernel wants it below the highest.
func (d *Device) coreClocks(before span) ([]dvfsmodel.MHz, error) {
	var list []dvfsmodel.MHz
	if d.ranged {
		for f := before.Lo + step; f < before.Hi; f += step {
			list = append(list, f)
		}
		list = append(list, before.Hi)
	} else {
		found, err := d.files.levels(coreFile)
		if err != nil {
			return nil, err
		}
		for _, level := range found {
			list = append(list, level.mhz)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	slices.Reverse(list)
	return list, nil
}

// validNote returns the note of the GPU, nil where there is none, or one of before the driver was
// reloaded: limits went with it.
func (d *Device) validNote(open *openNote) (*note, error) {
	n, err := open.read()
	if n != nil && n.Driver != "" && d.library.driver != "" && n.Driver != d.library.driver {
		return nil, err
	}
	return n, err
}

// currentNote returns what the GPU is at now.
func (d *Device) currentNote() (*note, error) {
	level, err := d.files.text(levelFile)
	if err != nil {
		return nil, err
	}
	n := &note{UUID: d.id.UUID, Driver: d.library.driver, Level: level}
	if d.ranged {
		limits, err := d.files.limits()
		if err != nil {
			return nil, err
		}
		if limits.core.Hi <= limits.core.Lo {
			return nil, fmt.Errorf("%s says nothing of the core clock", limitsFile)
		}
		n.Core, n.Mem = limits.core, limits.mem
		return n, nil
	}
	for c, name := range map[gpu.Control]string{gpu.CoreClock: coreFile, gpu.MemClock: memFile} {
		found, err := d.files.levels(name)
		if err != nil {
			return nil, err
		}
		before, _ := n.entryOf(c)
		for _, l := range found {
			before.Hi = max(before.Hi, l.mhz)
		}
	}
	return n, nil
}

// Set makes a clock of the table the highest one, or sets the power limit.
func (d *Device) Set(c gpu.Control, v gpu.Value) error { return d.set(c, v, false) }

// Fix makes a core clock the lowest one, too.
func (d *Device) Fix(c gpu.Control, v gpu.Value) error { return d.set(c, v, true) }

func (d *Device) set(c gpu.Control, v gpu.Value, fixed bool) error {
	if d.cantSet[c].Load() {
		return d.fault(gpu.OpSet, fmt.Errorf("%v: %w", c, gpu.ErrNotSupported))
	}
	if err := c.CheckBounds(d.Capability(), v); err != nil {
		return fmt.Errorf("GPU %s: %w", d.id.Bus, err)
	}
	var err error
	if c == gpu.PowerLimit {
		err = d.fault(gpu.OpSet, d.sensors.setPower(float64(v)))
	} else {
		err = d.setClock(c, v, fixed)
	}
	if errors.Is(err, gpu.ErrNotSupported) {
		d.cantSet[c].Store(true)
	}
	return err
}

// setClock makes a clock of the table the highest one, or the only one.
func (d *Device) setClock(c gpu.Control, v gpu.Value, fixed bool) error {
	table, err := d.Clocks()
	if err != nil {
		return err
	}
	f := dvfsmodel.MHz(v)
	if c == gpu.CoreClock && !slices.Contains(table.Core[0], f) ||
		c == gpu.MemClock && !slices.Contains(table.Mem, f) {
		return fmt.Errorf("GPU %s: lock %v at %v %s: not in its table of clocks", d.id.Bus, c, float64(v), c.Unit())
	}
	return d.fault(gpu.OpSet, d.change(gpu.OpSet, func(open *openNote, n *note) error {
		was := n
		if n == nil {
			var err error
			if n, err = d.currentNote(); err == nil {
				err = d.checkRestorable(n)
			}
			if err != nil {
				return err
			}
		}
		next := *n
		before, set := next.entryOf(c)
		if before.Hi > 0 && f > before.Hi {
			return fmt.Errorf("the %v was limited to %v %s already", c, float64(before.Hi), c.Unit())
		}
		if *set = f; c == gpu.CoreClock {
			next.FixedCore = fixed
		}
		if err := open.write(&next); err != nil {
			return err
		}
		if err := d.applyNote(&next); err != nil {
			return d.unsetError(err, d.undo(open, was, n))
		}
		return nil
	}))
}

// checkRestorable says what keeps a GPU from being set, as it couldn't be given back.
func (d *Device) checkRestorable(n *note) error {
	switch {
	case !slices.Contains(levels, n.Level):
		return fmt.Errorf("the performance level is %.40q, which can't be given back: %w", n.Level,
			gpu.ErrNotSupported)
	case n.Level == levelManual && !d.ranged:
		return fmt.Errorf("clocks were chosen by hand (%s is manual), and which can't be read: %w", levelFile,
			gpu.ErrNotSupported)
	}
	return nil
}

// unsetError is the error of a change that failed. Where it couldn't be undone either, it isn't one
// by which callers would know that nothing is set.
func (d *Device) unsetError(err, undoing error) error {
	if undoing == nil {
		return err
	}
	undoing = d.classify(undoing)
	if errors.Is(undoing, gpu.ErrLost) || errors.Is(undoing, gpu.ErrReloaded) {
		return undoing
	}
	return fmt.Errorf("%s, and what was there before can't be given back yet: %s", err.Error(), undoing.Error())
}

// undo gives back what was there before a change that failed.
func (d *Device) undo(open *openNote, was, before *note) error {
	if was != nil {
		return errors.Join(d.applyNote(was), open.write(was))
	}
	if err := d.restore(before); err != nil {
		return err // the note stays
	}
	return open.write(nil)
}

// Release makes a clock's highest limit what it was before it was set. With the last of
// them the GPU gets its performance level back. What somebody else set since, by
// choosing another level, stays. Of the power limit it sets what the board was delivered with.
func (d *Device) Release(c gpu.Control) error {
	if c == gpu.PowerLimit {
		if d.cantSet[c].Load() {
			return d.fault(gpu.OpRelease, fmt.Errorf("%v: %w", c, gpu.ErrNotSupported))
		}
		delivered, err := d.sensors.read("power1_cap_default")
		if err == nil {
			err = d.sensors.setPower(delivered)
		}
		return d.fault(gpu.OpRelease, err)
	}
	return d.fault(gpu.OpRelease, d.change(gpu.OpRelease, func(open *openNote, n *note) error {
		next := note{}
		if n != nil {
			next = *n
		}
		_, set := next.entryOf(c)
		switch {
		case *set == 0 && d.cantSet[c].Load():
			return fmt.Errorf("%v: %w", c, gpu.ErrNotSupported)
		case n == nil:
			return open.write(nil) // one of before the driver was reloaded, if any
		case *set == 0 && (next.SetCore != 0 || next.SetMem != 0):
			return nil
		}
		*set = 0
		next.FixedCore = next.FixedCore && c != gpu.CoreClock
		if next.SetCore == 0 && next.SetMem == 0 {
			return d.undo(open, nil, n)
		}
		if err := d.applyNote(&next); err != nil {
			return err
		}
		return open.write(&next)
	}))
}

// change changes the GPU while no other process does.
func (d *Device) change(op gpu.Op, do func(open *openNote, n *note) error) error {
	open, err := d.library.notes.open(d.id.UUID, op == gpu.OpSet)
	if err != nil {
		return err
	}
	defer open.close()
	n, err := d.validNote(open)
	if err != nil {
		return err
	}
	return do(open, n)
}

// applyNote makes the GPU's limits what a note says.
func (d *Device) applyNote(n *note) error {
	level, err := d.files.text(levelFile)
	if err != nil {
		return err
	}
	if level != levelManual {
		if err := d.files.write(levelFile, levelManual); err != nil {
			return err
		}
	}
	core, mem := n.Core, n.Mem
	if n.SetCore > 0 {
		core.Hi = n.SetCore
		if n.FixedCore {
			core.Lo = n.SetCore - 1 // the kernel wants it below the highest
		}
	}
	if n.SetMem > 0 {
		mem.Hi = n.SetMem
	}
	return d.limit(core, mem)
}

// restore gives a GPU back that is at limits of ours.
func (d *Device) restore(n *note) error {
	level, err := d.files.text(levelFile)
	if err != nil {
		return err
	}
	if level != levelManual {
		return nil // our limits went with the level
	}
	if n.Core.Hi > 0 {
		if err := d.limit(n.Core, n.Mem); err != nil {
			return err
		}
	}
	if n.Level == levelManual {
		return nil
	}
	if err := d.files.write(levelFile, n.Level); err != nil {
		return err
	}
	if n.Level == levelDeterminism {
		if err := d.files.commit(limitCommand("s", 1, n.Core.Hi)); err != nil {
			return err
		}
	}
	if level, err = d.files.text(levelFile); err == nil && level != n.Level {
		err = fmt.Errorf("the performance level is %.40q, it was set to %s", level, n.Level)
	}
	return err
}

// limit makes two spans those of the clocks, at level manual. All are written each time: some
// kernels keep what was written before, and commit it with whatever is committed next.
func (d *Device) limit(core, mem span) error {
	can := d.Capability()
	if !d.ranged {
		err := d.files.allowLevels(coreFile, core)
		if err == nil && can.Can(gpu.MemClock) {
			err = d.files.allowLevels(memFile, mem)
		}
		return err
	}
	commands := []string{limitCommand("s", 0, core.Lo), limitCommand("s", 1, core.Hi)}
	if can.Can(gpu.MemClock) && mem.Hi > 0 {
		commands = append(commands, limitCommand("m", 1, mem.Hi))
	}
	if err := d.files.commit(commands...); err != nil {
		return err
	}
	limits, err := d.files.limits()
	if err == nil && limits.core.Hi > core.Hi {
		err = fmt.Errorf("the core clock is limited to %v MHz by %s, it was set to %v", float64(limits.core.Hi),
			limitsFile, float64(core.Hi))
	}
	return err
}
