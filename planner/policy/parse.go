package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/share"
)

// SyntaxError is a policy string that cannot be read, with the place of the
// fault in it.
type SyntaxError struct {
	Text   string // the whole policy string
	Offset int    // of the fault, bytes
	Msg    string
}

// Error states what is wrong, under a caret that shows where.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("policy: %s\n    %s\n    %s^", e.Msg, e.Text, strings.Repeat(" ", e.Offset))
}

// Names lists the registered policies in the order of the registry.
func Names() []string {
	names := make([]string, len(registry))
	for i := range registry {
		names[i] = registry[i].name
	}
	return names
}

// Describe returns the registry's line on a policy; empty for an unknown name.
func Describe(name string) string {
	if r := policyNamed(name); r != nil {
		return r.doc
	}
	return ""
}

// Parse reads a policy string:
//
//	NAME[:THETA][,KEY=VALUE]…
//
// NAME is a registered policy, or a placement with its own arguments (see
// [ParsePlacement]), which then places tasks by earliest due time at their
// optimal clocks. The keys are
//
//   - theta, rho, stretch, pace and tolerance: see [Params];
//   - clocks: default (no DVFS) or optimum; adapted, lowest or cheapest also set
//     those of GPUs that tasks share;
//   - pick, place and park exchange a stage; place takes placements too;
//   - the numbers of the policies for queues: see [QueueParams].
//
// Defaults are those given. An option that would change nothing, as its number is
// asked for by no stage of the policy, is refused. An error is a [SyntaxError].
func Parse(text string, defaults Params) (*planner.Policy, error) {
	q := defaults.withQueue()
	name, rest, _ := strings.Cut(text, ",")
	name, theta, hasTheta := strings.Cut(name, ":")
	policy := policyNamed(name)
	if policy == nil {
		return parsePlaced(text, q)
	}
	if hasTheta {
		if err := setTheta(&q.Theta, theta); err != nil {
			return nil, &SyntaxError{text, len(name) + 1, "theta: " + err.Error()}
		}
		_, given := optionsOf(text)
		if why := uselessOption(name, "theta", theta, given); why != "" {
			return nil, &SyntaxError{text, len(name) + 1, why}
		}
	}
	return buildWithOptions(text, rest, q, policy.build)
}

// parsePlaced reads a policy that is named by its placement.
func parsePlaced(text string, q Params) (*planner.Policy, error) {
	name := nameOf(text)
	if !slices.Contains(PlacementNames(), strings.ToLower(name)) {
		all := append(Names(), PlacementNames()...)
		if key, _, set := strings.Cut(name, "="); set && slices.Contains(optionKeys, key) {
			return nil, &SyntaxError{
				text, 0, fmt.Sprintf("%s without a policy before it, want one of %s", key,
					strings.Join(all, ", ")),
			}
		}
		return nil, &SyntaxError{
			text, 0, fmt.Sprintf("unknown policy %q, want one of %s", name, strings.Join(all, ", ")),
		}
	}
	written, rest := cutPlacement(text)
	placement, err := ParsePlacement(written)
	if err != nil {
		return nil, err
	}
	return buildWithOptions(text, rest, q, func(q Params) planner.Policy {
		p := placedPolicy.build(q)
		p.Place, p.Map = placement.Stage(), false
		return p
	})
}

// cutPlacement splits a text before its first option. Arguments of a placement
// may be separated by commas too.
func cutPlacement(text string) (placement, options string) {
	for at := 0; ; {
		comma := strings.IndexByte(text[at:], ',')
		if comma < 0 {
			return text, ""
		}
		at += comma + 1
		key, _, _ := strings.Cut(text[at:], "=")
		if slices.Contains(optionKeys, key) {
			return text[:at-1], text[at:]
		}
	}
}

// optionKeys are the keys of a policy string.
var optionKeys = append([]string{
	"theta", "rho", "stretch", "pace", "tolerance", "clocks", "pick", "place", "park",
}, numberKeys()...)

// buildWithOptions builds a policy after the options that end the text were read.
func buildWithOptions(
	text, rest string, q Params, build func(Params) planner.Policy,
) (*planner.Policy, error) {
	swaps, err := parseOptions(text, len(text)-len(rest), rest, &q)
	if err != nil {
		return nil, err
	}
	if !(q.Queue.Look.Spread > 0) {
		return nil, &SyntaxError{text, 0, "spread 0, want it above 0"}
	}
	if !(q.Theta > 0 && q.Theta <= 1) || !(q.Rho >= 0) {
		return nil, &SyntaxError{
			text, 0, fmt.Sprintf("theta %v and rho %v, want 0 < theta ≤ 1 and rho ≥ 0", q.Theta, q.Rho),
		}
	}
	p := build(q)
	if _, given := optionsOf(text); p.Improve != nil && given["park"] == neverPark {
		p.Improve = alwaysOnSearch(p.Improve)
	}
	for _, swap := range swaps {
		swap(&p, q)
	}
	if search := constantClockSearchOf(p.Improve); search != nil {
		_, given := optionsOf(text)
		search.replaceStages(&p, given)
	}
	p.Name = text
	return &p, nil
}

// stageChange exchanges a stage of a policy.
type stageChange func(*planner.Policy, Params)

// parseOptions reads the KEY=VALUE list that begins at an offset of text.
func parseOptions(text string, offset int, rest string, q *Params) ([]stageChange, error) {
	var swaps []stageChange
	if strings.HasSuffix(text, ",") {
		return nil, &SyntaxError{text, len(text), "nothing after the last comma, want key=value"}
	}
	name, given := optionsOf(text)
	seen := make(map[string]bool)
	for rest != "" {
		option, more, _ := strings.Cut(rest, ",")
		key, value, ok := strings.Cut(option, "=")
		if !ok {
			return nil, &SyntaxError{text, offset, fmt.Sprintf("%q, want key=value", option)}
		}
		if seen[key] {
			return nil, &SyntaxError{text, offset, key + " is given twice, want it once"}
		}
		seen[key] = true
		isNumber, err := q.set(key, value)
		if err != nil {
			return nil, &SyntaxError{text, offset + len(key) + 1, key + ": " + err.Error()}
		}
		if !isNumber {
			s, err := parseStage(key, value)
			if err != nil {
				return nil, &SyntaxError{text, offset, err.Error()}
			}
			swaps = append(swaps, s)
		}
		if why := uselessOption(name, key, value, given); why != "" {
			return nil, &SyntaxError{text, offset, why}
		}
		offset += len(option) + 1
		rest = more
	}
	return swaps, nil
}

// set reads a number; known is false for a key that isn't one's.
func (q *Params) set(key, value string) (known bool, err error) {
	switch key {
	case "theta":
		return true, setTheta(&q.Theta, value)
	case "rho":
		return true, setNumber(&q.Rho, value, maxNumber)
	case "stretch":
		return true, setNumber(&q.Stretch, value, maxNumber)
	case "tolerance":
		return true, setNumber(&q.Tolerance, value, 1)
	case "pace":
		if err = setNumber(&q.Pace, value, maxNumber); err != nil || q.Pace < 1 {
			err = fmt.Errorf("%q, want a number from 1", value)
		}
		return true, err
	}
	return q.Queue.set(key, value)
}

// maxNumber is the highest rho or stretch: what is larger is a slip.
const maxNumber = 1e9

// setTheta reads θ, 0 < θ ≤ 1.
func setTheta(to *float64, value string) error {
	if err := setNumber(to, value, 1); err != nil || *to == 0 {
		return fmt.Errorf("%q, want a number above 0, up to 1", value)
	}
	return nil
}

// setNumber reads a number from 0 to most.
func setNumber(to *float64, value string, most float64) error {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x >= 0 && x <= most) {
		return fmt.Errorf("%q, want a number from 0 to %v", value, most)
	}
	*to = x
	return nil
}

// neverPark is the Park stage by which nodes never sleep.
const neverPark = "never"

// sharePrefix begins the names of Place stages that let tasks share GPUs by a
// rule of consolidation, each with the name of its rule.
const sharePrefix = "share-"

// otherClocks is a policy of consolidation that differs from another one in
// clocks alone.
const otherClocks = "hotcloud-lowest-f"

// leastAdded is the Place stage of cats-safe; the others never wait for the sake
// of an SLA.
const leastAdded = "share-safe"

// parseShareStage returns the Place stage of such a name.
func parseShareStage(name string) (stageChange, bool) {
	if name == leastAdded {
		return func(p *planner.Policy, _ Params) {
			safe := place.Colocate{NewRule: place.LeastAddedEnergy, KeepTolerances: true}
			p.Place, p.Map, p.Share = safe.New, false, true
		}, true
	}
	name, ok := strings.CutPrefix(name, sharePrefix)
	if !ok {
		return nil, false
	}
	all := share.Policies()
	i := slices.IndexFunc(all, func(n share.NamedPolicy) bool { return n.Name == name })
	if i < 0 || name == otherClocks {
		return nil, false
	}
	return func(p *planner.Policy, _ Params) {
		p.Place, p.Map, p.Share = place.Colocate{Rule: all[i].Rule}.New, false, true
	}, true
}

// PlaceNames returns the names of the Place stages, placements aside.
func PlaceNames() []string {
	names := append(sortedKeys(stages["place"]), leastAdded)
	for _, rule := range share.Policies() {
		if rule.Name != otherClocks {
			names = append(names, sharePrefix+rule.Name)
		}
	}
	return names
}

// parseStage returns what KEY=VALUE exchanges.
func parseStage(key, value string) (stageChange, error) {
	values, ok := stages[key]
	if !ok {
		return nil, fmt.Errorf("unknown key %q, want one of %s", key, strings.Join(optionKeys, ", "))
	}
	if key == "place" {
		return parsePlaceStage(value)
	}
	s, ok := values[value]
	if !ok {
		return nil, fmt.Errorf("unknown %s %q, want one of %s", key, value,
			strings.Join(sortedKeys(values), ", "))
	}
	return s.change, nil
}

// parsePlaceStage exchanges Place. Only some let tasks share GPUs by profile.
func parsePlaceStage(name string) (stageChange, error) {
	if s, ok := parseShareStage(name); ok {
		return s, nil
	}
	change := stages["place"][name].change
	if change == nil {
		placement, err := ParsePlacement(name)
		if err != nil {
			return nil, fmt.Errorf("unknown place %q, want one of %s, or a placement: %s",
				name, strings.Join(PlaceNames(), ", "), strings.Join(PlacementNames(), ", "))
		}
		change = func(p *planner.Policy, _ Params) { p.Place, p.Map = placement.Stage(), false }
	}
	return func(p *planner.Policy, q Params) {
		p.Share = false
		change(p, q)
	}, nil
}

// sortedKeys returns the names of stages for a message, in the order of the alphabet.
func sortedKeys(m map[string]stageChoice) []string { return slices.Sorted(maps.Keys(m)) }

// SplitList separates policy strings at commas that don't belong to the settings
// of one, which are KEY=VALUE.
func SplitList(texts []string) []string {
	var names []string
	for _, text := range texts {
		for piece := range strings.SplitSeq(text, ",") {
			if strings.Contains(piece, "=") && len(names) > 0 {
				names[len(names)-1] += "," + piece
				continue
			}
			names = append(names, strings.TrimSpace(piece))
		}
	}
	return names
}
