// Package configfiles reads the files that a configuration names. epd takes what it returns, and epplan
// config check returns its errors: what one refuses the other does.
package configfiles

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/openai"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/slurm"
)

// Files are the files without which epd doesn't go on.
type Files struct {
	Series *factors.Series // factors over time; nil: they are constant
	Budget *budget.Series  // of the cluster over time; nil: it is constant
	Curve  *sharing.Curve  // the time that sharing a GPU costs; nil: by load alone
}

// Read reads the files that decisions and reports depend on.
func Read(c *config.Config) (*Files, error) {
	f := &Files{}
	var err error
	if path := c.FactorSeriesFile(); path != "" {
		if f.Series, err = factors.ReadFile(path); err != nil {
			return nil, fmt.Errorf("factors.series: %w", err)
		}
		by := c.Live.Hours.By
		if by == config.HoursCost && !f.Series.States(factors.Money) ||
			by == config.HoursCarbon && !f.Series.States(factors.Carbon) {
			return nil, fmt.Errorf("live.hours.by is %q, which %s doesn't state, want cost_per_kwh there for cost, "+
				"carbon_g_per_kwh for carbon", string(by), path)
		}
	}
	if path := c.BudgetSeriesFile(); path != "" {
		if f.Budget, err = readFile(path, budget.ReadSeries); err != nil {
			return nil, fmt.Errorf("budget.series: %w", err)
		}
	}
	if path := c.LiveContention(); path != "" {
		if f.Curve, err = readFile(path, sharing.ReadCurve); err != nil {
			return nil, fmt.Errorf("live.sharing.contention: %w", err)
		}
	}
	return f, nil
}

// readFile reads a file that the administrator names.
func readFile[T any](path string, read func(r io.Reader, name string) (*T, error)) (*T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return read(f, path)
}

// Check reads every file that a configuration names. Refused are those without which epd doesn't start,
// doubtful those without which it does less, and those that only others than the caller may read.
func Check(c *config.Config) (refused, doubtful []error) {
	note := func(err error, needed bool) {
		switch {
		case err == nil:
		case needed && !errors.Is(err, fs.ErrPermission):
			refused = append(refused, err)
		default:
			doubtful = append(doubtful, err)
		}
	}
	_, err := Read(c)
	note(err, true)
	if path := c.Contention(); path != "" {
		if _, err := readFile(path, sharing.ReadCurve); err != nil {
			note(fmt.Errorf("cluster.sharing.contention: %w", err), true)
		}
	}
	note(WebSecrets(&c.Web), true)
	if c.Web.Cert != "" {
		if _, err := tls.LoadX509KeyPair(c.Web.Cert, c.Web.Key); err != nil {
			note(fmt.Errorf("[web] cert and key: %w", err), true)
		}
	}
	for _, server := range []struct {
		what string
		of   *config.Endpoint
	}{{"embedding server", &c.Predict.Embedding}, {"rewriting server", &c.Predict.Align}} {
		if server.of.URL == "" {
			continue
		}
		_, err := openai.New(&openai.Options{
			What: server.what, URL: server.of.URL, Hosts: c.Predict.AllowHosts, KeyFile: server.of.KeyFile,
		})
		note(err, false)
	}
	return refused, doubtful
}

// WebSecrets reports why the pages' files with tokens and with their secret can't be used.
func WebSecrets(w *config.Web) error {
	if w.TokenFile != "" {
		if _, err := login.ReadTokenFile(w.TokenFile); err != nil {
			return fmt.Errorf("[web] token_file: %w", err)
		}
	}
	if w.OIDC.SecretFile != "" {
		if _, err := login.ReadSecretFile(w.OIDC.SecretFile); err != nil {
			return fmt.Errorf("[web.oidc] client_secret_file: %w", err)
		}
	}
	return nil
}

// CheckNamed reads all that a configuration names: files, and partitions, nodes and users where
// somebody knows them. The error is why epd wouldn't start with it, doubtful what it would warn of.
func CheckNamed(ctx context.Context, c *config.Config) (doubtful []error, err error) {
	refused, doubtful := Check(c)
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	if err := c.CheckClocks(); err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	const patience = 3 * time.Second
	client := slurm.NewClient(slurm.ExecRunner{Conf: os.Getenv("SLURM_CONF"), Timeout: patience}, patience)
	if nodes, _, err := client.Nodes(ctx); err == nil && len(nodes) > 0 {
		doubtful = append(doubtful, c.UnknownNames(config.NamesIn(nodes))...)
	}
	for _, name := range c.Live.Operators {
		// id asks all that the machine has accounts from, as a static program can't.
		err := exec.CommandContext(ctx, "id", "-u", "--", name).Run() //nolint:gosec // one argument, behind --
		if _, unknown := errors.AsType[*exec.ExitError](err); unknown {
			doubtful = append(doubtful, fmt.Errorf("live.operators has %q, and this machine knows no such user", name))
		}
	}
	return doubtful, nil
}
