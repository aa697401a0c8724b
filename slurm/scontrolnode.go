package slurm

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// ParseNodeText reads scontrol show node -d. Nodes that can't be read are passed over.
func ParseNodeText(source string, data []byte, zone *time.Location) ([]Node, Unread, error) {
	var unread Unread
	if at := bytes.Index(data, []byte("\nNodeName=")); at >= 0 && !bytes.HasPrefix(data, []byte("NodeName=")) {
		unread.add("", (&ParseError{
			Source: source, Line: 1, Msg: "want NodeName=, got " + Printable(string(data[:at]), 80),
		}).Error())
		data = data[at+1:]
	}
	records, err := splitRecords(source, data, "NodeName")
	if err != nil {
		return nil, unread, err
	}
	out := make([]Node, 0, len(records))
	for _, r := range records {
		n, err := r.node(source, zone)
		if err != nil {
			unread.add(n.Name, err.Error())
			continue
		}
		out = append(out, n)
	}
	return out, unread, nil
}

// node reads one record. With an error, the node has its name alone, or nothing.
func (r scontrolRecord) node(source string, zone *time.Location) (Node, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.first, "NodeName="), " ")
	unread := Node{Name: name}
	if ValidNode(name) != nil {
		unread.Name = ""
	}
	v, err := r.collect(source, "Reason", "Comment", "Extra", "OS")
	if err != nil {
		return unread, err
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
		return unread, &ParseError{
			Source: source, Line: r.line, Msg: "node " + Printable(n.Name, 60), Err: t.err,
		}
	}
	return n, nil
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
