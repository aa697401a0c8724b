package config

import (
	"fmt"
	"slices"

	"github.com/epplan/epplan/internal/spelling"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// PickDeadline is the order of the queue that looks at nothing but deadlines.
const PickDeadline = "deadline"

// LivePick says in which order pending jobs are put, within what [Live.Reorder]
// allows.
type LivePick struct {
	// Policy is [PickDeadline] or a policy string. With a policy, jobs go in the
	// order in which it would start them, those with a deadline before.
	Policy string
	Every  float64 // seconds after which the order is made anew
	// Ageing is how many seconds after it could start a job is put behind others
	// at most: until then it comes forward step by step.
	Ageing float64
	// AgeingFactor is the same as a multiple of the job's time limit; 0: no such
	// bound.
	AgeingFactor float64
}

func defaultPick() LivePick {
	const minute, day = 60, 86_400
	return LivePick{Policy: PickDeadline, Every: minute, Ageing: day}
}

func (p *LivePick) fields() []field {
	return []field{
		checkedField(lineField("policy", "The order of pending jobs: deadline (those with one go first, "+
			"the others stay as they are), or a\n"+
			"policy such as value or simple-backfill, whose order of starts it is.", &p.Policy), checkPick),
		numberField("every_s", "Seconds after which a policy's order is made anew.", &p.Every,
			numberRange{min: 1, max: maxNumber}),
		numberField("ageing_s",
			"Seconds of waiting after which a job isn't put behind others any more. Until then it comes\n"+
				"forward step by step.", &p.Ageing, nonNegativeRange),
		numberField("ageing_factor", "The same as a multiple of the job's time limit; 0: only "+
			"ageing_s counts.", &p.AgeingFactor, nonNegativeRange),
	}
}

// checkPick accepts [PickDeadline] and what [policy.Parse] does.
func checkPick(text string) error {
	if text == PickDeadline {
		return nil
	}
	if text == Best {
		return fmt.Errorf("%s is for plans, want deadline or a policy by its name", quoteName(text))
	}
	if near := spelling.Nearest(text, []string{PickDeadline}); near != "" &&
		!slices.Contains(policy.Names(), text) {
		return fmt.Errorf("unknown policy %s, did you mean %s?", quoteName(text), quoteName(near))
	}
	return checkPolicy(text)
}

// Parse is the policy whose order is wanted; nil: deadlines alone count.
func (p *LivePick) Parse() (*planner.Policy, error) {
	if p.Policy == PickDeadline {
		return nil, nil //nolint:nilnil // deadlines alone are an answer
	}
	return policy.Parse(p.Policy, policy.DefaultParams())
}
