package doctest

import "testing"

// Claimed are the blocks that a runner has to run.
type Claimed struct {
	Blocks []*Block
	ran    map[*Step]bool
}

// Claim finds a runner's blocks, in the order of pages and lines. The test fails
// at its end unless every step of them was run, or it failed or was skipped
// before.
func Claim(tb testing.TB, runner string) *Claimed {
	tb.Helper()
	c := &Claimed{ran: make(map[*Step]bool)}
	for _, p := range Pages(tb) {
		blocks, _ := p.Blocks() // faults are another test's
		for _, b := range blocks {
			if b.Runner == runner {
				c.Blocks = append(c.Blocks, b)
			}
		}
	}
	if len(c.Blocks) == 0 {
		tb.Fatalf("no page has a block for %s", runner)
	}
	tb.Cleanup(func() {
		if tb.Failed() || tb.Skipped() {
			return
		}
		for _, s := range c.missed() {
			tb.Errorf("%s: nobody ran %s", s.At(), s.Command)
		}
	})
	return c
}

// Ran notes that a step was run.
func (c *Claimed) Ran(s *Step) { c.ran[s] = true }

// missed returns the steps that weren't run.
func (c *Claimed) missed() []*Step {
	var missed []*Step
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			if !c.ran[s] {
				missed = append(missed, s)
			}
		}
	}
	return missed
}

// Of returns the blocks of one page.
func (c *Claimed) Of(page string) []*Block {
	var found []*Block
	for _, b := range c.Blocks {
		if b.Page == page {
			found = append(found, b)
		}
	}
	return found
}

// Pages returns the pages that have blocks of the runner, in order.
func (c *Claimed) Pages() []string {
	var names []string
	for _, b := range c.Blocks {
		if len(names) == 0 || names[len(names)-1] != b.Page {
			names = append(names, b.Page)
		}
	}
	return names
}
