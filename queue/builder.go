package queue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/textfile"
)

// batchBuilder collects the jobs of a file.
type batchBuilder struct {
	out     Batch
	names   *columnNames
	options *textfile.Options
	given   map[string]string         // columns by the names that the caller gave them, folded
	mapped  map[string]bool           // those that the file has
	warned  map[string]bool           // names of the file that were warned of
	loose   [numColumns]string        // names of the file that state no unit, by column
	passed  *textfile.PassedOverError // names of the file that are passed over; nil: none
	numbers textfile.Numbers
	ids     map[string]int
	extras  map[string]string // the x_ names seen, each one string

	where func(column) Position // of a field of the current record

	models []dvfsmodel.Params // room for the next models
	counts []GPUCount         // room for the next GPU counts

	profiled      bool // some job has a profile
	firstProfiled int  // its number

	unitless columnSet // columns of times that were warned of, as they have numbers without a unit

	dates        dateForm // how moments are written
	firstDate    Position // of a moment, where the first stands
	undated      Position // of the first job without a moment
	duplicated   int      // jobs with both a model and a workload
	firstDoubled Position
}

func newBatchBuilder(name string, options *textfile.Options) *batchBuilder {
	b := &batchBuilder{
		out:     Batch{Name: name},
		names:   &nativeNames,
		ids:     map[string]int{},
		extras:  map[string]string{},
		options: options,
		given:   map[string]string{},
		mapped:  map[string]bool{},
	}
	for name, target := range options.Columns {
		b.given[textfile.Fold(name)] = target
	}
	return b
}

// slabSize is how many small values are allocated at once.
const slabSize = 256

// add completes the draft of the current record and takes its job.
func (b *batchBuilder) add(d *jobDraft) error {
	job := &d.job
	b.warnOfUnits(d)
	if d.nodes > 0 && !d.given.has(colNodes) {
		job.Nodes = d.nodes
	}
	if len(job.GPUs) == 0 {
		job.GPUs, d.each = b.oneGPU(), true
	}
	if d.each && job.Nodes > 1 {
		for i := range job.GPUs {
			job.GPUs[i].Count *= job.Nodes
		}
	}
	if d.pinned != "" {
		if problem := d.pinToModels(); problem != nil {
			return b.fault(problem)
		}
	}
	if d.given.hasAny(modelColumns) {
		if !d.given.hasAll(neededColumns) {
			return b.partialModel(d.given)
		}
		job.Model = b.model(d.model)
	}
	slices.SortFunc(job.Extra, func(x, y Field) int { return strings.Compare(x.Name, y.Name) })
	slices.SortFunc(job.Measured, func(x, y Measured) int { return strings.Compare(x.Model, y.Model) })
	if err := b.date(d); err != nil {
		return err
	}
	if problem := job.check(); problem != nil {
		if problem.col == colDeadline && d.dated[colDeadline-colArrival] != plainSeconds {
			problem.Msg = "is " + d.dateText(colDeadline) + ", before the arrival at " + d.dateText(colArrival)
		}
		return b.fault(problem)
	}
	if first, ok := b.ids[job.ID]; ok {
		return &SyntaxError{
			Pos:  b.where(colID),
			Msg:  "id " + quoted(job.ID) + " is used twice, first at " + b.out.Jobs[first].Pos.String(),
			Want: "unique ids",
		}
	}
	if err := b.checkAlike(job); err != nil {
		return err
	}
	if job.Model != nil && job.Workload != "" {
		if b.duplicated++; b.duplicated == 1 {
			b.firstDoubled = job.Pos
		}
	}
	b.ids[job.ID] = len(b.out.Jobs)
	if len(b.out.Jobs) == cap(b.out.Jobs) {
		b.out.Jobs = slices.Grow(b.out.Jobs, len(b.out.Jobs)+slabSize) // append would copy more often
	}
	b.out.Jobs = append(b.out.Jobs, *job)
	return nil
}

// checkAlike refuses a profile that can't be laid over those before it.
func (b *batchBuilder) checkAlike(job *Job) error {
	if job.Profile == nil {
		return nil
	}
	if !b.profiled {
		b.profiled, b.firstProfiled = true, len(b.out.Jobs)
		return nil
	}
	if problem := job.Profile.difference(&b.out.Jobs[b.firstProfiled]); problem != nil {
		return b.fault(problem)
	}
	return nil
}

// fault is a problem of the current record as an error with its position.
func (b *batchBuilder) fault(p *FieldError) error { return b.faultAt(b.where(p.col), p) }

func (b *batchBuilder) faultAt(pos Position, p *FieldError) error {
	msg := p.Msg
	if name := b.names.name(p.col); name != "" {
		msg = name + " " + msg
	}
	return &SyntaxError{Pos: pos, Msg: msg, Want: p.Want}
}

func (b *batchBuilder) partialModel(given columnSet) error {
	missing := b.names.name((neededColumns &^ given).first())
	return &SyntaxError{
		Pos:  b.where((given & modelColumns).first()),
		Msg:  "the job's model has no " + missing,
		Want: "all of " + b.names.model(),
	}
}

// extraName returns the one copy of an x_ name.
func (b *batchBuilder) extraName(name string) (string, *FieldError) {
	if known, ok := b.extras[name]; ok {
		return known, nil
	}
	if msg, want := extraNameFault(name); msg != "" {
		return "", newFieldError(colExtra, "column name "+msg, want)
	}
	if len(b.extras) == maxExtraNames {
		return "", newFieldError(colExtra, quoted(name)+" is one x_ column too many",
			"at most "+strconv.Itoa(maxExtraNames))
	}
	b.extras[name] = name
	return name, nil
}

// addExtra keeps an x_ column that has a value.
func (d *jobDraft) addExtra(name, value string) *FieldError {
	if value == "" {
		return nil
	}
	if msg, want := extraValueFault(value); msg != "" {
		return newFieldError(colExtra, name+" "+msg, want)
	}
	d.job.Extra = append(d.job.Extra, Field{Name: name, Value: value})
	return nil
}

func (b *batchBuilder) model(m dvfsmodel.Params) *dvfsmodel.Params {
	if len(b.models) == 0 {
		b.models = make([]dvfsmodel.Params, slabSize)
	}
	place := &b.models[0]
	b.models = b.models[1:]
	*place = m
	return place
}

func (b *batchBuilder) oneGPU() []GPUCount {
	if len(b.counts) == 0 {
		b.counts = make([]GPUCount, slabSize)
	}
	place := b.counts[:1:1]
	b.counts = b.counts[1:]
	place[0] = GPUCount{Count: 1}
	return place
}

func (b *batchBuilder) batch() (*Batch, error) {
	if len(b.out.Jobs) == 0 {
		return nil, fmt.Errorf("%s: %w, want at least one", Printable(b.out.Name), ErrEmpty)
	}
	if err := b.checkMapped(Position{File: b.out.Name}); err != nil {
		return nil, err
	}
	b.setClockStart()
	if b.passed != nil {
		b.out.Warnings = append(b.out.Warnings, b.passed)
	}
	if doubt := b.numbers.Doubt(); doubt != nil {
		b.out.Warnings = append(b.out.Warnings, doubt)
	}
	if b.duplicated > 0 {
		b.out.Warnings = append(b.out.Warnings, &Warning{Kind: WarnUnused, Err: &SyntaxError{
			Pos: b.firstDoubled,
			Msg: fmt.Sprintf("%d jobs have both a model and a workload: the model is used", b.duplicated),
		}})
	}
	return &b.out, nil
}

// heading returns what a name of the file that is read stands for.
func (b *batchBuilder) heading(name string) (h columnHeading, known bool, problem *FieldError) {
	folded := textfile.Fold(name)
	target := b.given[folded]
	if target == "" {
		h, known = columnHeadingOf(name)
		if h.loose {
			b.loose[h.col] = name
		}
	} else {
		b.mapped[folded], known = true, true
		h, problem = givenHeading(name, target)
	}
	if h.col == colOnModel && problem == nil {
		problem = modelColumnFault(h.of, h.extra)
	}
	return h, known, problem
}

// checkMapped reports a name that the caller gave a column and the file hasn't.
func (b *batchBuilder) checkMapped(at Position) error {
	for _, name := range slices.Sorted(maps.Keys(b.options.Columns)) {
		if !b.mapped[textfile.Fold(name)] {
			return &SyntaxError{
				Pos: at, Msg: "nothing is called " + quoted(name) + ", which is to be " + b.options.Columns[name],
				Want: "a name that the file has",
			}
		}
	}
	return nil
}

// passOver notes a name that is none of a column and that the caller lets be passed over.
func (b *batchBuilder) passOver(at Position, name string) {
	if b.passed == nil {
		b.passed = &textfile.PassedOverError{Pos: at}
	}
	b.passed.Add(name)
}
