package fleet

import "github.com/epplan/epplan/planner"

// Power is what the parts of a node draw.
type Power = planner.StepPower
