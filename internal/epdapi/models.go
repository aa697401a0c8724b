package epdapi

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// Paths of models; choosing one is for root and Slurm's user.
const (
	PathModels    = "/v1/models"
	PathModelsUse = "/v1/models/use"
)

// ModelStatus is how a workload's model fares.
type ModelStatus struct {
	record.WorkloadKey
	Version int64  `json:"version"` // 0: none is in use
	Prior   bool   `json:"prior"`   // scaled from a prior, for want of settings that were measured
	Samples int    `json:"samples"`
	Missed  int    `json:"missed"` // runs in a row that were outside of the prediction
	Pinned  bool   `json:"pinned"` // chosen by an administrator: fits don't replace it
	Note    string `json:"note,omitempty"`
	// Of the model in use; empty without one: its form, when it was made, and the
	// ratio of run times to predictions, less 1, that is seldom exceeded.
	Form    string    `json:"form,omitempty"`
	Created time.Time `json:"created,omitzero"`
	Margin  float64   `json:"time_margin,omitempty"`
	LastJob LastJob   `json:"last_job,omitzero"` // absent: no job of it is kept
	// Chosen is who pinned the version in use, took it out, or let fits replace it
	// again and none has yet; absent: nobody did, or before epd kept it.
	Chosen Chosen `json:"chosen,omitzero"`
}

// Chosen is who chose a version of a model, when and why.
type Chosen struct {
	By  string    `json:"by"`            // a user; a token of the pages as "alice (token)"; empty: not known
	At  time.Time `json:"at,omitzero"`   // absent: not known
	Why string    `json:"why,omitempty"` // the reason given; absent: none was
}

// Words returns a choice in words, without why: "by alice, 2026-05-04 09:00:00"; empty
// where nobody knows. Times are written by when.
func (c *Chosen) Words(when func(time.Time) string) string {
	if c.By == "" {
		return ""
	}
	return "by " + c.By + ", " + when(c.At)
}

// LastJob is the job of a workload that was submitted last: a workload's key says
// nothing to people, this does.
type LastJob struct {
	ID        int64  `json:"job_id"`
	Name      string `json:"name"` // bytes that are no text escaped
	User      string `json:"user"`
	Partition string `json:"partition"`
}

// maxName is how many characters of a job's name are shown for its workload.
const maxName = 40

// NameOf returns what a workload is called before people: its last job's name, cut to
// 40 characters; without one what [ShortWorkload] says.
func (j *LastJob) NameOf(workload string) string {
	name := []rune(j.Name)
	switch {
	case len(name) == 0:
		return ShortWorkload(workload)
	case len(name) > maxName:
		return string(name[:maxName-1]) + "…"
	}
	return j.Name
}

// WordsOf returns a workload in words: its name, whose it is and where it runs, as
// "train (ada, gpu)"; without a job its short key alone.
func (j *LastJob) WordsOf(workload string) string {
	if *j == (LastJob{}) {
		return ShortWorkload(workload)
	}
	return fmt.Sprintf("%s (%s, %s)", j.NameOf(workload), cmp.Or(j.User, "–"), cmp.Or(j.Partition, "–"))
}

// hashedKey is a workload's key: the hash of what repeats, and on how many GPUs.
var hashedKey = regexp.MustCompile(`^([0-9a-f]{8})[0-9a-f]{16}(x[0-9]+)$`)

// ShortWorkload is as much of a workload's key as tells it from others on a page:
// the first eight digits of its hash, and its GPUs. What isn't a hash stays, cut to
// 40 characters.
func ShortWorkload(key string) string {
	if parts := hashedKey.FindStringSubmatch(key); parts != nil {
		return parts[1] + "…" + parts[2]
	}
	if text := []rune(key); len(text) > maxName {
		return string(text[:maxName-1]) + "…"
	}
	return key
}

// ModelList is how all workloads' models fare.
type ModelList struct {
	Models []ModelStatus `json:"models"`
}

// ModelVersions are all versions of a workload's model.
type ModelVersions struct {
	Versions []ModelVersion `json:"versions"`
	LastJob  LastJob        `json:"last_job,omitzero"` // of the workload; absent: no job of it is kept
}

// ModelVersion is a version with who chose it last.
type ModelVersion struct {
	record.Model
	Chosen Chosen `json:"chosen,omitzero"` // absent: nobody did
}

// ModelChoice says which version of a workload's model is used from now on.
type ModelChoice struct {
	Workload string `json:"workload"`
	GPUModel string `json:"gpu_model"`
	Version  int64  `json:"version"` // 0: none; the workload runs at default clocks
	Note     string `json:"note"`    // why, for people
	// Free lets fits replace the model again, whatever the version.
	Free bool `json:"free,omitempty"`
}

// Models asks how the models fare.
func (c *Client) Models(ctx context.Context) (*ModelList, error) {
	return get[ModelList](ctx, c, PathModels, nil)
}

// ModelVersions asks for all versions of a workload's model.
func (c *Client) ModelVersions(ctx context.Context, workload, gpuModel string) (*ModelVersions, error) {
	return get[ModelVersions](ctx, c, PathModels, url.Values{"workload": {workload}, "gpu_model": {gpuModel}})
}

// UseModel chooses the version of a model that counts.
func (c *Client) UseModel(ctx context.Context, m *ModelChoice) (*ModelStatus, error) {
	return post[ModelStatus](ctx, c, PathModelsUse, m)
}
