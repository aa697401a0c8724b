package jobs

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// GPUsOf returns how many GPUs a submission asks for in all, and whether it asks for
// parts of them.
func GPUsOf(s *hooks.Submission) (gpus int, shared bool) {
	total := 0.0
	for _, part := range []struct {
		text  hooks.Hex
		times uint32
	}{
		{s.TRESPerJob, 1},
		{s.TRESPerNode, s.MinNodes},
		{s.TRESPerTask, s.NumTasks},
		{s.TRESPerSock, s.MinNodes},
	} {
		wanted, err := slurm.ParseGres(string(part.text))
		if err != nil {
			continue
		}
		n := 0.0
		for _, g := range wanted {
			switch g.Name {
			case "gpu":
				n += float64(g.Count)
			case "shard", "mps":
				shared = shared || g.Count > 0
			}
		}
		total = max(total, n*float64(max(1, part.times)))
	}
	if shared && total == 0 {
		return 1, true
	}
	return int(min(total, epdapi.MaxGPUs)), shared
}

// ScriptHash tells batch scripts apart; empty without a script.
func ScriptHash(script hooks.Hex) string {
	if script == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:])
}
