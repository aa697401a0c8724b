package query_test

import (
	"context"
	"errors"
	"testing"

	"github.com/epplan/epplan/internal/query"
)

func TestCallersAreOfOneTier(t *testing.T) {
	for who, want := range map[query.Caller][3]bool{ // anybody, operators, controllers
		{UID: 0, Name: "root", Operator: true, Admin: true}: {true, true, true},
		{UID: 500, Name: "olga", Operator: true}:            {true, true, false},
		{UID: 1000, Name: "ada"}:                            {true, false, false},
		{}:                                                  {true, false, false},
	} {
		for i, tier := range []query.Tier{query.Anybody, query.Operators, query.Administrators} {
			err := tier.Admits(who)
			if (err == nil) != want[i] || err != nil && !errors.Is(err, query.ErrForbidden) {
				t.Errorf("%+v, tier %d: %v", who, i, err)
			}
		}
	}
	for who, want := range map[query.Caller][2]bool{ // for n1, and anything else that is administrators'
		{UID: 0, Admin: true}:          {true, true},
		{UID: 0, Node: "n1"}:           {true, false},
		{UID: 0, Node: "n2"}:           {false, false},
		{UID: 500, Operator: true}:     {false, false},
		{UID: 1000, Name: "ada"}:       {false, false},
		{UID: 0, Name: "n1", Node: ""}: {false, false},
	} {
		for i, err := range []error{who.SpeaksFor("n1"), query.Administrators.Admits(who)} {
			if (err == nil) != want[i] || err != nil && !errors.Is(err, query.ErrForbidden) {
				t.Errorf("%+v, %d: %v", who, i, err)
			}
		}
	}
	if who := query.CallerOf(context.Background()); !who.Admin {
		t.Error("in its own process the controller refuses")
	}
}
