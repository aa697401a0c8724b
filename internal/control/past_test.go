package control

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// pastJobs are jobs of a log, of ada and bob in turn.
func pastJobs(n int) epdapi.History {
	var h epdapi.History
	for i := range n {
		at := start.Add(time.Duration(i/3) * time.Second) // several at a time, as of an array
		h.Jobs = append(h.Jobs, record.HistoryJob{
			JobID: fmt.Sprintf("7_%d", i), Submitted: at, Started: at, Ended: at.Add(time.Hour),
			User: []string{"ada", "bob"}[i%2],
			Name: []byte("job"), State: record.Completed, EnergyJ: live.Known(1e6),
		})
	}
	return h
}

// imported posts jobs of a log as a caller; -1: it was refused.
func (r *rig) imported(who *query.Caller, h *epdapi.History) int {
	r.t.Helper()
	body, err := json.Marshal(h)
	if err != nil {
		r.t.Fatal(err)
	}
	var answer epdapi.HistoryAdded
	if status := r.callAs(who, http.MethodPost, epdapi.PathHistory, string(body), &answer); status !=
		http.StatusOK {
		return -1
	}
	return answer.Added
}

// page reads a page of history as a caller.
func (r *rig) page(who *query.Caller, last *record.HistoryJob) *epdapi.HistoryPage {
	r.t.Helper()
	path := epdapi.PathHistory
	if last != nil {
		path += "?" + url.Values{
			"after": {last.Submitted.Format(time.RFC3339Nano)}, "after_id": {last.JobID},
		}.Encode()
	}
	var p epdapi.HistoryPage
	if status := r.callAs(who, http.MethodGet, path, "", &p); status != http.StatusOK {
		r.t.Fatalf("status %d", status)
	}
	return &p
}

func TestImportingALogTwiceAddsNothing(t *testing.T) {
	r := newRig(t, nil)
	h := pastJobs(30)
	if first, again := r.imported(&root, &h), r.imported(&root, &h); first != 30 || again != 0 {
		t.Errorf("added %d, and %d again", first, again)
	}
	for _, job := range r.page(&root, nil).Jobs {
		if job.Cluster != "alpha" {
			t.Errorf("cluster %q", job.Cluster)
		}
	}
}

func TestUsersReadTheirOwnHistoryAlone(t *testing.T) {
	r := newRig(t, nil)
	h := pastJobs(30)
	r.imported(nil, &h)
	for _, c := range []struct {
		who  query.Caller
		want int
	}{
		{root, 30},
		{operator, 30},
		{ada, 15},
		{bob, 15},
		{nameless, 0},
		{query.Caller{UID: 9, Name: "carla"}, 0},
	} {
		p := r.page(&c.who, nil)
		if len(p.Jobs) != c.want || p.More {
			t.Errorf("%q reads %d jobs, want %d", c.who.Name, len(p.Jobs), c.want)
		}
		for i := range p.Jobs {
			if c.want < 30 && p.Jobs[i].User != c.who.Name {
				t.Errorf("%q reads a job of %s", c.who.Name, p.Jobs[i].User)
			}
		}
	}
}

func TestPagesOfHistoryHoldEveryJobOnce(t *testing.T) {
	r := newRig(t, nil)
	const jobs = 2500
	h := pastJobs(jobs)
	for part := range slices.Chunk(h.Jobs, epdapi.MaxHistory) {
		if r.imported(&root, &epdapi.History{Jobs: part}) != len(part) {
			t.Fatal("not all are new")
		}
	}
	seen := map[string]bool{}
	var last *record.HistoryJob
	for more := true; more; {
		p := r.page(&operator, last)
		for i := range p.Jobs {
			seen[p.Jobs[i].JobID] = true
		}
		last, more = &p.Jobs[len(p.Jobs)-1], p.More
	}
	if len(seen) != jobs {
		t.Errorf("read %d of %d", len(seen), jobs)
	}
}

func TestHistoryThatMakesNoSenseIsRefusedWhole(t *testing.T) {
	r := newRig(t, nil)
	wrong := pastJobs(3)
	wrong.Jobs[2].Ended = wrong.Jobs[2].Started.Add(-time.Hour)
	tooMany := pastJobs(epdapi.MaxHistory + 1)
	for _, h := range []epdapi.History{wrong, tooMany, {}} {
		if added := r.imported(&root, &h); added != -1 {
			t.Errorf("%d of %d jobs were taken", added, len(h.Jobs))
		}
	}
	if p := r.page(&root, nil); len(p.Jobs) != 0 {
		t.Errorf("%d jobs are stored", len(p.Jobs))
	}
	for _, query := range []string{"since=yesterday", "after=" + strings.Repeat("9", 100)} {
		if status := r.callAs(&ada, http.MethodGet, epdapi.PathHistory+"?"+query, "", nil); status !=
			http.StatusBadRequest {
			t.Errorf("%s: status %d", query, status)
		}
	}
}
