package lever

import (
	"context"
	"fmt"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// PowerDown lets Slurm switch a node off once its jobs have ended. A node with
// jobs is refused. Without power saving it is ErrNoPowerSaving.
func (l *Levers) PowerDown(ctx context.Context, node string) (Undo, error) {
	n, err := l.powerNode(ctx, node)
	if err != nil {
		return Undo{}, err
	}
	if n.State.Base != "IDLE" {
		return Undo{}, fmt.Errorf("node %s is %s, want IDLE: %w", node, n.State.Base, slurm.ErrInvalid)
	}
	if n.State.IsPoweredDown() || n.State.Is("POWERING_DOWN") || n.State.Is("POWER_DOWN") {
		return Undo{Lever: Power, Node: node, Before: "power_down", After: "power_down"}, nil
	}
	u := Undo{Lever: Power, Node: node, Before: "power_up", After: "power_down"}
	return u, l.setPower(ctx, node, "power_down")
}

// PowerUp wakes a sleeping node; a node that is up is left alone.
func (l *Levers) PowerUp(ctx context.Context, node string) (Undo, error) {
	n, err := l.powerNode(ctx, node)
	if err != nil {
		return Undo{}, err
	}
	if !n.State.IsPoweredDown() {
		return Undo{Lever: Power, Node: node, Before: "power_up", After: "power_up"}, nil
	}
	u := Undo{Lever: Power, Node: node, Before: "power_down", After: "power_up"}
	return u, l.setPower(ctx, node, "power_up")
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
	err := l.updateNode(ctx, node, "State", state)
	if err != nil && strings.Contains(err.Error(), "Invalid node state") {
		return fmt.Errorf("%w: %w", slurm.ErrNoPowerSaving, err)
	}
	return err
}
