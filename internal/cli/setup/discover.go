package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/smi"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/slurm"
)

// nodeHardware is in what nodes of a kind are alike.
type nodeHardware struct {
	gpuType    string // in Slurm; "": Slurm has none
	mixed      bool   // GPUs of several types
	gpus, cpus int
	memGiB     int64
	partitions string // separated by commas
}

// nodeKind is nodes that are alike.
type nodeKind struct {
	nodeHardware

	model string // the profile of its GPUs; "": nobody knows
	nodes []string
}

// Found is a cluster as Slurm has it, or the machine itself.
type Found struct {
	source string // who says so
	name   string
	kinds  []nodeKind
	boards []smi.Model // of this machine, as nvidia-smi describes them
}

// Discover asks Slurm for nodes with GPUs, by a file with what scontrol show node -d printed if one is named.
// If Slurm doesn't answer it takes this machine with the GPUs that nvidia-smi describes. GPUs without a type
// in Slurm are of gpuModel.
func Discover(ctx context.Context, t *terminal.Terminal, nodesFile, gpuModel string) (*Found, error) {
	f := &Found{}
	noSMI := f.askNVIDIA(ctx)
	err := f.askSlurm(ctx, t, nodesFile)
	switch {
	case err == nil:
	case nodesFile == "" && noSMI == nil:
		t.Notef("no nodes of Slurm's: %v", err)
		f.addMachine()
	case nodesFile == "":
		return nil, terminal.WithHint(fmt.Errorf("no GPUs found: %w; %w", err, noSMI),
			"with what scontrol show node -d prints elsewhere: --nodes FILE; epplan config init writes the defaults")
	default:
		return nil, err
	}
	for i := range f.kinds {
		k := &f.kinds[i]
		if k.model == "" && !k.mixed && (k.gpuType != "" || gpuModel != "") {
			name := cmp.Or(k.gpuType, gpuModel)
			k.model = f.profileOf(name)
			if k.model == "" && k.gpuType == "" {
				_, err := config.BuiltinProfiles().Lookup(name)
				return nil, err //nolint:wrapcheck // says which are known
			}
		}
	}
	return f, nil
}

// profileOf returns the profile of a GPU model or type; "": it has none.
func (f *Found) profileOf(name string) string {
	if known := config.BuiltinProfiles().Find(name); known != nil {
		return known.Name
	}
	for i := range f.boards {
		if strings.EqualFold(f.boards[i].Profile.Name, name) {
			return f.boards[i].Profile.Name
		}
	}
	return ""
}

// patience is how long a tool may take; nvidia-smi takes long where its driver isn't loaded.
const patience = 20 * time.Second

// askNVIDIA reads the GPU models of this machine.
func (f *Found) askNVIDIA(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "-q", "-x").Output()
	if err != nil {
		return fmt.Errorf("nvidia-smi -q -x: %w", err)
	}
	known := config.BuiltinProfiles()
	f.boards, err = smi.Read(bytes.NewReader(out), "nvidia-smi -q -x", &smi.Options{Known: known})
	if err == nil && len(f.boards) == 0 {
		err = errors.New("nvidia-smi -q -x: no GPU")
	}
	return err
}

// askSlurm takes the nodes with GPUs that Slurm has.
func (f *Found) askSlurm(ctx context.Context, t *terminal.Terminal, file string) (err error) {
	var nodes []slurm.Node
	var unread slurm.Unread
	if f.name, f.source = "slurm", "Slurm"; file != "" {
		f.source = "scontrol show node -d"
		err = t.Read(file, func(in io.Reader, name string) error {
			text, err := io.ReadAll(in)
			if err == nil {
				nodes, unread, err = slurm.ParseNodeText(name, text, time.UTC)
			}
			return err
		})
	} else {
		var scontrol string
		if scontrol, err = exec.LookPath("scontrol"); err != nil {
			return err //nolint:wrapcheck // names it
		}
		if scontrol, err = filepath.Abs(scontrol); err != nil {
			return err //nolint:wrapcheck // says why
		}
		client := slurm.NewClient(slurm.ExecRunner{
			Dir: filepath.Dir(scontrol), Conf: os.Getenv("SLURM_CONF"), Timeout: patience,
		}, patience)
		nodes, unread, err = client.Nodes(ctx)
		if settings, err := client.Settings(ctx); err == nil && settings["ClusterName"] != "" {
			f.name = settings["ClusterName"]
		}
	}
	if err != nil {
		return err
	}
	if unread.Records > 0 {
		t.Warningf("%s of Slurm's not read: %s", report.Plural(unread.Records, "node"), unread.Reason)
	}
	if f.addNodes(nodes); len(f.kinds) == 0 {
		return fmt.Errorf("none of the %s has a GPU in Slurm (Gres=gpu:…)", report.Plural(len(nodes), "node"))
	}
	return nil
}

// addNodes adds the nodes with GPUs, alike ones together.
func (f *Found) addNodes(nodes []slurm.Node) {
	const mibPerGiB = 1024
	for i := range nodes {
		n := &nodes[i]
		k := nodeHardware{
			gpus: n.GPUCount(), cpus: n.CPUs, memGiB: n.MemoryMB / mibPerGiB,
			partitions: strings.Join(slices.Sorted(slices.Values(n.Partitions)), ","),
		}
		first := true
		for _, g := range n.Gres {
			if g.Name == "gpu" && g.Count > 0 {
				k.mixed = k.mixed || !first && g.Type != k.gpuType
				k.gpuType, first = g.Type, false
			}
		}
		if k.gpus == 0 {
			continue
		}
		at := slices.IndexFunc(f.kinds, func(o nodeKind) bool { return o.nodeHardware == k })
		if at < 0 {
			at = len(f.kinds)
			f.kinds = append(f.kinds, nodeKind{nodeHardware: k})
		}
		f.kinds[at].nodes = append(f.kinds[at].nodes, n.Name)
	}
}

// addMachine adds this machine, a kind for each model of its GPUs.
func (f *Found) addMachine() {
	f.name, f.source, f.kinds = "workstation", "nvidia-smi", nil
	const perGiB = 1 << 30
	memGiB := int64(0)
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		memGiB = int64(info.Totalram * uint64(info.Unit) / perGiB)
	}
	for i := range f.boards {
		b := &f.boards[i]
		k := nodeKind{model: b.Profile.Name, nodes: []string{"this machine"}}
		k.gpus = b.GPUs
		if len(f.boards) == 1 { // several would each have all of it
			k.cpus, k.memGiB = runtime.NumCPU(), memGiB
		}
		f.kinds = append(f.kinds, k)
	}
}

// problem returns why a kind of nodes can't be planned with; "": it can.
func (k *nodeKind) problem() string {
	switch {
	case k.mixed:
		return "GPUs of several types"
	case k.gpus > planner.MaxGPUs:
		return fmt.Sprintf("more than %d GPUs", planner.MaxGPUs)
	case k.model == "" && k.gpuType == "":
		return "GPUs without a type in Slurm; --gpu-model says which they are"
	case k.model == "":
		return fmt.Sprintf("GPUs of type %q, of which no profile is known; on one of them: "+
			"nvidia-smi -q -x | epplan gpus add - --out FILE", k.gpuType)
	}
	return ""
}

// Text returns a configuration with the cluster, and what is left out of it and why.
func (f *Found) Text() (text string, leftOut []string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# The cluster as %s has it. What isn't here has its default:\n"+
		"# epplan config init shows every setting with its meaning.\n\n[cluster]\nname = %q\n",
		f.source, terminal.Printable(f.name))
	names, used := make(map[string]bool), make(map[string]bool)
	for i := range f.kinds {
		k := &f.kinds[i]
		if why := k.problem(); why != "" {
			line := fmt.Sprintf("%s with %s each (%s): %s", report.Plural(len(k.nodes), "node"),
				report.Plural(k.gpus, "GPU"), firstNames(k.nodes), why)
			leftOut = append(leftOut, line)
			fmt.Fprintf(&b, "\n# Left out: %s\n", terminal.Printable(line))
			continue
		}
		used[k.model] = true
		name := slurmqueue.ClassName(names, k.model, k.gpus)
		fmt.Fprintf(&b, "\n[[cluster.nodes]] # %s\nname = %q\ncount = %d\ngpu_model = %q\ngpus = %d\n",
			terminal.Printable(firstNames(k.nodes)), name, len(k.nodes), k.model, k.gpus)
		if k.cpus > 0 {
			fmt.Fprintf(&b, "cpus = %d\n", k.cpus)
		}
		if k.memGiB > 0 {
			fmt.Fprintf(&b, "mem_gib = %d\n", k.memGiB)
		}
		if k.partitions != "" {
			fmt.Fprintf(&b, "partitions = [%s]\n", quoteTOML(strings.Split(k.partitions, ",")))
		}
	}
	builtin := config.BuiltinProfiles()
	for i := range f.boards {
		if name := f.boards[i].Profile.Name; used[name] && builtin.Find(name) == nil {
			b.WriteString("\n" + smi.Text(f.boards[i:i+1]))
		}
	}
	if len(used) == 0 {
		kinds := report.Plural(len(f.kinds), "kind of nodes", "kinds of nodes")
		return "", leftOut, fmt.Errorf("none of %s can be planned with", kinds)
	}
	_, err = config.Load(strings.NewReader(b.String()), "what was found", builtin)
	return b.String(), leftOut, err
}

// firstNames returns the first names of a list, and how many more there are.
func firstNames(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// quoteTOML returns texts as TOML writes them in an array.
func quoteTOML(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = fmt.Sprintf("%q", terminal.Printable(text))
	}
	return strings.Join(all, ", ")
}
