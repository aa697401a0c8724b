package queue_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/queue"
)

func TestTheParamsFormatIgnoresWhateverItDoesNotKnow(t *testing.T) {
	const text = "id,case,P0,gamma,c,D,delta,t0,limit,deadline,E\n" +
		"0,random+binding,71,20,97,51,0.9,7,inf,oops,\n" +
		"1,x,71,20,97,51,0.9,7,57.5,,\n"
	b, err := queue.Read(strings.NewReader(text), "single.csv", queue.Params)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Jobs) != 2 || !math.IsInf(b.Jobs[0].Limit, 1) || b.Jobs[1].Limit != 57.5 ||
		!math.IsInf(b.Jobs[1].Deadline, 1) {
		t.Errorf("jobs %+v", b.Jobs)
	}
	_, err = queue.Read(strings.NewReader("id,P0,gamma,c,D,delta\n0,1,1,1,1,1\n"), "single.csv", queue.Params)
	if err == nil || !strings.Contains(err.Error(), "no column t0") {
		t.Errorf("got %v, want the missing column named", err)
	}
}
