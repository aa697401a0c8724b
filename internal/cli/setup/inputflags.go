package setup

import (
	"math"
	"time"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// SearchTimeFlag returns how long a search may take that is always bounded.
func SearchTimeFlag(usage string, usual time.Duration) *cli.DurationFlag {
	return &cli.DurationFlag{
		Name: "time-limit", Usage: usage, Value: usual,
		Action: func(_ *cli.Context, limit time.Duration) error {
			if limit <= 0 {
				return terminal.Usagef("--time-limit %v, want more than 0", limit)
			}
			return nil
		},
	}
}

// defaultSlot is how long a slot of a log lasts.
const defaultSlot = time.Minute

// SlotFlag returns how a log of utilisation is cut into slots.
func SlotFlag(usage string) *cli.DurationFlag {
	return &cli.DurationFlag{
		Name: "slot", Usage: usage, Value: defaultSlot,
		Action: func(_ *cli.Context, slot time.Duration) error {
			if slot < time.Millisecond {
				return terminal.Usagef("--slot %v, want 1ms or more", slot)
			}
			return nil
		},
	}
}

// SeedFlag returns the flag for the seed of random numbers.
func SeedFlag() *cli.Uint64Flag {
	return &cli.Uint64Flag{
		Name: "seed", Usage: "`NUMBER` from which random numbers follow", Value: planner.DefaultSeed,
	}
}

// ParsePolicy reads a policy string; what is wrong with it is a usage error.
func ParsePolicy(text string, params policy.Params) (*planner.Policy, error) {
	p, err := policy.Parse(text, params)
	if err != nil {
		return nil, &terminal.UsageError{Msg: err.Error(), Hint: "epplan compare --help lists the policies"}
	}
	return p, nil
}

// ContentionFlag returns the file with a fitted curve, and what counts without it.
func ContentionFlag(otherwise string) cli.Flag {
	return &cli.StringFlag{
		Name: "contention", DefaultText: otherwise,
		Usage: "`FILE` with what sharing costs, as epplab contention writes it",
	}
}

// SlowdownFlag returns the flag that bounds how much slower a choice may be.
func SlowdownFlag(usage string) cli.Flag {
	return &cli.Float64Flag{Name: "slowdown", Usage: usage, DefaultText: "as slow as it likes"}
}

// SlowdownOf returns the flag's part, or without it as slow as it likes.
func SlowdownOf(c *cli.Context) (float64, error) {
	part := c.Float64("slowdown")
	switch {
	case !c.IsSet("slowdown"):
		return math.Inf(1), nil
	case !(part >= 0):
		return 0, terminal.Usagef("--slowdown %v, want 0 or more, such as 0.05", part)
	}
	return part, nil
}
