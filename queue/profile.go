package queue

import (
	"slices"
	"strconv"
	"strings"
)

// maxSlots is how many slots a profile may have.
const maxSlots = 10_000

const profileColumns columnSet = 1<<colUtil | 1<<colSlot | 1<<colGPUMem | 1<<colKappa

// field returns where a numeric column of the profile lives.
func (f *GPUProfile) field(c column) *float64 {
	switch c {
	case colSlot:
		return &f.Slot
	case colGPUMem:
		return &f.MemGB
	default:
		return &f.Kappa
	}
}

// parseSeries reads numbers with spaces between them.
func parseSeries(c column, text string) ([]float64, *FieldError) {
	var series []float64
	for part := range strings.FieldsSeq(text) {
		value, problem := parseNumber(c, part)
		if problem != nil {
			return nil, problem
		}
		if series = append(series, value); len(series) > maxSlots {
			break // for Validate to refuse
		}
	}
	return series, nil
}

func seriesText(series []float64) string {
	var text []byte
	for i, value := range series {
		if i > 0 {
			text = append(text, ' ')
		}
		text = appendNumber(text, value)
	}
	return string(text)
}

func (j *Job) checkProfile() *FieldError {
	f := j.Profile
	if f == nil {
		return nil
	}
	if n := len(f.UtilPct); n == 0 || n > maxSlots {
		return newFieldError(colUtil, "has "+strconv.Itoa(n)+" slots",
			"1 to "+strconv.Itoa(maxSlots)+", as a profile has all of util_pct, slot_s and gpu_mem_gb")
	}
	for _, u := range f.UtilPct {
		if !(u >= 0 && u <= 100) {
			return newFieldError(colUtil, "has "+formatNumber(u), "numbers from 0 to 100")
		}
	}
	for _, n := range [...]struct {
		col   column
		value float64
	}{{colSlot, f.Slot}, {colGPUMem, f.MemGB}} {
		if !(inRange(n.value) && n.value > 0) {
			return newFieldError(n.col, "is "+formatNumber(n.value),
				"a number above 0, up to 1e15, as a profile has all of util_pct, slot_s and gpu_mem_gb")
		}
	}
	if f.Kappa != 0 && !(inRange(f.Kappa) && f.Kappa >= 1) {
		return newFieldError(colKappa, "is "+formatNumber(f.Kappa), "a number from 1 to 1e15")
	}
	if j.Share < 1 {
		return newFieldError(colShare, "is "+formatNumber(j.Share)+" for a job with a profile", "one of them")
	}
	return nil
}

// difference says in what two profiles can't be laid over each other, slot by slot.
func (f *GPUProfile) difference(first *Job) *FieldError {
	if a, b := len(f.UtilPct), len(first.Profile.UtilPct); a != b {
		return newFieldError(colUtil, "has "+strconv.Itoa(a)+" slots",
			strconv.Itoa(b)+" as that of job "+quoted(first.ID))
	}
	if f.Slot != first.Profile.Slot {
		return newFieldError(colSlot, "is "+formatNumber(f.Slot),
			formatNumber(first.Profile.Slot)+" as that of job "+quoted(first.ID))
	}
	return nil
}

// firstProfile returns the first of some jobs that has a profile, or nil.
func firstProfile(jobs []Job) *Job {
	if i := slices.IndexFunc(jobs, func(j Job) bool { return j.Profile != nil }); i >= 0 {
		return &jobs[i]
	}
	return nil
}
