package slurm_test

import (
	"context"
	"fmt"
	"time"

	"github.com/epplan/epplan/slurm"
)

func ExampleExpandHostlist() {
	fmt.Println(slurm.ExpandHostlist("n[1-3,07]x,login"))
	fmt.Println(slurm.ExpandHostlist("n[1-999999999]"))
	// Output:
	// [n1x n2x n3x n07x login] <nil>
	// [] hostlist column 1: range "1-999999999": want low-high with at most 65536 numbers
}

// A line that a name could have forged is left out and named, not guessed at.
func ExampleParseAccounting() {
	const printed = "JobIDRaw|JobName|State|ElapsedRaw\n" +
		"7|train|COMPLETED|60\n" +
		"8|a|b|FAILED|5\n"
	outcomes, rejected, err := slurm.ParseAccounting("sacct -P", []byte(printed), "|", time.UTC)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range outcomes {
		fmt.Println(outcomes[i].ID, outcomes[i].State.Base, outcomes[i].Elapsed)
	}
	fmt.Println(rejected)
	// Output:
	// 7 COMPLETED 1m0s
	// [{3 5 columns, want 4}]
}

// Commands run through a Runner, so that a test needs no Slurm.
func ExampleClient() {
	answers := slurm.RunnerFunc(func(context.Context, string, ...string) ([]byte, error) {
		return []byte("slurm-wlm 22.05.8\n"), nil
	})
	version, err := slurm.NewClient(answers, time.Second).Version(context.Background())
	fmt.Println(version, version.AtLeast(22, 5), err)
	// Output:
	// 22.05.8 true <nil>
}
