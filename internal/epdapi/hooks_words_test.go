package epdapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

func TestAJobWithoutADecisionSaysWhyItHasNone(t *testing.T) {
	for want, v := range map[string]epdapi.JobView{
		"Nothing is decided before it starts": {Job: &epdapi.Job{State: "PENDING"}},
		"its Prolog never reached epd on n1, n2": {
			Job:          &epdapi.Job{State: "COMPLETED"},
			MissedProlog: []string{"n1", "n2"},
		},
		"no Prolog of it reached the controller":    {Job: &epdapi.Job{State: "COMPLETED"}},
		"decided before it starts; epplan explain ": {},
	} {
		if got := v.UndecidedWords(); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", v, got, want)
		}
	}
}

func TestMissingHooksAreSaidAndFewLateAnswersArent(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	s := epdapi.ControllerStatus{
		MissedPrologs: []epdapi.MissedProlog{{Node: "n7", Jobs: 12, Since: at, Last: 40}},
		TokensSeen:    100, TokensMissing: 5,
	}
	if got := strings.Join(s.HookWords(), "\n"); got !=
		"no Prolog came from 12 jobs with GPUs on n7 since 2026-03-02T12:00:00Z, the last of job 40" {
		t.Errorf("%q", got)
	}
	s.MissedPrologs, s.TokensSeen = nil, 10
	if got := s.HookWords(); len(got) != 1 || !strings.HasPrefix(got[0],
		"5 of 15 jobs with GPUs were submitted without") {
		t.Errorf("%q", got)
	}
}
