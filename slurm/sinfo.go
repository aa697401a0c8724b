package slurm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// nodeJSON is a node of sinfo --json in 22.05 and of scontrol --json show nodes.
type nodeJSON struct {
	Name       text   `json:"name"`
	State      words  `json:"state"`
	Flags      words  `json:"state_flags"`
	Reason     text   `json:"reason"`
	Features   list   `json:"features"`
	Active     list   `json:"active_features"`
	Weight     number `json:"weight"`
	Partitions list   `json:"partitions"`
	CPUs       number `json:"cpus"`
	CPUsInUse  number `json:"alloc_cpus"`
	Memory     number `json:"real_memory"`
	Gres       text   `json:"gres"`
	GresUsed   text   `json:"gres_used"`
	Version    text   `json:"slurmd_version"`
	OldVersion text   `json:"version"`
	Boot       number `json:"boot_time"`
}

// rowJSON is a row of sinfo --json from 23.02: nodes alike within one partition.
type rowJSON struct {
	Node struct {
		State words `json:"state"`
	} `json:"node"`
	Nodes struct {
		Nodes list `json:"nodes"`
	} `json:"nodes"`
	CPUs struct {
		Maximum number `json:"maximum"`
	} `json:"cpus"`
	Memory struct {
		Minimum number `json:"minimum"`
	} `json:"memory"`
	Weight struct {
		Maximum number `json:"maximum"`
	} `json:"weight"`
	Features struct {
		Total  text `json:"total"`
		Active text `json:"active"`
	} `json:"features"`
	Gres struct {
		Total text `json:"total"`
		Used  text `json:"used"`
	} `json:"gres"`
	Partition struct {
		Name text `json:"name"`
	} `json:"partition"`
	Reason json.RawMessage `json:"reason"`
}

// list reads "a,b" and ["a","b"].
type list []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *list) UnmarshalJSON(b []byte) error {
	var w words
	if err := w.UnmarshalJSON(b); err != nil {
		return err
	}
	*l = nil
	for _, part := range w {
		*l = append(*l, splitList(part)...)
	}
	return nil
}

func splitList(text string) []string {
	if unset(text) {
		return nil
	}
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// ParseNodes reads sinfo --json: one record per node (22.05) or one per group
// of alike nodes and partition (23.02 on), which comes back as single nodes.
func ParseNodes(source string, data []byte) ([]Node, Meta, error) {
	a := newAnswer(source, data)
	var nodes []Node
	at := map[string]int{}
	add := func(n Node) {
		if i, seen := at[n.Name]; seen {
			nodes[i].Partitions = append(nodes[i].Partitions, n.Partitions...)
			return
		}
		at[n.Name] = len(nodes)
		nodes = append(nodes, n)
	}
	err := a.walk(map[string]func() error{
		"nodes": func() error {
			var raw nodeJSON
			if err := a.dec.Decode(&raw); err != nil {
				return err //nolint:wrapcheck // the walk adds the place
			}
			n, err := raw.node()
			if err != nil {
				return err
			}
			add(n)
			return nil
		},
		"sinfo": func() error {
			var raw rowJSON
			if err := a.dec.Decode(&raw); err != nil {
				return err //nolint:wrapcheck // the walk adds the place
			}
			return raw.each(add)
		},
	})
	if err != nil {
		return nil, Meta{}, err
	}
	return nodes, a.meta, nil
}

func (r *nodeJSON) node() (Node, error) {
	n := Node{
		Name: string(r.Name), State: ParseNodeState(slices.Concat(r.State, r.Flags)...), Reason: string(r.Reason),
		Features: r.Features, Active: r.Active, Weight: r.Weight.uint32(), Partitions: r.Partitions,
		CPUs: r.CPUs.bounded(0), CPUsInUse: r.CPUsInUse.bounded(0), MemoryMB: r.Memory.or(0),
		Version: r.Version.known(), Boot: timeFromUnix(r.Boot.or(0)),
	}
	if n.Version == "" {
		n.Version = r.OldVersion.known()
	}
	if err := ValidNode(n.Name); err != nil {
		return Node{}, err
	}
	return n, n.readGres(string(r.Gres), string(r.GresUsed))
}

func (n *Node) readGres(total, used string) error {
	var err error
	if n.Gres, err = ParseGres(total); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if n.GresUsed, err = ParseGres(used); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

func (r *rowJSON) each(add func(Node)) error {
	for _, part := range r.Nodes.Nodes {
		names, err := ExpandHostlist(part)
		if err != nil {
			return err
		}
		for _, name := range names {
			n := Node{
				Name: name, State: ParseNodeState(r.Node.State...), Reason: rowReason(r.Reason),
				Features: splitList(string(r.Features.Total)), Active: splitList(string(r.Features.Active)),
				Weight: r.Weight.Maximum.uint32(), CPUs: r.CPUs.Maximum.bounded(0), MemoryMB: r.Memory.Minimum.or(0),
				Partitions: splitList(string(r.Partition.Name)),
			}
			if err := n.readGres(string(r.Gres.Total), string(r.Gres.Used)); err != nil {
				return err
			}
			add(n)
		}
	}
	return nil
}

// rowReason reads a reason as text (23.02) or as an object with description (23.11 on).
func rowReason(raw json.RawMessage) string {
	var plain text
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '"' && plain.UnmarshalJSON(raw) == nil {
		return string(plain)
	}
	var object struct {
		Description text `json:"description"`
	}
	if raw[0] == '{' && json.Unmarshal(raw, &object) == nil {
		return string(object.Description)
	}
	return ""
}
