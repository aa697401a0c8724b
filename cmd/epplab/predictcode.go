package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/prediction"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/embed"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
)

const maxSourceBytes = 1 << 20

type codeTable struct {
	name              string
	ids               []string
	texts             []string
	binary            []bool
	values            []float64 // NaN: not known
	outOfDistribution []bool    // said to be out of distribution: not learnt from
	lines             []int
}

func predictCode(t *terminal.Terminal, c *cli.Context, target predict.Target) error {
	if target == predict.Power {
		return terminal.Usagef("--target power follows from histories only, want time or energy with --code")
	}
	train, err := readCode(t, c, c.String("train"), c.String("code"), target, true)
	if err != nil {
		return err
	}
	test, err := readCode(t, c, c.String("test"), cmp.Or(c.String("code-test"), c.String("code")), target,
		false)
	if err != nil {
		return err
	}
	aligner, err := newAligner(t, c)
	if err != nil {
		return err
	}
	set := &probe.Set{}
	embedding, err := newEmbedding(t, c, train, test, set)
	if err != nil {
		return err
	}
	if aligner != nil {
		aligner.embed = embedding
	}
	return predictEmbedded(t, c, target, set, train, test, aligner)
}

type embedFunc func(ctx context.Context, text string) ([]float64, error)

// predictEmbedded fits and predicts; a set has the embeddings of both tables, those to
// learn from first.
func predictEmbedded(
	t *terminal.Terminal,
	c *cli.Context,
	target predict.Target,
	set *probe.Set,
	train, test *codeTable,
	aligner *aligner,
) error {
	tested := set.Embeddings[len(train.ids):]
	all := set.Embeddings[:len(train.ids)]
	set.Embeddings = nil
	var learnt []string
	for i, e := range all {
		if !train.outOfDistribution[i] && !train.binary[i] {
			learnt = append(learnt, train.texts[i])
			set.Embeddings, set.Values = append(set.Embeddings, e), append(set.Values, train.values[i])
		}
	}
	fitted, err := probe.Fit(c.Context, probe.Kind(c.String("probe")), set)
	if err != nil {
		return fmt.Errorf("%s: %w", train.name, err)
	}
	distances, err := probe.NewDistances(set)
	if err != nil {
		return fmt.Errorf("%s: %w", train.name, err)
	}
	p := &prediction.Set{Target: target, IDs: test.ids, Truths: test.values}
	for i, e := range tested {
		estimate := fitted.Estimate(e)
		p.Predictions = append(p.Predictions, predict.Prediction{
			Value: estimate.Value, Low: estimate.Low, High: estimate.High, Rung: predict.Code,
		})
		strange := distances.NoveltyOf(e)
		strange.IsOutside = strange.IsOutside || test.binary[i]
		if aligner != nil && strange.IsOutside && !test.binary[i] {
			rewritten, err := aligner.align(c.Context, test.ids[i], test.texts[i], e, distances, learnt)
			if err != nil {
				return err
			}
			if rewritten != nil {
				estimate = fitted.Estimate(rewritten)
				p.Predictions[i].Value, p.Predictions[i].Low, p.Predictions[i].High = estimate.Value,
					estimate.Low, estimate.High
				p.Strangeness, p.Aligned = append(p.Strangeness, strange), append(p.Aligned, test.ids[i])
				continue
			}
		}
		if q := &p.Predictions[i]; strange.IsOutside { // anything that was seen could happen
			q.Low, q.High = min(q.Low, slices.Min(set.Values)), max(q.High, slices.Max(set.Values))
		}
		p.Strangeness = append(p.Strangeness, strange)
	}
	return prediction.Print(t, c, p)
}

// newEmbedding puts the embeddings of two tables into a set: from a server where one is
// asked, else the built-in ones.
func newEmbedding(
	t *terminal.Terminal,
	c *cli.Context,
	train, test *codeTable,
	set *probe.Set,
) (embedFunc, error) {
	texts := slices.Concat(train.texts, test.texts)
	builtIn := func() embedFunc {
		set.Style, set.Embeddings = source.Style, nil
		for _, text := range texts {
			set.Embeddings = append(set.Embeddings, source.Embed(source.Read(text)))
		}
		return func(_ context.Context, text string) ([]float64, error) {
			return source.Embed(source.Read(text)), nil
		}
	}
	if !c.IsSet("embeddings") {
		return builtIn(), nil
	}
	client, err := embed.New(&embed.Options{
		URL: c.String("embeddings"), Hosts: c.StringSlice("allow-host"), Model: c.String("embedding-model"),
		KeyFile: c.String("embedding-key"), Cache: c.String("embedding-cache"),
		Timeout: c.Duration("embedding-timeout"),
	})
	if err != nil {
		return nil, terminal.WithHint(err, "--allow-host names hosts that source code may be sent to")
	}
	ctx := c.Context
	set.Embeddings, err = client.Embed(ctx, texts)
	if err == nil || ctx.Err() != nil {
		return func(ctx context.Context, text string) ([]float64, error) {
			found, err := client.Embed(ctx, []string{text})
			if err != nil {
				return nil, err
			}
			return found[0], nil
		}, err
	}
	// The next best thing, rather than nothing.
	t.Message("warning", err.Error()+"; the built-in embedding is used")
	return builtIn(), nil
}

// readCode reads a table with the columns job_id and file, and the source files.
func readCode(
	t *terminal.Terminal, c *cli.Context, name, folder string, target predict.Target, values bool,
) (*codeTable, error) {
	columns := []string{"time_" + c.String("gpu-type") + "_s", target.Column()}
	if target == predict.Energy {
		columns[0] = "energy_" + c.String("gpu-type") + "_kwh"
	}
	table, err := terminal.ParseFile(t, name, func(r io.Reader, name string) (*codeTable, error) {
		return readCodeTable(r, name, columns, values)
	})
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, terminal.WithoutPath(err))
	}
	defer func() { _ = root.Close() }() // only read
	return table, readSources(c.Context, t, table, root)
}

// readSources replaces files' names by what is in them. Nothing outside the folder is
// read.
func readSources(ctx context.Context, t *terminal.Terminal, table *codeTable, root *os.Root) error {
	cut := 0
	for i, file := range table.texts {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := readSource(root, file)
		if err != nil {
			return fmt.Errorf("%s:%d: file %q: %w", table.name, table.lines[i], file,
				terminal.WithoutPath(err))
		}
		if len(data) > maxSourceBytes {
			data = data[:maxSourceBytes]
			cut++
		}
		if table.binary[i] = bytes.IndexByte(data, 0) >= 0; table.binary[i] {
			t.Warningf("%s:%d: %s is binary, nothing is read from it", table.name, table.lines[i], file)
			data = nil
		}
		table.texts[i] = string(data)
	}
	if cut > 0 {
		t.Warningf("%s: of %s only the first %d bytes are read", table.name, report.Plural(cut, "file"),
			maxSourceBytes)
	}
	return nil
}

// readSource reads a regular file, one byte more than is used at most.
func readSource(root *os.Root, file string) ([]byte, error) {
	info, err := root.Stat(filepath.FromSlash(file))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	f, err := root.Open(filepath.FromSlash(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxSourceBytes+1))
}

// readCodeTable reads a table; texts are files' names for now.
func readCodeTable(r io.Reader, name string, valueColumns []string, values bool) (*codeTable, error) {
	rows, err := textfile.OpenTable(r, name, "job_id and file", textfile.OnlyText)
	if err != nil {
		return nil, err
	}
	id, file, ood := rows.Index("job_id"), rows.Index("file"), rows.Index("ood")
	value := rows.Index(valueColumns[0])
	for _, column := range valueColumns[1:] {
		if value < 0 {
			value = rows.Index(column)
		}
	}
	switch {
	case id < 0 || file < 0:
		return nil, fmt.Errorf("%s:1: want the columns job_id and file", name)
	case value < 0 && values:
		return nil, fmt.Errorf("%s:1: no column %s", name, valueColumns[0])
	}
	table := &codeTable{name: name}
	err = rows.Each(func() error {
		row, line, v := rows.Row, rows.Line(), math.NaN()
		if value >= 0 && row[value] != "" {
			if v, err = strconv.ParseFloat(row[value], 64); err != nil || !(v > 0) || math.IsInf(v, 1) {
				return fmt.Errorf("%s:%d: column %s is %q, want a number above 0", name, line,
					rows.Header[value], row[value])
			}
		}
		if math.IsNaN(v) && values {
			return fmt.Errorf("%s:%d: column %s is empty", name, line, rows.Header[value])
		}
		table.ids, table.texts, table.lines = append(table.ids, row[id]), append(table.texts, row[file]),
			append(table.lines, line)
		table.values = append(table.values, v)
		table.outOfDistribution = append(table.outOfDistribution, ood >= 0 && row[ood] == "1")
		return nil
	})
	if err != nil {
		return nil, err
	}
	table.binary = make([]bool, len(table.ids))
	return table, nil
}
