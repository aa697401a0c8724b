package slurm

import (
	"fmt"
	"strings"
	"time"
)

// ParseNodeText reads scontrol show node -d.
func ParseNodeText(source string, data []byte, zone *time.Location) ([]Node, error) {
	records, err := splitRecords(source, data, "NodeName")
	if err != nil {
		return nil, err
	}
	out := make([]Node, 0, len(records))
	for _, r := range records {
		v, err := r.collect(source, "Reason", "Comment", "Extra", "OS")
		if err != nil {
			return nil, err
		}
		t := textFields{values: v, zone: zone}
		n := Node{
			Name: v["NodeName"], State: ParseNodeState(v["State"]), Reason: t.known("Reason"),
			Features: splitList(v["AvailableFeatures"]), Active: splitList(v["ActiveFeatures"]),
			Weight:     t.unsigned(v["Weight"], "Weight"),
			Partitions: splitList(v["Partitions"]), CPUs: t.integer("CPUTot"),
			CPUsInUse: t.integer("CPUAlloc"), MemoryMB: int64(t.integer("RealMemory")),
			Version: t.known("Version"), Boot: t.time("BootTime"),
			Address: t.known("NodeAddr"), HostName: t.known("NodeHostName"),
			NeverSuspends: v["SuspendTime"] == endless,
		}
		t.fail(ValidNode(n.Name))
		t.fail(n.readGres(v["Gres"], v["GresUsed"]))
		if t.err != nil {
			return nil, &ParseError{
				Source: source, Line: r.line, Msg: "node " + Printable(n.Name, 60), Err: t.err,
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// ParseConfigText reads scontrol show config into its names and values.
func ParseConfigText(data []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(string(escapeInvalid(data, false)), "\n") {
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			continue
		}
		if _, seen := out[key]; !seen {
			if isUnset(value) {
				value = ""
			}
			out[key] = value
		}
	}
	return out
}

func splitList(text string) []string {
	if isUnset(text) {
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
