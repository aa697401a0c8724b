package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// stageNames are the stages of a policy by their keys in a policy string: what
// follows KEY=, or "" for a stage that has no such name.
type stageNames map[string]string

// placedPolicy is a policy that is named by its placement.
var placedPolicy = registeredPolicy{stages: optimalStages("edf", "")}

// SearchPolicy is the policy whose stages can't be exchanged, for it starts from the
// plans of several: only clocks can be left as they are, and nodes on. It takes a tolerance
// ([Params.Tolerance]).
const SearchPolicy = "edl-align"

// PacedPolicy is the policy that takes a pace ([Params.Pace]), as long as its stages are its own.
const PacedPolicy = "replan"

// acceptsNumber reports whether a number acts on a policy with those stages; given are the
// options beside it.
func (s stageNames) acceptsNumber(key string, given map[string]string) bool {
	switch key {
	case "theta":
		return s["place"] == "lightest" && slices.Contains(stages["clocks"][s["clocks"]].numbers, "stretch")
	case "spread": // bounds of waits are drawn with it too
		if given["patience"] != "" && s.acceptsNumber("patience", nil) {
			return true
		}
	}
	for stage, name := range s {
		if slices.Contains(stages[stage][name].numbers, key) {
			return true
		}
	}
	return false
}

// withOptions returns the stages after the options.
func (s stageNames) withOptions(given map[string]string) stageNames {
	all := stageNames{}
	for key := range stages {
		all[key] = s[key]
		if value, ok := given[key]; ok {
			all[key] = value
		}
	}
	return all
}

// canShare reports whether tasks share GPUs by profile.
func (s stageNames) canShare() bool { return strings.HasPrefix(s["place"], sharePrefix) }

// uselessOption says why an option does nothing for a policy, and what would take
// it; empty: it acts. given are all the options.
func uselessOption(name, key, value string, given map[string]string) string {
	all := cmp.Or(policyNamed(name), &placedPolicy).stages.withOptions(given)
	_, isStage := stages[key]
	switch {
	case name == SearchPolicy && (key == "effort" || key == "tolerance"):
		return ""
	case key == "pace" && name == PacedPolicy && all["pick"] == "" && all["place"] == "":
		return ""
	case key == "pace":
		return "pace does nothing for " + policyText(name, given) + ", want " + PacedPolicy
	case key == "effort" || key == "tolerance":
		return key + " does nothing for " + name + ", which searches for no better plan, want " + SearchPolicy
	case name == SearchPolicy &&
		(key == "clocks" && (value == "default" || value == "optimum") || key == "park" && value == neverPark):
		return ""
	case name == SearchPolicy && (isStage || key == "stretch" || key == "theta" && !isOne(value)):
		return name + " doesn't take " + key + ", for it starts from plans of several policies: want " +
			"another policy, such as edl, or clocks=default or optimum, or park=never"
	case name == Constant &&
		(key == "stretch" || key == "clocks" && value != "default" || key == "theta" && !isOne(value)):
		return name + " doesn't take " + key + ", for its clocks are the same for all jobs of a GPU model: " +
			"want clocks=default, or another policy, such as edl"
	case key == "clocks" && slices.Contains([]string{"adapted", "lowest", "cheapest"}, value) &&
		!all.canShare():
		return "clocks=" + value + " is for GPUs that jobs share, and " + name +
			" shares none: want default or optimum, or place=" + sharePrefix + "… too"
	case isStage || all.acceptsNumber(key, given):
		return ""
	case key == "theta" && isOne(value): // no readjustment, which holds
		return ""
	case key == "theta":
		return "theta does nothing for " + policyText(name, given) +
			", want clocks=optimum and place=lightest, as edl has"
	case key == "spread" && all.acceptsNumber("patience", nil):
		return "spread does nothing for " + name + " without patience, want both"
	}
	return fmt.Sprintf("%s does nothing for %s, want it with %s", key, policyText(name, given),
		strings.Join(acceptingStages(key), ", "))
}

func isOne(text string) bool {
	x, err := strconv.ParseFloat(text, 64)
	return err == nil && x == 1
}

// policyText returns a policy with the stages that were exchanged.
func policyText(name string, given map[string]string) string {
	parts := []string{name}
	for _, key := range sortedStages() {
		if value, ok := given[key]; ok {
			parts = append(parts, key+"="+value)
		}
	}
	return strings.Join(parts, ",")
}

// acceptingStages returns the stages that ask for a number, as options.
func acceptingStages(key string) (options []string) {
	for _, stage := range sortedStages() {
		for _, value := range sortedKeys(stages[stage]) {
			if slices.Contains(stages[stage][value].numbers, key) {
				options = append(options, stage+"="+value)
			}
		}
	}
	return options
}

// sortedStages returns the keys of stages in the order of the alphabet.
func sortedStages() []string { return []string{"clocks", "park", "pick", "place"} }

// AcceptsNumber reports whether a number, such as theta, acts on the policy of a policy
// string that [Parse] takes.
func AcceptsNumber(text, key string) bool {
	name, given := optionsOf(text)
	return uselessOption(name, key, "", given) == ""
}

// CountsDue reports whether the policy of a policy string that [Parse] takes has the tasks go first that are
// due first, or else sees to it that none is late that needn't be.
func CountsDue(text string) bool {
	name, given := optionsOf(text)
	if name == SearchPolicy || name == Constant {
		return true
	}
	stages := cmp.Or(policyNamed(name), &placedPolicy).stages.withOptions(given)
	return stages["pick"] == "edf" || stages["pick"] == "deadline-first"
}

// HasOption reports whether a policy string has a value for a key.
func HasOption(text, key string) bool {
	name, _, _ := strings.Cut(text, ",")
	_, theta, _ := strings.Cut(name, ":")
	_, given := optionsOf(text)
	_, said := given[key]
	return said || key == "theta" && theta != "" && policyNamed(nameOf(text)) != nil
}

// nameOf returns what a policy string begins with, without its arguments.
func nameOf(text string) string {
	name, _, _ := strings.Cut(text, ",")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// optionsOf returns the name and the options of a policy string.
func optionsOf(text string) (name string, given map[string]string) {
	name, given = nameOf(text), map[string]string{}
	_, rest, _ := strings.Cut(text, ",")
	if policyNamed(name) == nil {
		_, rest = cutPlacement(text)
	}
	for option := range strings.SplitSeq(rest, ",") {
		if key, value, ok := strings.Cut(option, "="); ok {
			given[key] = value
		}
	}
	return name, given
}
