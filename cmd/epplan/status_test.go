package main

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
)

func TestStatusTellsOfTheConstantArmWhereThereIsOne(t *testing.T) {
	var b strings.Builder
	writeController(&b, &epdapi.ControllerStatus{HoldOut: 0.05, HeldOut: 2})
	if text := b.String(); strings.Contains(text, "constant") ||
		!strings.Contains(text, "; 5.00 % of the jobs held out; configuration") ||
		!strings.Contains(text, ", 2 held out; ") {
		t.Error(text)
	}
	b.Reset()
	writeController(&b, &epdapi.ControllerStatus{HoldOut: 0.05, HeldOut: 2, ConstantArm: 0.1, Constant: 3})
	for _, want := range []string{
		"; 5.00 % of the jobs held out, 10.0 % at constant clocks; configuration",
		", 2 held out, 3 drawn for constant clocks; ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s, want %s", b.String(), want)
		}
	}
}

func TestAnEstimateTellsOfTheLot(t *testing.T) {
	var b strings.Builder
	writeEstimateModel(&b, &epdapi.Estimate{HoldOut: 0.05, ConstantArm: 0.1},
		&epdapi.EstimateModel{
			Apply: true, Model: &epdapi.Model{}, Default: &epdapi.Point{}, Chosen: &epdapi.Point{},
		})
	for _, want := range []string{
		"5.00 % of the jobs run at default clocks all the same, at random",
		"10.0 % of the jobs run at constant clocks instead, at random",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s, want %s", b.String(), want)
		}
	}
}
