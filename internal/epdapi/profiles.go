package epdapi

import (
	"context"
	"net/url"
	"time"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/store/record"
)

// PathProfiles is where recorded profiles are read, by operators.
const PathProfiles = "/v1/profiles"

// ProfileList is what workloads do on GPUs by themselves, those that ran last
// first.
type ProfileList struct {
	Rules    colocate.Rules    `json:"rules"`
	Profiles []WorkloadProfile `json:"profiles"`
}

// WorkloadProfile is what a workload does on GPUs of one model.
type WorkloadProfile struct {
	record.WorkloadKey
	Alone  int64     `json:"alone_runs"`  // recorded runs that had their GPUs alone
	Shared int64     `json:"shared_runs"` // and others, from which nothing is learnt
	Last   time.Time `json:"last"`        // when the last of them was recorded
	colocate.UseProfile
	LastJob LastJob `json:"last_job,omitzero"` // absent: no job of it is kept
}

// Profiles asks for the profiles of a workload, or of all that ran last.
func (c *Client) Profiles(ctx context.Context, workload string) (*ProfileList, error) {
	query := url.Values{}
	if workload != "" {
		query.Set("workload", workload)
	}
	return get[ProfileList](ctx, c, PathProfiles, query)
}
