package config_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/epplan/epplan/config"
)

// Every fault of a file is reported, with its place.
func ExampleLoad() {
	const file = `[safety]
limit_margn = 0.1
max_turnaround = 0.5
`
	_, err := config.Load(strings.NewReader(file), "epplan.toml", nil)
	if faulty, ok := errors.AsType[*config.FileError](err); ok {
		for _, fault := range faulty.Faults {
			fmt.Println(fault)
		}
	}
	// Output:
	// epplan.toml:2:1: unknown key limit_margn in [safety], did you mean limit_margin?
	// epplan.toml:3:18: safety.max_turnaround is 0.5, want a number from 1 to 1e+06
}
