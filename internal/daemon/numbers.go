package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/slurm"
)

// Confs are where slurm.conf may be, with gres.conf beside it, when no hook has said
// it yet: Slurm's default, what slurmd keeps of a configless cluster, and others.
var Confs = []string{
	"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf",
	"/usr/local/etc/slurm.conf",
}

// errNumbers tells that a GPU can't be told by its number in Slurm.
var errNumbers = errors.New("nothing tells which GPU Slurm's numbers mean: neither UUIDs in the job's " +
	"environment, nor gres.conf, nor --gpu-order")

// jobGPUs is the GPUs that Slurm gave a job: by their UUIDs where the job's environment
// has them, else by the numbers of gres.conf's list. All of them are there, or none is
// returned.
func (d *AgentServer) jobGPUs(ctx context.Context, e *slurm.HookEvent) ([]gpu.Identity, error) {
	uuids, err := d.uuidsOfJob(ctx, e)
	if err != nil {
		return nil, err
	}
	ours := d.options.Agent.GPUs().Identities()
	found := make([]gpu.Identity, 0, len(uuids))
	for i, uuid := range uuids {
		at := slices.IndexFunc(ours, func(id gpu.Identity) bool { return uuid != "" && id.UUID == uuid })
		if at < 0 {
			return nil, fmt.Errorf("GPU %d of Slurm's list %s: %w", e.GPUs[i], uuid, agent.ErrNoGPU)
		}
		found = append(found, ours[at])
	}
	return found, nil
}

// uuidsOfJob is the UUIDs of a job's GPUs, in the order of their numbers; empty where one
// isn't there.
func (d *AgentServer) uuidsOfJob(ctx context.Context, e *slurm.HookEvent) ([]string, error) {
	d.mu.Lock()
	d.hookHadUUIDs = len(e.UUIDs) > 0
	if e.Conf != "" {
		d.conf = string(e.Conf)
	}
	d.mu.Unlock()
	if len(e.UUIDs) > 0 {
		if len(e.UUIDs) != len(e.GPUs) {
			return nil, fmt.Errorf("the job's environment has %d UUIDs for %d GPUs",
				len(e.UUIDs), len(e.GPUs))
		}
		uuids := make([]string, len(e.UUIDs))
		for i, uuid := range e.UUIDs {
			uuids[i] = string(uuid)
		}
		return uuids, nil
	}
	all, _, err := d.uuidsByNumber(ctx, e.Node)
	if err != nil {
		return nil, err
	}
	uuids := make([]string, len(e.GPUs))
	for i, n := range e.GPUs {
		if n < 0 || n >= len(all) {
			return nil, fmt.Errorf("GPU %d of Slurm's list, which has %d: %w", n, len(all), agent.ErrNoGPU)
		}
		uuids[i] = all[n]
	}
	return uuids, nil
}

// uuidsByNumber is the GPUs that Slurm's numbers mean on a node, by UUID, empty where one isn't
// there, and by what that is known. gres.conf comes first. Where it and --gpu-order
// contradict each other, one of them is wrong.
func (d *AgentServer) uuidsByNumber(ctx context.Context, node string) (uuids []string, by string, err error) {
	inventory := d.options.Agent.GPUs().Inventory()
	uuids, by, err = d.byGresConf(ctx, node, inventory)
	order := d.options.Order
	switch {
	case err == nil && order != nil:
		for i := range min(len(uuids), len(order)) {
			if uuids[i] != "" && uuids[i] != order[i] {
				return nil, "", fmt.Errorf("GPU %d is %s by %s, and %s by --gpu-order: %w", i, uuids[i], by,
					order[i], slurm.ErrOrder)
			}
		}
		return uuids, by, nil
	case err == nil:
		return uuids, by, nil
	case order != nil:
		return order, "--gpu-order", nil
	case d.options.Simulated && errors.Is(err, fs.ErrNotExist): // nobody's GPUs
		slices.SortStableFunc(inventory, func(a, b gpu.Identity) int { return a.Minor - b.Minor })
		for _, id := range inventory {
			uuids = append(uuids, id.UUID)
		}
		return uuids, "the simulated device files", nil
	}
	return nil, "", fmt.Errorf("%w: %w", errNumbers, err)
}

// confBound is how long reading Slurm's configuration may take: it may be on a file
// system of the network.
const confBound = 300 * time.Millisecond

// byGresConf is what gres.conf says, for the GPUs as the driver counted them last.
func (d *AgentServer) byGresConf(
	ctx context.Context, node string, inventory []gpu.Identity,
) (uuids []string, by string, err error) {
	type answer struct {
		devices slurm.DeviceMap
		file    string
	}
	ch := d.reading.DoChan(node, func() (any, error) {
		devices, file, err := d.readGresConf(node)
		return answer{devices, file}, err
	})
	var read answer
	timer := time.NewTimer(confBound)
	defer timer.Stop()
	select {
	case r := <-ch:
		if r.Err != nil {
			return nil, "", r.Err
		}
		read, _ = r.Val.(answer)
	case <-timer.C:
		return nil, "", fmt.Errorf("gres.conf can't be read within %s", confBound)
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	gpus := make([]slurm.DriverGPU, len(inventory))
	for i, id := range inventory {
		gpus[i] = slurm.DriverGPU{Minor: id.Minor, Model: id.Model}
		if id.UUID == "" {
			gpus[i] = slurm.DriverGPU{Minor: -1}
		}
	}
	places, err := read.devices.DriverIndexes(gpus)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", read.file, err)
	}
	for _, at := range places {
		if at < 0 {
			uuids = append(uuids, "")
			continue
		}
		uuids = append(uuids, inventory[at].UUID)
	}
	by = read.file
	if read.devices.AutoDetect != "" {
		by += ", AutoDetect=" + read.devices.AutoDetect
	}
	return uuids, by, nil
}

// readGresConf reads the gres.conf that slurmd uses: beside the slurm.conf that a hook
// named, else the first one where there may be one.
func (d *AgentServer) readGresConf(node string) (devices slurm.DeviceMap, file string, err error) {
	d.mu.Lock()
	confs := d.options.SlurmConfs
	if d.conf != "" {
		confs = []string{d.conf}
	}
	d.mu.Unlock()
	err = fmt.Errorf("gres.conf: %w", fs.ErrNotExist)
	for _, conf := range confs {
		dir := path.Dir(path.Clean(conf))
		devices, err = slurm.ReadGresConf(d.options.Files, strings.TrimPrefix(dir, "/"), node)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return devices, path.Join(dir, "gres.conf"), err
		}
	}
	return devices, "", err
}

// numbering is how Slurm's numbers are understood now, for people.
func (d *AgentServer) numbering(ctx context.Context) *epdapi.Numbering {
	d.mu.Lock()
	named := d.hookHadUUIDs
	d.mu.Unlock()
	if named {
		return &epdapi.Numbering{By: "UUIDs in the jobs' environment", GPUs: []string{}}
	}
	uuids, by, err := d.uuidsByNumber(ctx, d.options.Node)
	if err != nil {
		return &epdapi.Numbering{GPUs: []string{}, Trouble: slurm.Printable(err.Error(), 1000)}
	}
	return &epdapi.Numbering{By: by, GPUs: uuids}
}
