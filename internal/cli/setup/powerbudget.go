package setup

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/planner/powerbudget"
)

// BudgetFlag names the power budget of a plan.
const BudgetFlag = "budget"

var budgetColumns = []textfile.Column{{Name: "time_s", Required: true}, {Name: "watts", Required: true}}

// PowerBudget reads what --budget says: a power such as 300kW, or a CSV file with the columns time_s and
// watts, each row from its time on.
func PowerBudget(t *terminal.Terminal, text string) (powerbudget.Budget, error) {
	if watts, err := budget.ParseWatts(text); err == nil {
		return powerbudget.Budget{{Watts: watts}}, nil
	} else if !strings.ContainsAny(text, "./") {
		return nil, terminal.Usagef("--%s: %v, or a CSV file with the columns time_s and watts", BudgetFlag, err)
	}
	var b powerbudget.Budget
	err := t.Read(text, func(r io.Reader, name string) (err error) {
		b, err = readBudget(r, name)
		return err
	})
	return b, err
}

// readBudget reads a budget over time. The first bad cell is an error with its place.
func readBudget(r io.Reader, name string) (b powerbudget.Budget, err error) {
	rows, err := textfile.OpenTable(r, name, "time and watts", textfile.OnlyText)
	if err != nil {
		return nil, err
	}
	at, _, err := rows.Arrange(budgetColumns, nil)
	if err != nil {
		return nil, err
	}
	number := func(column int) (x float64, err error) {
		text, err := rows.Number(column)
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(text, 64)
	}
	err = rows.Each(func() error {
		from, err := number(at[0].At)
		if err != nil {
			return err
		}
		watts, err := number(at[1].At)
		if err != nil {
			return err
		}
		switch {
		case from < 0 || len(b) > 0 && from <= b[len(b)-1].From:
			return &textfile.SyntaxError{
				Pos: rows.CellAt(at[0].At), Msg: "time_s is " + textfile.Quoted(rows.Cell(at[0].At)),
				Want: "0 or more, and more than in the row before",
			}
		case !(watts > 0):
			return &textfile.SyntaxError{
				Pos: rows.CellAt(at[1].At), Msg: "watts is " + textfile.Quoted(rows.Cell(at[1].At)), Want: "more than 0",
			}
		}
		b = append(b, powerbudget.Step{From: from, Watts: dvfsmodel.Watt(watts)})
		return nil
	})
	if err == nil && len(b) == 0 {
		return nil, &textfile.SyntaxError{Pos: rows.CellAt(0), Msg: "no rows", Want: "one or more"}
	}
	return b, err
}

// maxTime is how far ahead a window may be, and how long.
const maxTime = 366 * 24 * time.Hour

// Times reads a flag with times such as 15m,4h, each of so much at least, in seconds.
func Times(c *cli.Context, flag string, least time.Duration) (all []float64, err error) {
	for text := range strings.SplitSeq(c.String(flag), ",") {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || d < least || d > maxTime {
			return nil, terminal.Usagef("--%s %q, want times such as 15m,4h", flag, c.String(flag))
		}
		all = append(all, d.Seconds())
	}
	return all, nil
}
