package policy_test

import (
	"fmt"

	"github.com/epplan/epplan/planner/policy"
)

// A policy string names a policy, its numbers, and stages to exchange.
func ExampleParse() {
	for _, text := range []string{"edl:0.9", "edf-bf,park=never", "pwr+fgd:0.2", "edl:1.5"} {
		p, err := policy.Parse(text, policy.DefaultParams())
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p.Name)
	}
	// Output:
	// edl:0.9
	// edf-bf,park=never
	// pwr+fgd:0.2
	// policy: theta: "1.5", want a number above 0, up to 1
	//     edl:1.5
	//         ^
}
