package slurmqueue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/planner"
)

// ErrNoNodes tells that no node of Slurm's has GPUs of which a profile is known.
var ErrNoNodes = errors.New("no node of Slurm's has GPUs of a known model")

// Profiles returns the GPU models that epd describes beside those of a site's
// files; nil: none.
func Profiles(q *epdapi.Queue) (*config.Profiles, error) {
	if q.Profiles == "" {
		return nil, nil
	}
	further, err := config.ReadProfiles(strings.NewReader(q.Profiles), "epd's profiles")
	if err != nil {
		return nil, fmt.Errorf("read profiles: %w", err)
	}
	return further, nil
}

// Cluster returns a configuration with the nodes that Slurm reports, and the partitions that
// they are in, by class. Warnings are about kinds of nodes that are left out;
// [ErrNoNodes] is all of them.
func Cluster(
	nodes []epdapi.QueueNode, profiles *config.Profiles,
) (c *config.Config, partitions [][]string, warnings []error, err error) {
	var b strings.Builder
	b.WriteString("[cluster]\nname = \"slurm\"\n")
	names := make(map[string]bool)
	for i := range nodes {
		n := &nodes[i]
		profile, err := profiles.Lookup(n.GPUModel)
		if err == nil {
			_, err = profile.Table()
		}
		if err == nil && (n.GPUs < 1 || n.GPUs > planner.MaxGPUs) {
			err = fmt.Errorf("%d GPUs, want 1 to %d", n.GPUs, planner.MaxGPUs)
		}
		if err != nil {
			warnings = append(warnings, fmt.Errorf("%s with %s of type %q left out: %w",
				countText(n.Count, "node"), countText(n.GPUs, "GPU"), n.GPUModel, err))
			continue
		}
		name := ClassName(names, profile.Name, n.GPUs)
		partitions = append(partitions, n.Partitions)
		fmt.Fprintf(&b, "[[cluster.nodes]]\nname = %q\ngpu_model = %q\ngpus = %d\ncount = %d\n", name,
			profile.Name, n.GPUs, max(1, n.Count))
	}
	if len(partitions) == 0 {
		return nil, nil, warnings, ErrNoNodes
	}
	c, err = config.Load(strings.NewReader(b.String()), "Slurm's nodes", profiles)
	return c, partitions, warnings, err
}

// ClassName names a class of nodes by its GPUs, apart from those that are taken, to which it is added.
func ClassName(taken map[string]bool, gpuModel string, gpus int) string {
	kind := strings.ToLower(gpuModel) + "x" + strconv.Itoa(gpus)
	name := kind
	for k := 2; taken[name]; k++ { // the same in other partitions
		name = kind + "-" + strconv.Itoa(k)
	}
	taken[name] = true
	return name
}

func countText(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Models reads epd's models; nil: there are none. Warnings are about those that
// say nothing about clocks of their GPU model's profile: they are left out.
func Models(text string, profiles *config.Profiles) (models *config.Models, warnings []error, err error) {
	if text == "" {
		return nil, nil, nil
	}
	all, err := config.ReadModels(strings.NewReader(text), "epd's models")
	if err != nil {
		return nil, nil, fmt.Errorf("read models: %w", err)
	}
	var usable []config.Model
	for _, m := range all.All() {
		profile, err := profiles.Lookup(m.GPUModel)
		if err == nil {
			_, err = m.Response(profile)
		}
		if err != nil {
			warnings = append(warnings,
				fmt.Errorf("the model of workload %s is left out: %w", m.Workload, err))
			continue
		}
		usable = append(usable, m)
	}
	models, err = config.NewModels(usable...)
	return models, warnings, err
}
