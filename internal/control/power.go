package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// logNodes bounds how many nodes' troubles one call of Slurm's puts in the log.
const logNodes = 20

// postPower takes what Slurm's SuspendProgram or ResumeProgram did: it is
// logged. Slurm itself says in which state a node is.
func (c *Controller) postPower(r *http.Request) (any, error) {
	var news epdapi.PowerEvent
	if err := json.NewDecoder(r.Body).Decode(&news); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := news.Validate(); err != nil {
		return nil, err
	}
	c.options.Log.Info(news.Action, "nodes", len(news.Nodes), "first", news.Nodes[0], "failed",
		len(news.Failed))
	for _, node := range slices.Sorted(maps.Keys(news.Failed))[:min(len(news.Failed), logNodes)] {
		c.options.Log.Error(news.Action+" failed", "node", node, "error",
			slurm.Printable(news.Failed[node], maxMessage))
	}
	return struct{}{}, nil
}
