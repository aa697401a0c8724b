package live

import "github.com/epplan/epplan/dvfsmodel"

// Residency is how long a pair of clocks was seen.
type Residency struct {
	dvfsmodel.Setting
	Seconds float64 `json:"seconds_s"`
}
