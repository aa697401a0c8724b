package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

func modelsFlag(usage, without string) *cli.StringSliceFlag {
	return &cli.StringSliceFlag{Name: "models", Usage: usage, DefaultText: without}
}

// readModels are those of all files of --models; nil where there is none.
func readModels(t *terminal, c *cli.Context) (all *config.Models, err error) {
	for _, name := range c.StringSlice("models") {
		some, err := parseFile(t, name, config.ReadModels)
		if err == nil && all != nil {
			some, err = all.With(some)
		}
		if err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
		all = some
	}
	return all, nil
}

// mapFlag is the flag for names of a batch file's own.
func mapFlag() *cli.StringSliceFlag {
	return &cli.StringSliceFlag{
		Name:  "map",
		Usage: "`COLUMN=NAME`: a column of batches is called NAME in the file; repeat it for more",
	}
}

// mappedColumns are the columns of a batch by the names that --map gives them.
func mappedColumns(c *cli.Context, format queue.Format) (map[string]string, error) {
	columns := map[string]string{}
	taken := map[string]string{}
	for _, text := range c.StringSlice("map") {
		column, name, ok := strings.Cut(text, "=")
		column, name = strings.TrimSpace(column), strings.TrimSpace(name)
		switch {
		case format == queue.EDL:
			return nil, usagef("--map is for batches with columns of epplan's, want it left out " +
				"with --format edl")
		case !ok || column == "" || name == "":
			return nil, usagef("--map %q, want COLUMN=NAME, such as runtime_s=Seconds", text)
		case !queue.IsColumn(column) && queue.IsColumn(name):
			column, name = name, column
		case !queue.IsColumn(column):
			return nil, usagef("--map %q: there is no column %s, want one of %s, or one that begins with x_",
				text, column, strings.Join(queue.Columns(), ", "))
		}
		if columns[name] != "" || taken[column] != "" {
			return nil, usagef("--map %q: %s or %s is mapped already, want each once", text, column, name)
		}
		columns[name], taken[column] = column, name
	}
	return columns, nil
}

// withColumnHint says what else can be done about names that aren't columns.
func withColumnHint(err error) error {
	err = fmt.Errorf("read batch: %w", err)
	if fault, ok := errors.AsType[*queue.SyntaxError](err); ok &&
		strings.HasPrefix(fault.Msg, "unknown column") {
		return withHint(err, "--map COLUMN=NAME says which column a name of the file stands for")
	}
	return err
}

// readProfiles are the known GPU models, with those of a file if it is named.
func readProfiles(t *terminal, name string) (*config.Profiles, error) {
	if name == "" {
		return config.BuiltinProfiles(), nil
	}
	extra, err := parseFile(t, name, config.ReadProfiles)
	if err != nil {
		return nil, fmt.Errorf("read profiles: %w", err)
	}
	return config.BuiltinProfiles().With(extra), nil
}

func profilesFlag() cli.Flag {
	return &cli.StringFlag{Name: "profiles", Usage: "TOML `FILE` with further GPU models"}
}

// noNodes says that a file which was named for its nodes has none.
func noNodes(name string) error {
	return withHint(fmt.Errorf("%s: no nodes, want at least one [[cluster.nodes]] table", name),
		"epplan config init writes a file with all keys")
}

// catalog is a catalog that says what to do where it can't answer.
type catalog struct{ *config.Catalog }

func newCatalog(profiles *config.Profiles, models *config.Models, scaling *dvfsmodel.Range) catalog {
	return catalog{config.NewCatalog(profiles, models, scaling)}
}

// CheckWorkload says which workloads there are when the given one is not among them.
func (c catalog) CheckWorkload(workload string) error {
	err := c.Catalog.CheckWorkload(workload)
	if errors.Is(err, config.ErrNoModels) {
		return withHint(err, "name one with --models, or have the job state a runtime_s and no workload: it "+
			"runs at default clocks then")
	}
	return err
}
