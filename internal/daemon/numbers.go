package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/slurmconf"
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

// gpuNumbers tells which GPUs of the node Slurm's numbers mean.
type gpuNumbers struct {
	agent *agent.Agent
	node  string
	order []string // the GPUs' UUIDs by their numbers, as the administrator says; nil: nobody does
	confs []string // where slurm.conf may be, unless a hook says
	files fs.FS    // where they are looked up
	// simulated tells that the GPUs are nobody's.
	simulated bool
	patience  time.Duration // with their files

	reading singleflight.Group // of Slurm's configuration

	mu           sync.Mutex // guards what follows
	conf         string     // slurmd's slurm.conf, as a hook said
	hookHadUUIDs bool       // the last hook had the GPUs' UUIDs
}

// jobGPUs returns the GPUs that Slurm gave a job: by their UUIDs where the job's environment
// has them, which the numbers mustn't contradict, else by the numbers of gres.conf's list. All of them are
// there, or none is returned.
func (n *gpuNumbers) jobGPUs(ctx context.Context, e *hooks.Event) ([]gpu.Identity, error) {
	uuids, err := n.uuidsOfJob(ctx, e)
	if err != nil {
		return nil, err
	}
	ours := n.agent.GPUs().Identities()
	found := make([]gpu.Identity, 0, len(uuids))
	for i, uuid := range uuids {
		at := slices.IndexFunc(ours, func(id gpu.Identity) bool { return uuid != "" && id.UUID == uuid })
		if at < 0 {
			return nil, fmt.Errorf("GPU %d of Slurm's list: %w (%s)", e.GPUs[i], agent.ErrNoGPU,
				cmp.Or(uuid, "missing, or epd couldn't open it"))
		}
		found = append(found, ours[at])
	}
	return found, nil
}

// uuidsOfJob returns the UUIDs of a job's GPUs, in the order of their numbers; empty where one
// isn't there.
func (n *gpuNumbers) uuidsOfJob(ctx context.Context, e *hooks.Event) ([]string, error) {
	n.mu.Lock()
	n.hookHadUUIDs = len(e.UUIDs) > 0
	if e.Conf != "" {
		n.conf = string(e.Conf)
	}
	n.mu.Unlock()
	if len(e.UUIDs) > 0 {
		if len(e.UUIDs) != len(e.GPUs) {
			return nil, fmt.Errorf("the job's environment has %d UUIDs for %d GPUs",
				len(e.UUIDs), len(e.GPUs))
		}
		uuids := make([]string, len(e.UUIDs))
		for i, uuid := range e.UUIDs {
			uuids[i] = string(uuid)
		}
		return uuids, n.checkUUIDs(ctx, e, uuids)
	}
	all, _, err := n.uuidsByNumber(ctx, e.Node)
	if err != nil {
		return nil, err
	}
	uuids := make([]string, len(e.GPUs))
	for i, number := range e.GPUs {
		if number < 0 || number >= len(all) {
			return nil, fmt.Errorf("GPU %d of Slurm's list, which has %d: %w", number, len(all), agent.ErrNoGPU)
		}
		uuids[i] = all[number]
	}
	return uuids, nil
}

// errUUIDs is returned if the UUIDs in a job's environment are of other GPUs than its numbers.
var errUUIDs = errors.New("the UUIDs in CUDA_VISIBLE_DEVICES aren't those of SLURM_JOB_GPUS: " +
	"does a script around the Prolog set one of them?")

// checkUUIDs holds the UUIDs in a job's environment against its numbers, if it is known which GPUs those are.
func (n *gpuNumbers) checkUUIDs(ctx context.Context, e *hooks.Event, uuids []string) error {
	all, by, err := n.uuidsByNumber(ctx, e.Node)
	if err != nil {
		return nil //nolint:nilerr // the UUIDs are all that tells
	}
	for _, number := range e.GPUs {
		if number < 0 || number >= len(all) {
			return fmt.Errorf("%w (GPU %d is beyond the list of %s)", errUUIDs, number, by)
		}
		if uuid := all[number]; uuid != "" && !slices.Contains(uuids, uuid) {
			return fmt.Errorf("%w (GPU %d is %s by %s)", errUUIDs, number, uuid, by)
		}
	}
	return nil
}

// uuidsByNumber returns the GPUs that Slurm's numbers mean on a node, by UUID, empty where one isn't
// there, and by what that is known. gres.conf comes first. Where it and --gpu-order
// contradict each other, one of them is wrong.
func (n *gpuNumbers) uuidsByNumber(ctx context.Context, node string) (uuids []string, by string, err error) {
	inventory := n.agent.GPUs().Inventory()
	uuids, by, err = n.byGresConf(ctx, node, inventory)
	order := n.order
	switch {
	case err == nil && order != nil:
		for i := range min(len(uuids), len(order)) {
			if uuids[i] != "" && uuids[i] != order[i] {
				return nil, "", fmt.Errorf("GPU %d is %s by %s, and %s by --gpu-order: %w", i, uuids[i], by,
					order[i], slurmconf.ErrOrder)
			}
		}
		return uuids, by, nil
	case err == nil:
		return uuids, by, nil
	case order != nil:
		return order, "--gpu-order", nil
	case n.simulated && errors.Is(err, fs.ErrNotExist): // nobody's GPUs
		slices.SortStableFunc(inventory, func(a, b gpu.Identity) int { return a.Minor - b.Minor })
		for _, id := range inventory {
			uuids = append(uuids, id.UUID)
		}
		return uuids, "the simulated device files", nil
	}
	return nil, "", fmt.Errorf("%w: %w", errNumbers, err)
}

// byGresConf returns what gres.conf says, for the GPUs as the driver counted them last.
func (n *gpuNumbers) byGresConf(
	ctx context.Context, node string, inventory []gpu.Identity,
) (uuids []string, by string, err error) {
	type answer struct {
		devices slurmconf.DeviceMap
		file    string
		divided []string // GPUs
	}
	ch := n.reading.DoChan(node, func() (any, error) {
		devices, file, err := n.readGresConf(node)
		read := answer{devices: devices, file: file}
		if err == nil && devices.AutoDetect != "" && devices.AutoDetect != "off" {
			read.divided = n.agent.GPUs().Divided()
		}
		return read, err
	})
	var read answer
	timer := time.NewTimer(n.patience)
	defer timer.Stop()
	select {
	case r := <-ch:
		if r.Err != nil {
			return nil, "", r.Err
		}
		read, _ = r.Val.(answer)
	case <-timer.C:
		return nil, "", fmt.Errorf("gres.conf can't be read within %s", n.patience)
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	gpus := make([]slurmconf.DriverGPU, len(inventory))
	for i, id := range inventory {
		gpus[i] = slurmconf.DriverGPU{
			Minor: id.Minor, Model: id.Model, Divided: slices.Contains(read.divided, id.UUID),
		}
		if id.UUID == "" {
			gpus[i] = slurmconf.DriverGPU{Minor: -1}
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
func (n *gpuNumbers) readGresConf(node string) (devices slurmconf.DeviceMap, file string, err error) {
	n.mu.Lock()
	confs := n.confs
	if n.conf != "" {
		confs = []string{n.conf}
	}
	n.mu.Unlock()
	err = fmt.Errorf("gres.conf: %w", fs.ErrNotExist)
	for _, conf := range confs {
		dir := path.Dir(path.Clean(conf))
		devices, err = slurmconf.ReadGres(n.files, strings.TrimPrefix(dir, "/"), node)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return devices, path.Join(dir, "gres.conf"), err
		}
	}
	return devices, "", err
}

// status returns how Slurm's numbers are understood now, for people.
func (n *gpuNumbers) status(ctx context.Context) *epdapi.Numbering {
	n.mu.Lock()
	named := n.hookHadUUIDs
	n.mu.Unlock()
	if named {
		return &epdapi.Numbering{By: "UUIDs in the jobs' environment", GPUs: []string{}}
	}
	uuids, by, err := n.uuidsByNumber(ctx, n.node)
	if err != nil {
		return &epdapi.Numbering{GPUs: []string{}, Trouble: slurm.Printable(err.Error(), 1000)}
	}
	return &epdapi.Numbering{By: by, GPUs: uuids}
}
