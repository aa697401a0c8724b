package daemon

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestTheProfileOfARunTravelsWithItsOutcome(t *testing.T) {
	s := record.NewProfileSampler(time.Second)
	s.Add(0, 30*time.Second, 0.5)
	want := record.Profile{Alone: true, GPUs: []record.GPUProfile{{Utilisation: s.Series(), PeakMem: 1 << 30, MemTotal: 16 << 30}}}
	out := outcomeOf(&agent.Closed{Run: live.Run{ID: "r", GPUs: []string{"GPU-1"}}, Outcome: agent.Outcome{Profile: want}})
	text, err := json.Marshal(out) // what is spooled, and sent
	if err != nil {
		t.Fatal(err)
	}
	var read record.Outcome
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read.Profile, want) {
		t.Errorf("%+v, %v", read.Profile, err)
	}
}
