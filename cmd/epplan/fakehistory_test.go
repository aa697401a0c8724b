package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// historySayings let jobs of logs be stored: the fake forgets them but for their
// names. It has three jobs, in pages of two. A log with a user named full finds
// no room.
func historySayings(mux *http.ServeMux) {
	var mu sync.Mutex
	seen := map[string]bool{}
	mux.HandleFunc("POST "+epdapi.PathHistory, func(w http.ResponseWriter, r *http.Request) {
		var h epdapi.History
		if err := json.NewDecoder(r.Body).Decode(&h); err != nil || len(h.Jobs) == 0 ||
			len(h.Jobs) > epdapi.MaxHistory {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(epdapi.ErrorAnswer{Error: "makes no sense"})
			return
		}
		mu.Lock()
		defer mu.Unlock()
		answer := epdapi.HistoryAdded{Cluster: "alpha"}
		for i := range h.Jobs {
			p := &h.Jobs[i]
			if p.User == "full" {
				w.WriteHeader(http.StatusServiceUnavailable)
				_ = json.NewEncoder(w).Encode(epdapi.ErrorAnswer{Error: "the disk is full"})
				return
			}
			if key := p.Cluster + "\x00" + p.JobID + p.Submitted.String(); !seen[key] {
				seen[key] = true
				answer.Added++
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	mux.HandleFunc("GET "+epdapi.PathHistory, func(w http.ResponseWriter, r *http.Request) {
		page := epdapi.HistoryPage{Jobs: []record.HistoryJob{}}
		after, _ := strconv.Atoi(r.URL.Query().Get("after_id")) // 0: from the start
		for id := after + 1; id <= 3 && len(page.Jobs) < 2; id++ {
			begin := fakeBegin.Add(time.Duration(id) * time.Minute)
			page.Jobs = append(page.Jobs, record.HistoryJob{
				Cluster: "alpha", JobID: strconv.Itoa(id), Submitted: begin, Started: begin,
				Ended: begin.Add(time.Hour), User: "ada",
				Name: []byte("evil\x1b[2J"), GPUs: live.Known(2), Limit: live.LimitOf(2 * time.Hour),
				State: record.Completed, EnergyJ: live.Known(1.8e6),
			})
		}
		page.More = after == 0
		_ = json.NewEncoder(w).Encode(page)
	})
}
