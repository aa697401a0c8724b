package queue

import (
	"slices"
	"strconv"
	"strings"
)

// parseGPUs reads "2", what Slurm prints, or counts by GPU model as in "V100:2;GTX1080Ti:4;*:4".
func parseGPUs(text string) ([]GPUCount, *FieldError) {
	if slurmGPUs.MatchString(text) || slurmResources.MatchString(text) {
		return parseGres(text)
	}
	if !strings.Contains(text, ":") {
		count, problem := parseCount(colGPUs, text, maxGPUs)
		return []GPUCount{{Count: count}}, problem
	}
	var gpus []GPUCount
	for part := range strings.SplitSeq(text, ";") {
		model, count, ok := strings.Cut(part, ":")
		if !ok {
			return nil, newFieldError(colGPUs, quoted(text)+" is not a list of GPU counts",
				`one such as V100:2;*:4`)
		}
		g, problem := parseGPUCount(model, strings.TrimSpace(count))
		if problem != nil {
			return nil, problem
		}
		if gpus = append(gpus, g); len(gpus) > maxGPUModels {
			break // for Validate to refuse
		}
	}
	return gpus, nil
}

func parseGPUCount(model, count string) (GPUCount, *FieldError) {
	model = strings.TrimSpace(model)
	if model == "" {
		return GPUCount{}, newFieldError(colGPUs, "has a count without a GPU model",
			`a model, or * for any other`)
	}
	if model == AnyModel {
		model = ""
	} else if msg, want := gpuModelFault(model); msg != "" {
		return GPUCount{}, newFieldError(colGPUs, "model "+msg, want)
	}
	n, problem := parseCount(colGPUs, count, maxGPUs)
	return GPUCount{Model: model, Count: n}, problem
}

// parseGres reads GPUs as Slurm writes them: gpu:2, gpu:v100:2(S:0),
// gres/gpu:v100=2, or a list of trackable resources with these among others.
func parseGres(text string) ([]GPUCount, *FieldError) {
	var anyOf, typed []GPUCount
	for part := range strings.SplitSeq(text, ",") {
		part, _, _ = strings.Cut(strings.TrimSpace(part), "(")
		part = strings.TrimPrefix(strings.TrimPrefix(part, "gres/"), "gres:")
		kind, rest, more := strings.Cut(strings.ReplaceAll(part, "=", ":"), ":")
		if kind != "gpu" {
			continue // other resources
		}
		if !more {
			rest = "1"
		}
		model, count, hasModel := strings.Cut(rest, ":")
		switch _, err := strconv.Atoi(model); {
		case hasModel:
		case err == nil:
			model, count = AnyModel, rest
		default: // a model alone
			count = "1"
		}
		g, problem := parseGPUCount(model, count)
		if problem != nil {
			return nil, problem
		}
		if g.Model == "" {
			anyOf = append(anyOf, g)
		} else {
			typed = append(typed, g)
		}
	}
	if len(typed) > 0 { // the others are their sum
		return typed, nil
	}
	if len(anyOf) == 0 {
		return nil, newFieldError(colGPUs, quoted(text)+" has no GPU", "one such as gpu:2 or gres/gpu=2")
	}
	return anyOf, nil
}

// nodesOf returns the number of nodes in a list of trackable resources such as
// gres/gpu=8,node=2; 0 where it has none, or one: Slurm writes that of every job.
func nodesOf(text string) int {
	for part := range strings.SplitSeq(text, ",") {
		if count, ok := strings.CutPrefix(strings.TrimSpace(part), "node="); ok {
			if nodes, err := strconv.Atoi(count); err == nil && nodes > 1 {
				return min(nodes, maxNodes)
			}
		}
	}
	return 0
}

// pinToModels lets a job run on some GPU models only, as gpu_model states them: A100, or A100;H100. What
// was measured of it was measured there, if nobody says where.
func (d *jobDraft) pinToModels() *FieldError {
	var models []string
	for model := range strings.SplitSeq(d.pinned, ";") {
		model = strings.TrimSpace(model)
		if model == AnyModel || strings.EqualFold(model, "any") {
			return nil
		}
		if msg, want := gpuModelFault(model); msg != "" {
			return newFieldError(colGPUModel, msg, want)
		}
		if model == "" {
			return newFieldError(colGPUModel, quoted(d.pinned)+" has an empty name", "one such as A100, or A100;H100")
		}
		models = append(models, model)
	}
	job := &d.job
	if len(job.GPUs) == 1 && job.GPUs[0].Model == "" {
		count := job.GPUs[0].Count
		job.GPUs = nil
		for _, model := range models {
			job.GPUs = append(job.GPUs, GPUCount{Model: model, Count: count})
		}
	} else {
		same := len(models) == len(job.GPUs)
		for _, g := range job.GPUs {
			same = same && slices.ContainsFunc(models, func(m string) bool { return strings.EqualFold(m, g.Model) })
		}
		if !same {
			return newFieldError(colGPUModel, "is "+quoted(d.pinned)+", but gpus is "+quoted(job.gpusText()),
				"the same GPU models, or one of both columns")
		}
	}
	if len(job.GPUs) == 1 && job.RuntimeModel == "" && (job.Runtime > 0 || job.Power > 0) {
		job.RuntimeModel = job.GPUs[0].Model
	}
	return nil
}
