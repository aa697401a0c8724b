package lever

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// powerDown lets Slurm switch a node off once its jobs have ended. A node with
// jobs is refused. Without power saving it is ErrNoPowerSaving.
func (l *Levers) powerDown(ctx context.Context, node string) error {
	n, err := l.powerNode(ctx, node)
	switch {
	case err != nil:
		return err
	case n.State.Base != "IDLE":
		return fmt.Errorf("node %s is %s, want IDLE: %w", node, n.State.Base, slurm.ErrInvalid)
	case n.State.IsPoweredDown() || n.State.Is("POWERING_DOWN") || n.State.Is("POWER_DOWN"):
		return nil
	}
	return l.setPower(ctx, node, "power_down")
}

// powerUp wakes a sleeping node; a node that is up is left alone.
func (l *Levers) powerUp(ctx context.Context, node string) error {
	n, err := l.powerNode(ctx, node)
	if err != nil || !n.State.IsPoweredDown() {
		return err
	}
	return l.setPower(ctx, node, "power_up")
}

func (l *Levers) powerNode(ctx context.Context, node string) (slurm.Node, error) {
	if err := slurm.ValidNode(node); err != nil {
		return slurm.Node{}, err
	}
	saving, err := l.client.PowerSaving(ctx)
	if err != nil {
		return slurm.Node{}, err
	}
	if !saving.Enabled {
		return slurm.Node{}, fmt.Errorf("node %s: %w", node, slurm.ErrNoPowerSaving)
	}
	return l.client.Node(ctx, node)
}

func (l *Levers) setPower(ctx context.Context, node, state string) error {
	err := l.client.Update(ctx, "nodename="+node, "State", state)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("set State of node %s: %w", node, err)
	// The words up to 25.11, and those from 26.05 on.
	if slices.ContainsFunc([]string{"Invalid node state", "Invalid power action"}, func(words string) bool {
		return strings.Contains(err.Error(), words)
	}) {
		return fmt.Errorf("%w: %w", slurm.ErrNoPowerSaving, err)
	}
	return err
}
