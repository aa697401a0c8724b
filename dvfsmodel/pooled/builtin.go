package pooled

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed builtin.json
var builtinText []byte

// builtin is what the file beside this one says.
var builtin = sync.OnceValue(func() *Curves {
	c := &Curves{}
	if err := json.Unmarshal(builtinText, c); err != nil {
		panic(err) // a test reads it
	}
	return c
})

// BuiltinCurves returns what workloads on GPUs of several models have in common: 159
// applications on GTX 980 (low and high clocks), GTX 1080 Ti, RTX 2070 SUPER and
// V100 (twice), measured by Wang, Chu and others (arXiv:2104.00486 and ICPADS 2018).
// It is a start for a GPU model of which nothing is known; [LearnCurves] goes on
// from there. Callers must not change it.
func BuiltinCurves() *Curves { return builtin() }

// Validate reports curves that can't be used.
func (c *Curves) Validate() error {
	if len(c.Mean) != allTerms || len(c.Covariance) != allTerms*allTerms {
		return fmt.Errorf("curves with %d means and %d covariances, want %d and %d", len(c.Mean),
			len(c.Covariance), allTerms, allTerms*allTerms)
	}
	for i := range allTerms {
		if !(c.Covariance[i*allTerms+i] >= 0) {
			return fmt.Errorf("coefficient %s has variance %v, want 0 or more", names[i],
				c.Covariance[i*allTerms+i])
		}
	}
	if !(c.TimeResidual > 0) || !(c.PowerResidual > 0) {
		return fmt.Errorf("curves with residuals %v and %v, want positive numbers", c.TimeResidual,
			c.PowerResidual)
	}
	return nil
}
