package textfile

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Quantity is what the numbers of a column measure. It has units.
type Quantity uint8

// The quantities, each with the unit in which columns hold it: seconds, watts, joules, MHz,
// GiB, percent.
const (
	NoQuantity Quantity = iota
	Time
	Power
	Energy
	Clock
	Memory
	Percent
)

// unitWords are the units of each quantity, with what a number in them is multiplied by, in
// small letters; where these would be two, as they are written.
var unitWords = map[Quantity]map[string]float64{
	Time: {
		"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6,
		"ms": 1e-3, "msec": 1e-3, "msecs": 1e-3, "millis": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
		"millisekunde": 1e-3, "millisekunden": 1e-3, "milliseconde": 1e-3, "millisecondes": 1e-3,
		"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
		"sek": 1, "sekunde": 1, "sekunden": 1, "seconde": 1, "secondes": 1,
		"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60, "minuten": 60, "mn": 60,
		"h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
		"std": 3600, "stunde": 3600, "stunden": 3600, "heure": 3600, "heures": 3600,
		"d": day, "day": day, "days": day, "tag": day, "tage": day, "tagen": day, "jour": day, "jours": day,
		"week": 7 * day, "weeks": 7 * day, "woche": 7 * day, "wochen": 7 * day,
		"semaine": 7 * day, "semaines": 7 * day,
		"h:mm:ss": clocks, "hh:mm:ss": clocks, "d-hh:mm:ss": clocks, "dd-hh:mm:ss": clocks,
	},
	Power: {
		"mW": 1e-3, "milliwatt": 1e-3, "milliwatts": 1e-3, "w": 1, "watt": 1, "watts": 1,
		"kw": 1e3, "kilowatt": 1e3, "kilowatts": 1e3, "MW": 1e6,
	},
	Energy: {
		"mJ": 1e-3, "j": 1, "joule": 1, "joules": 1, "kj": 1e3, "MJ": 1e6,
		"wh": 3600, "kwh": 3.6e6, "MWh": 3.6e9,
	},
	Clock: {"hz": 1e-6, "khz": 1e-3, "mhz": 1, "ghz": 1e3},
	Memory: {
		"b": 1.0 / (1 << 30), "byte": 1.0 / (1 << 30), "bytes": 1.0 / (1 << 30),
		"k": 1.0 / (1 << 20), "kb": 1.0 / (1 << 20), "kib": 1.0 / (1 << 20),
		"m": 1.0 / (1 << 10), "mb": 1.0 / (1 << 10), "mib": 1.0 / (1 << 10),
		"g": 1, "gb": 1, "gib": 1, "t": 1 << 10, "tb": 1 << 10, "tib": 1 << 10,
	},
	Percent: {"%": 1, "pct": 1, "percent": 1, "prozent": 1},
}

const day = 86400.0

// clocks are times such as 02:30:00: a number by itself has no unit among them.
var clocks = math.NaN()

// noLength are times without one length: they are units, and none that can be counted in.
var noLength = []string{
	"month", "months", "monat", "monate", "mois", "year", "years", "yr", "yrs", "jahr", "jahre", "annee",
	"année", "années",
}

// letters are single letters, and words that also mean something else: they state a unit in
// brackets and as a last word, and in no other place.
var letters = []string{"min", "second", "seconde", "minute", "std", "hr", "day", "tag", "mn", "tagen", "week"}

// InUnit returns what a number in a unit is multiplied by to be in the quantity's own; false: the
// quantity has no such unit.
func (q Quantity) InUnit(unit string) (float64, bool) {
	if factor, ok := unitWords[q][unit]; ok {
		return factor, true
	}
	factor, ok := unitWords[q][strings.ToLower(strings.TrimSuffix(unit, "."))]
	return factor, ok
}

// Units lists the usual units of a quantity, for messages.
func (q Quantity) Units() string {
	return [...]string{
		"none", "ms, s, min, h or d", "mW, W, kW or MW", "J, kJ, MJ, Wh or kWh", "kHz, MHz or GHz",
		"MiB, GiB or TiB", "%",
	}[q]
}

// isUnit reports whether a text is a unit of any quantity.
func isUnit(text string) bool {
	if slices.Contains(noLength, strings.ToLower(text)) {
		return true
	}
	switch strings.ToLower(text) { // mW or MW, as it isn't written
	case "mw", "mj", "mwh":
		return true
	}
	for q := range unitWords {
		if _, ok := q.InUnit(text); ok {
			return true
		}
	}
	return false
}

// Split is a column's name in two parts.
type Split struct {
	Rest     string // what is measured, folded
	Unit     string // in what, as it is written
	Brackets bool   // the unit stands in brackets
	before   string // what doesn't
}

// UnitSplits returns the ways in which a column's name may state a unit, the likeliest first: in
// brackets, as the last word, or as the end of it.
func UnitSplits(name string) []Split {
	name = withoutPlural(name)
	if at := perSomething.FindStringSubmatchIndex(name); at != nil && isUnit(name[at[2]:at[3]]) {
		return []Split{{Rest: Fold(name[:at[2]]), Unit: name[at[2]:at[3]]}}
	}
	for _, b := range []string{"()", "[]", "{}"} {
		from, to := strings.LastIndexByte(name, b[0]), strings.LastIndexByte(name, b[1])
		if from >= 0 && to > from {
			before := name[:from] + " " + name[to+1:]
			return []Split{{
				Rest: Fold(before), Unit: unitAmong(name[from+1 : to]), Brackets: true, before: before,
			}}
		}
	}
	words := wordsOf(name)
	if len(words) == 0 {
		return nil
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	if n := len(before) - 1; n > 0 && slices.Contains([]string{"in", "en"}, strings.ToLower(before[n])) {
		before = before[:n]
	}
	rest := Fold(strings.Join(before, ""))
	all := []Split{{Rest: rest, Unit: last}}
	for i, c := range last { // runtimeHours, energyKWh
		if i == 0 || !unicode.IsUpper(c) || !unicode.IsLower(rune(last[i-1])) {
			continue
		}
		if from := i - 1; isUnit(last[from:]) && strings.IndexByte("kmMG", last[from]) >= 0 {
			all = append(all, Split{Rest: rest + Fold(last[:from]), Unit: last[from:]})
		}
		all = append(all, Split{Rest: rest + Fold(last[:i]), Unit: last[i:]})
	}
	return all
}

var (
	// plural is the ending of a word that may be one or many: hour(s), Stunde(n).
	plural = regexp.MustCompile(`(\pL+)\((?:s|n|en)\)`)
	// perSomething is a word before another by which its numbers are divided: h/job, Stunden pro Lauf.
	perSomething = regexp.MustCompile(`(?:^|[^\pL\d])(\pL+)(?:\s*/\s*|\s+(?:per|pro|par|je)\s+)(?:job|run|task|lauf|auftrag|tâche)`)
)

// withoutPlural takes the ending off units that may be one or many.
func withoutPlural(name string) string {
	return plural.ReplaceAllStringFunc(name, func(text string) string {
		if word := text[:strings.IndexByte(text, '(')]; isUnit(word) {
			return word
		}
		return text
	})
}

// unitAmong returns the one unit in brackets beside other words, such as "in h", or else all that stands
// there.
func unitAmong(text string) string {
	text = strings.TrimSpace(text)
	if isUnit(text) || strings.Contains(text, ":") {
		return text
	}
	found, words := text, wordsOf(text)
	for i, word := range words {
		switch {
		case !isUnit(word):
		case found != text, i > 0 && countsDevices(Fold(words[i-1])),
			len(word) == 1 && (i == 0 || !slices.Contains([]string{"in", "en"}, strings.ToLower(words[i-1]))):
			return text
		default:
			found = word
		}
	}
	return found
}

// StatedUnit returns what the numbers of a column are multiplied by whose own name doesn't tell
// what it measures, but a user does. Msg says why that can't be known: the name states a
// unit of something else, or one that nobody knows.
func (q Quantity) StatedUnit(name string) (factor float64, stated bool, msg string) {
	if q == NoQuantity {
		return 1, false, ""
	}
	for _, split := range UnitSplits(name) {
		factor, known := q.InUnit(split.Unit)
		switch {
		case known && countsDevices(split.Rest):
			return 0, false, Quoted(name) + " counts " + split.Unit + " of each device, not of the job"
		case known:
			return factor, true, ""
		case isUnit(split.Unit):
			return 0, false, Quoted(name) + " has a unit of something else, " + Quoted(split.Unit)
		case split.Brackets:
			if f, stated, msg := q.StatedUnit(split.before); stated || msg != "" {
				return f, stated, msg
			}
			return 0, false, Quoted(name) + " has a unit that isn't known, " + Quoted(split.Unit)
		}
	}
	return q.unitInside(name)
}

// unitInside finds the one unit that a name spells out anywhere: hours_run, dauerstunden.
func (q Quantity) unitInside(name string) (factor float64, stated bool, msg string) {
	words := wordsOf(strings.ToLower(name))
	for i, word := range words {
		unit := q.spelledOut(word, i == len(words)-1)
		if unit == "" {
			continue
		}
		f := unitWords[q][unit]
		switch {
		case stated && f != factor:
			return 0, false, Quoted(name) + " has two units"
		case i > 0 && countsDevices(words[i-1]), countsDevices(strings.TrimSuffix(word, unit)):
			return 0, false, Quoted(name) + " counts " + unit + " of each device, not of the job"
		}
		factor, stated = f, true
	}
	if !stated {
		return 1, false, ""
	}
	return factor, true, ""
}

// spelledOut returns the longest unit that a word is, or ends in if it is the last one of a name.
func (q Quantity) spelledOut(word string, last bool) (longest string) {
	const shortest, shortestEnd = 4, 5 // letters of what means nothing else: a stage is no Tage
	for unit := range unitWords[q] {
		is := word == unit && len(unit) >= shortest
		ends := last && len(unit) >= shortestEnd && strings.HasSuffix(word, unit)
		if (is || ends) && len(unit) > len(longest) && !slices.Contains(letters, unit) {
			longest = unit
		}
	}
	return longest
}

// countsDevices reports whether a name ends in what is counted by devices: GPU hours are no run
// time.
func countsDevices(rest string) bool {
	return slices.ContainsFunc([]string{"gpu", "gpus", "cpu", "core", "node", "kern", "knoten", "coeur"},
		func(device string) bool { return rest == device || strings.HasSuffix(rest, "total"+device) })
}

// wordsOf returns the words of a name: runs of letters, digits, % and µ.
func wordsOf(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '%'
	})
}

// Fold returns a name in small letters, without what isn't a letter, a digit or %; a name that
// has none of these is as it was.
func Fold(name string) string {
	if folded := strings.Join(wordsOf(strings.ToLower(name)), ""); folded != "" {
		return folded
	}
	return strings.TrimSpace(name)
}

// SplitTarget splits COLUMN[UNIT], by which a user says in what the numbers of a column are.
func SplitTarget(text string) (column, unit string) {
	if at := strings.IndexByte(text, '['); at > 0 && strings.HasSuffix(text, "]") {
		return strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1 : len(text)-1])
	}
	return text, ""
}

// Scaled returns a decimal number times a unit's factor. In whole multiples it is rounded once.
func Scaled(text string, value, factor float64) float64 {
	const longest = 40 // characters; what is longer isn't a number that people write
	if factor == 1 || factor == 0 || math.IsInf(value, 0) || math.IsNaN(value) || math.IsNaN(factor) {
		return value
	}
	if inverse := math.Round(1 / factor); factor < 1 && 1/inverse == factor {
		return value / inverse
	}
	number, ok := new(big.Rat).SetString(text)
	if len(text) > longest || strings.ContainsAny(text, "eExX/_") || !ok {
		return value * factor
	}
	scale := new(big.Rat).SetFloat64(factor)
	exact, _ := number.Mul(number, scale).Float64()
	return exact
}
