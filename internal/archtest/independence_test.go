package archtest

import (
	"fmt"
	"go/types"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// sharedCode names each place where the check of plans calls, or takes the value of, a
// function or method of the planner: it may use the types of a plan, but none of the
// functions that make or price one.
func sharedCode(modulePath string, checks []*packages.Package) []string {
	var found []string
	for _, p := range checks {
		for ident, object := range p.TypesInfo.Uses {
			function, ok := object.(*types.Func)
			if ok && function.Pkg() != nil && function.Pkg().Path() == modulePath+"/planner" {
				found = append(found, fmt.Sprintf("%s: the check of plans uses %s",
					p.Fset.Position(ident.Pos()), function.FullName()))
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestTheCheckOfPlansSharesNoCodeWithWhatMakesThem(t *testing.T) {
	checks := loadTyped(t, rootDir(t), "./planner/check")
	types := 0
	for _, p := range checks {
		for _, object := range p.TypesInfo.Uses {
			if object.Pkg() != nil && object.Pkg().Path() == modulePath+"/planner" {
				types++
			}
		}
	}
	if types < 20 {
		t.Errorf("%d uses of the planner seen, want more: the test looks at the wrong thing", types)
	}
	report(t, sharedCode(modulePath, checks))
}

func TestCodeThatTheCheckOfPlansSharesIsFound(t *testing.T) {
	root := build(t, `
-- planner/planner.go --
package planner

type Plan struct{ End float64 }

func (p *Plan) Energy() float64 { return p.End }

func Account(p *Plan) float64 { return p.End }
-- planner/check/check.go --
package check

import made "example.org/house/planner"

func Plan(p *made.Plan) bool { return p.End > 0 && p.Energy() > 0 }

var account = made.Account
`)
	wantViolations(t, sharedCode(fixturePath, loadTyped(t, root, "./planner/check")),
		"check.go:5:54: the check of plans uses (*example.org/house/planner.Plan).Energy",
		"check.go:7:20: the check of plans uses example.org/house/planner.Account")
}
