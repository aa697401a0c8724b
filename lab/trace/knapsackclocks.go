package trace

import (
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// KnapsackModels are the GPU models whose responses to clocks stand for those of
// the two GPU types of a knapsack queue.
var KnapsackModels = [2]string{"V100-2022", "RTX2070S"} //nolint:gochecknoglobals // constant

// withPosition names a job, and where it is said of which type it is.
func (job *KnapsackJob) withPosition() string {
	if job.Pos.Line == 0 {
		return fmt.Sprintf("job %q", job.ID)
	}
	return fmt.Sprintf("job %q (%s)", job.ID, job.Pos)
}

// EnableClocks lets the jobs of a queue run at other clocks than the default
// ones: on each GPU type they respond like their job type, scaled so that at
// default clocks they take what the queue says. Response is that of a job type on
// one of [KnapsackModels]; nil: there is none, which is an error.
func EnableClocks(
	jobs []KnapsackJob, predicted, truth *planner.Problem,
	response func(kind, gpuModel string) (dvfsmodel.Response, error),
) error {
	for i := range jobs {
		for class, gpuModel := range KnapsackModels {
			r, err := response(jobs[i].Type, gpuModel)
			if err != nil {
				return err
			}
			if r == nil {
				return fmt.Errorf("%s is of type %q, which has no model on %s: want one for each type",
					jobs[i].withPosition(), jobs[i].Type, gpuModel)
			}
			for _, p := range []*planner.Problem{predicted, truth} {
				o := &p.Tasks[i].Options[class]
				at := o.Response.Default()
				o.Response = dvfsmodel.ScaledTo(r, at.Time, at.Power)
			}
		}
	}
	return nil
}
