package query

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

func (o *Options) key(workload, gpuModel string) record.WorkloadKey {
	return record.WorkloadKey{Cluster: o.Cluster, Workload: workload, GPUModel: gpuModel}
}

// keyIn returns the key of a workload's runs on a GPU model that start in a partition.
func (o *Options) keyIn(partition, workload, gpuModel string) record.WorkloadKey {
	return o.key(o.Workload(workload, partition, gpuModel), gpuModel)
}

// ModelStatuses returns how all workloads' models fare. They are for operators.
func (s *Service) ModelStatuses(_ context.Context, who Caller) ([]epdapi.ModelStatus, error) {
	if err := Operators.Admits(who); err != nil {
		return nil, err
	}
	all := s.options.Learner.ModelStatuses()
	if one, known := s.options.Forecasts.ModelStatus(); known {
		all = append(all, one)
	}
	return all, nil
}

// Models returns how all workloads' models fare, with what people know the workloads by.
// They are for operators.
func (s *Service) Models(ctx context.Context, who Caller) (*epdapi.ModelList, error) {
	all, err := s.ModelStatuses(ctx, who)
	if err != nil {
		return nil, err
	}
	return &epdapi.ModelList{Models: s.lastJobs.withNames(ctx, all)}, nil
}

// ModelVersions returns all versions of a workload's model on a GPU model, the newest first.
// They are for operators.
func (s *Service) ModelVersions(
	ctx context.Context, who Caller, workload, gpuModel string,
) (*epdapi.ModelVersions, error) {
	if err := Operators.Admits(who); err != nil {
		return nil, err
	}
	versions, err := s.options.Learner.Versions(ctx, s.options.key(workload, gpuModel))
	if err != nil {
		return nil, err
	}
	return &epdapi.ModelVersions{
		Versions: versions, LastJob: s.lastJobs.of(ctx, []string{workload})[workload],
	}, nil
}

const maxNote = 1000 // bytes

func checkChoice(m *epdapi.ModelChoice) error {
	if m.Workload == "" || !isName(m.Workload, maxModel) || !isName(m.GPUModel, maxModel) || m.Version < 0 ||
		!isName(m.Note, maxNote) {
		return fmt.Errorf("%w: want workload, gpu_model, a version from 0, and a note of at most %d bytes",
			epdapi.ErrRequest, maxNote)
	}
	return nil
}

// UseModel puts a version of a workload's model in use, and keeps later fits from
// replacing it; version 0 takes the one in use out, and Free lets fits replace it again.
// All are remembered over restarts, with the caller, who chose it. The answer is how the
// model stands then.
func (s *Service) UseModel(
	ctx context.Context, who Caller, m *epdapi.ModelChoice,
) (*epdapi.ModelStatus, error) {
	if err := Administrators.Admits(who); err != nil {
		return nil, err
	}
	if err := checkChoice(m); err != nil {
		return nil, err
	}
	if m.Workload == forecast.Workload {
		return nil, fmt.Errorf("%w: predictions are made anew from the records: [predict] enabled = false "+
			"switches them off", epdapi.ErrRequest)
	}
	key := s.options.key(m.Workload, s.options.Settings().Profiles.NameOf(m.GPUModel))
	versions, err := s.options.Learner.Versions(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("a model of workload %s on %s: %w", key.Workload, key.GPUModel,
			store.ErrNotFound)
	}
	if m.Free {
		err = s.options.Learner.Unpin(ctx, key, s.options.choiceOf(who, ""))
	} else {
		err = s.options.Learner.Use(ctx, key, m.Version, s.options.choiceOf(who, m.Note))
	}
	if err != nil {
		return nil, err
	}
	return &s.lastJobs.withNames(ctx, []epdapi.ModelStatus{s.options.Learner.ModelStatus(key)})[0], nil
}

// choiceOf returns a choice that a caller makes now.
func (o *Options) choiceOf(who Caller, why string) epdapi.Chosen {
	by := strings.NewReplacer("[", "(", "]", ")").Replace(slurm.Printable(o.nameOf(who), maxModel))
	return epdapi.Chosen{By: by, At: o.Clock().UTC().Truncate(time.Second), Why: why}
}

// nameOf returns who asks, for those who look later: a user's name, or uid; a token of
// the pages as "alice (token)".
func (o *Options) nameOf(who Caller) string {
	switch {
	case who.inProcess:
		return "epd"
	case who.UID == math.MaxUint32:
		return who.Name + " (token)"
	case who.Name != "":
		return who.Name
	}
	if o.UserName != nil {
		if name := o.UserName(who.UID); name != "" {
			return name
		}
	}
	return "uid " + strconv.FormatUint(uint64(who.UID), 10)
}
