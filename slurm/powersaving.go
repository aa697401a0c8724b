package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// PowerSaving is what slurmctld is set to do about nodes that sleep. Partitions
// may have timeouts of their own, which are not looked at. A timeout that can't
// be read is [NoTimeout].
type PowerSaving struct {
	Enabled bool          // it can suspend and resume nodes
	Suspend time.Duration // SuspendTimeout: for so long a node can't be woken after it was told to sleep
	Resume  time.Duration // ResumeTimeout: a node that isn't back by then is given up
	Timed   bool          // SuspendTime isn't INFINITE: nodes sleep unless something keeps them from it
	// What the site keeps from sleeping. Slurm itself heeds it only when it sends
	// nodes to sleep of its own accord, not when it is told to. Answers share these
	// lists: nobody changes them.
	Awake        []AwakeNodes // SuspendExcNodes
	AwakeParts   []string     // SuspendExcParts: all nodes of these partitions
	AwakeFlags   []string     // SuspendExcStates, from 23.02 on: nodes with these flags
	UnreadReason string       // why SuspendExcNodes can't be read: any node may be named there
}

// AwakeNodes are nodes that don't sleep.
type AwakeNodes struct {
	Nodes []string
	Idle  int // so many of them that are idle and awake; 0: none sleeps
}

// endless is how Slurm prints a SuspendTime that never ends.
const endless = "INFINITE"

// NoTimeout stands for a timeout of which nothing is known but that it ends: it
// is longer than any that Slurm takes.
const NoTimeout = 1 << 30 * time.Second

// PowerSaving asks slurmctld what it does about nodes that sleep.
func (c *Client) PowerSaving(ctx context.Context) (PowerSaving, error) {
	s, err := c.Settings(ctx)
	if err != nil {
		return PowerSaving{}, err
	}
	// SuspendTime may be set per partition, and from 26.05 on per node; INFINITE alone does not tell.
	saving := PowerSaving{
		Timed:   s["SuspendTime"] != "" && s["SuspendTime"] != endless,
		Enabled: s["SuspendProgram"] != "" && s["ResumeProgram"] != "",
		Suspend: settingSeconds(s["SuspendTimeout"]), Resume: settingSeconds(s["ResumeTimeout"]),
	}
	c.awake.update(&saving, [...]string{s["SuspendExcNodes"], s["SuspendExcParts"], s["SuspendExcStates"]})
	return saving, nil
}

// DefaultPartition asks slurmctld where jobs go whose users name no partition; "": there is none.
func (c *Client) DefaultPartition(ctx context.Context) (string, error) {
	out, err := c.command(ctx, "scontrol", "--oneliner", "show", "partition")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) > 0 && slices.Contains(words, "Default=YES") {
			return strings.TrimPrefix(words[0], "PartitionName="), nil
		}
	}
	return "", nil
}

// awakeCache is what the site keeps from sleeping as it was read last: that may be a
// long list, hardly ever changes and is asked for each minute.
type awakeCache struct {
	mu   sync.Mutex
	text [3]string // SuspendExcNodes, SuspendExcParts, SuspendExcStates
	read PowerSaving
}

// update reads the lists where their texts changed.
func (a *awakeCache) update(saving *PowerSaving, text [3]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.text != text {
		a.text, a.read = text, PowerSaving{
			AwakeParts: parseSettingList(text[1]),
			AwakeFlags: parseSettingList(text[2]),
		}
		var err error
		if a.read.Awake, err = parseAwake(text[0]); err != nil {
			a.read.UnreadReason = err.Error()
		}
	}
	saving.Awake, saving.AwakeParts, saving.AwakeFlags, saving.UnreadReason = a.read.Awake, a.read.AwakeParts,
		a.read.AwakeFlags, a.read.UnreadReason
}

// parseSettingList reads "a,b".
func parseSettingList(text string) []string {
	if isUnset(text) {
		return nil
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// parseAwake reads SuspendExcNodes, "n[1-9]:2,login": two of nine, and one.
func parseAwake(text string) ([]AwakeNodes, error) {
	if text = strings.TrimSpace(text); isUnset(text) {
		return nil, nil
	}
	var all []AwakeNodes
	for start := 0; start <= len(text); {
		part, next, err := hostPart(text, start)
		if err != nil {
			return nil, fmt.Errorf("SuspendExcNodes: %w", err)
		}
		hosts, number, counted := strings.Cut(part, ":")
		var a AwakeNodes
		if counted {
			if a.Idle, err = strconv.Atoi(number); err != nil || a.Idle < 1 {
				return nil, fmt.Errorf("SuspendExcNodes: %q: want a number of nodes after the colon",
					Printable(part, 80))
			}
		}
		if a.Nodes, err = ExpandHostlist(hosts); err != nil {
			return nil, fmt.Errorf("SuspendExcNodes: %w", err)
		}
		start = next
		switch {
		case len(a.Nodes) > 0:
			all = append(all, a)
		case counted:
			return nil, fmt.Errorf("SuspendExcNodes: %q: want nodes before the colon", Printable(part, 80))
		}
	}
	return all, nil
}

// settingSeconds reads "60 sec"; [NoTimeout] where it says something else.
func settingSeconds(text string) time.Duration {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := strconv.ParseUint(number, 10, 30)
	if err != nil || (unit != "sec" && unit != "") {
		return NoTimeout
	}
	return time.Duration(n) * time.Second
}
