package consolidate

import (
	"github.com/epplan/epplan/planner/sharing"
)

// Physics is [sharing.Physics].
type Physics = sharing.Physics

// Curve is [sharing.Curve].
type Curve = sharing.Curve
