package budget

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// maxWatts is more than any cluster takes.
const maxWatts = 1e12

// ParseWatts reads a power above 0 such as 300kW, 1.2 MW or 900 (watts).
func ParseWatts(text string) (dvfsmodel.Watt, error) {
	number, factor := strings.TrimSpace(text), 1.0
	for _, unit := range []struct {
		name   string
		factor float64
	}{{"kW", 1e3}, {"MW", 1e6}, {"W", 1}} {
		if rest, ok := strings.CutSuffix(number, unit.name); ok {
			number, factor = strings.TrimSpace(rest), unit.factor
			break
		}
	}
	watts, err := strconv.ParseFloat(number, 64)
	if err != nil || !(watts > 0 && watts*factor <= maxWatts) || strings.ContainsAny(number, "xXpP_") {
		return 0, fmt.Errorf("%.40q is no power, want a number above 0 with W, kW or MW, such as 300kW", text)
	}
	return dvfsmodel.Watt(watts * factor), nil
}
