package setup

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/trace"
	"github.com/epplan/epplan/queue"
)

// ModelsFlag returns the flag that names models files.
func ModelsFlag(usage, without string) *cli.StringSliceFlag {
	return &cli.StringSliceFlag{Name: "models", Usage: usage, DefaultText: without}
}

// ReadModels returns those of all files of --models; nil where there is none.
func ReadModels(t *terminal.Terminal, c *cli.Context) (all *config.Models, err error) {
	for _, name := range c.StringSlice("models") {
		some, err := terminal.ParseFile(t, name, config.ReadModels)
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

// TableFlags returns what a user can say of the columns of a file.
func TableFlags(files string) []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{
			Name: "map",
			Usage: "`COLUMN=NAME`: a column of " + files + " is called NAME in the file; COLUMN[UNIT]=NAME says in " +
				"what its numbers are; repeat it for more",
		},
		&cli.StringFlag{
			Name:  "header",
			Usage: "`COLUMNS`, separated by commas, of a file without a header; - is one to skip",
		},
		terminal.BoolFlag("ignore-columns", "skip unknown columns, and name them"),
	}
}

// tableOptions returns what flags say of the columns of a file; check says what is wrong with a column.
func tableOptions(c *cli.Context, check func(target string) error) (*queue.TableOptions, error) {
	o := &queue.TableOptions{Ignore: c.Bool("ignore-columns")}
	for _, text := range c.StringSlice("map") {
		if err := o.AddMapping(text, check); err != nil {
			return nil, terminal.Usagef("--map %v", err)
		}
	}
	if c.IsSet("header") {
		o.Header = strings.Split(c.String("header"), ",")
	}
	return o, nil
}

// BatchOptions returns what flags say of the columns of a batch.
func BatchOptions(c *cli.Context, format queue.Format) (*queue.TableOptions, error) {
	if format == queue.EDL && c.IsSet("map") {
		return nil, terminal.Usagef(
			"--map is for batches with columns of epplan's, want it left out with --format edl",
		)
	}
	return tableOptions(c, queue.CheckTarget)
}

// ReadMeasurements reads the settings that were measured, and says what was passed over.
func ReadMeasurements(t *terminal.Terminal, c *cli.Context) ([]dvfsmodel.AppSamples, error) {
	options, err := tableOptions(c, trace.CheckMeasurement)
	if err != nil {
		return nil, err
	}
	measured, err := terminal.ParseFile(
		t,
		c.Args().First(),
		func(r io.Reader, name string) (*trace.Measurements, error) {
			return trace.ReadMeasurements(r, name, options)
		},
	)
	if err != nil {
		return nil, fmt.Errorf("read measurements: %w", WithColumnHint(err))
	}
	return measured.Apps, nil
}

// WithColumnHint says what else can be done about names that aren't columns, and about units.
func WithColumnHint(err error) error {
	fault, ok := errors.AsType[*queue.SyntaxError](err)
	switch {
	case !ok:
		return err
	case strings.HasPrefix(fault.Msg, "unknown column"):
		return terminal.WithHint(
			err,
			"--map COLUMN=NAME says which column a name of the file stands for, --ignore-columns "+
				"passes over those that aren't known, --header COLUMNS names those of a file without a header",
		)
	case strings.Contains(fault.Want, "[UNIT]"), strings.HasSuffix(fault.Msg, "has no unit"):
		return terminal.WithHint(err, "--map 'COLUMN[UNIT]=NAME' says in what the numbers of a column are")
	}
	return err
}

// ReadProfiles returns the known GPU models, with those of a file if it is named.
func ReadProfiles(t *terminal.Terminal, name string) (*config.Profiles, error) {
	if name == "" {
		return config.BuiltinProfiles(), nil
	}
	extra, err := terminal.ParseFile(t, name, config.ReadProfiles)
	if err != nil {
		return nil, fmt.Errorf("read profiles: %w", err)
	}
	return config.BuiltinProfiles().With(extra), nil
}

// KnownProfiles is [ReadProfiles] with the GPU models of the configuration that is found, for commands that
// read nothing else of it.
func KnownProfiles(t *terminal.Terminal, c *cli.Context) (*config.Profiles, error) {
	profiles, err := ReadProfiles(t, c.String("profiles"))
	name, _ := configHere()
	if err != nil || name == "" {
		return profiles, err
	}
	found, err := readConfig(t, name, profiles)
	if err != nil {
		return nil, err
	}
	if known := found.Profiles(); len(known.Names()) > len(profiles.Names()) {
		t.Notef("GPU models of %s count, too", terminal.Printable(name))
		profiles = known
	}
	return profiles, nil
}

// ProfilesFlag returns the flag that names a file of GPU models.
func ProfilesFlag() cli.Flag {
	return &cli.StringFlag{Name: "profiles", Usage: "TOML `FILE` with further GPU models"}
}

// NoNodesError says that a file which was named for its nodes has none.
func NoNodesError(name string) error {
	return terminal.WithHint(fmt.Errorf("%s: no nodes, want at least one [[cluster.nodes]] table", name),
		"epplan config init writes a file with all keys")
}

// Catalog is a catalog that says what to do where it can't answer.
type Catalog struct{ *catalog.Catalog }

// NewCatalog returns a catalog of models, whose errors say what to do.
func NewCatalog(profiles *config.Profiles, models *config.Models, scaling *dvfsmodel.Range) Catalog {
	return Catalog{catalog.New(profiles, models, scaling)}
}

// CheckWorkload says which workloads there are when the given one is not among them.
func (c Catalog) CheckWorkload(workload string) error {
	err := c.Catalog.CheckWorkload(workload)
	if errors.Is(err, catalog.ErrNoModels) {
		return terminal.WithHint(
			err,
			"name one with --models, or have the job state a runtime_s and no workload: it "+
				"runs at default clocks then",
		)
	}
	return err
}
