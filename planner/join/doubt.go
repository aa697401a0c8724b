package join

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// uncertainModels returns the models that a job's response on a GPU model rests on: its workload's
// there, and those on the GPU models that it was measured on. None, if it isn't known
// of one of them how far off it may be.
func (j *joiner) uncertainModels(job *queue.Job, k *knownRun) ([]planner.UncertainModel, error) {
	own := planner.UncertainModel{
		Uncertainty: j.catalog.Uncertainty(job.Workload, k.hardware.Name), Time: 1, Power: 1, Clocks: true,
	}
	if own.Uncertainty == nil {
		return nil, nil
	}
	all := []planner.UncertainModel{own}
	time, power := j.statedOn(job, k.hardware.Name)
	if time > 0 && power > 0 {
		all[0].Time, all[0].Power = 0, 0
		return all, nil
	}
	anchors, err := j.statedRuns(job)
	if err != nil {
		return nil, err
	}
	times, powers := 0.0, 0.0
	for i := range anchors {
		if anchors[i].time > 0 {
			times++
		}
		if anchors[i].power > 0 {
			powers++
		}
	}
	if time > 0 {
		all[0].Time, times = 0, 0
	}
	if power > 0 {
		all[0].Power, powers = 0, 0
	}
	for i := range anchors {
		other := planner.UncertainModel{Uncertainty: j.catalog.Uncertainty(job.Workload, anchors[i].model)}
		if times > 0 && anchors[i].time > 0 {
			other.Time = -1 / times
		}
		if powers > 0 && anchors[i].power > 0 {
			other.Power = -1 / powers
		}
		switch {
		case other.Time == 0 && other.Power == 0:
		case other.Uncertainty == nil:
			return nil, nil
		default:
			all = append(all, other)
		}
	}
	return all, nil
}

// prior is how jobs without a model respond on a GPU model.
type prior struct {
	of       *Hardware
	response dvfsmodel.Response                // for 1 s and 1 W at default clocks
	common   *dvfsmodel.Uncertainty            // of all such jobs
	own      map[string]*dvfsmodel.Uncertainty // of jobs of a workload
}

func (j *joiner) prior(h *Hardware) *prior {
	p := j.priors[h.Name]
	if p == nil {
		p = &prior{
			of: h, response: dvfsmodel.NewFrontier(h.Unseen, h.Table, h.Default),
			common: h.Unseen.CommonUncertainty(), own: make(map[string]*dvfsmodel.Uncertainty),
		}
		j.priors[h.Name] = p
	}
	return p
}

// uncertainModels returns how far off the energy of a job may be: with those of all jobs without a
// model, and with those of its workload. Jobs that name none may all be of one.
func (p *prior) uncertainModels(job *queue.Job) []planner.UncertainModel {
	own := p.own[job.Workload]
	if own == nil {
		own = p.of.Unseen.OwnUncertainty()
		p.own[job.Workload] = own
	}
	return []planner.UncertainModel{{Uncertainty: p.common, Clocks: true}, {Uncertainty: own, Clocks: true}}
}
