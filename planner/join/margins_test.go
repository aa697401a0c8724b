package join_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/queue"
)

func TestMarginsThatCannotBeAreErrors(t *testing.T) {
	for _, margins := range []join.Margins{
		{Limit: math.NaN()},
		{Limit: -0.1},
		{Deadline: -1},
		{Deadline: math.Inf(1)},
	} {
		if _, _, err := join.Tasks(&queue.Batch{}, &planner.Cluster{}, nil, margins); err == nil ||
			!strings.Contains(err.Error(), "margin") {
			t.Errorf("%+v: error is %v, want one that names the margins", margins, err)
		}
	}
}
