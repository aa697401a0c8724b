package epdapi_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
)

// asked returns a request that says something everywhere.
func asked() *epdapi.DecideRequest {
	return &epdapi.DecideRequest{
		Job: 7, Node: "n1", RunID: "r1", GPUModel: "H100", GPUs: 2,
		Default:    dvfsmodel.Setting{Core: 1980, Mem: 2619},
		Clocks:     []epdapi.ClockGroup{{Mem: 2619, Core: []dvfsmodel.MHz{1980, 1500}}},
		PowerLimit: epdapi.PowerLimit{InForce: 700, Min: 200, Max: 700}, UID: 1000,
	}
}

// numbersOf returns the signed numbers that a request is judged by. Of its default setting those are the
// clocks: no default limit or profile is asked for.
func numbersOf(v reflect.Value) (list []reflect.Value) {
	switch kind := v.Kind(); {
	case v.CanInt(), v.CanFloat():
		return []reflect.Value{v}
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Type() != reflect.TypeFor[dvfsmodel.Setting]() ||
				name == "Core" || name == "Mem" {
				list = append(list, numbersOf(v.Field(i))...)
			}
		}
	case kind == reflect.Slice:
		for i := range v.Len() {
			list = append(list, numbersOf(v.Index(i))...)
		}
	}
	return list
}

func TestARequestWithANumberThatCantBeIsRefused(t *testing.T) {
	if err := asked().Validate(); err != nil {
		t.Fatal(err)
	}
	count := len(numbersOf(reflect.ValueOf(asked()).Elem()))
	if count < 9 {
		t.Fatalf("%d numbers", count)
	}
	for i := range count {
		for _, bad := range []float64{-1, -1e-3, math.NaN(), math.Inf(1), 1e9} {
			r := asked()
			number := numbersOf(reflect.ValueOf(r).Elem())[i]
			switch whole := bad == math.Trunc(bad) && !math.IsInf(bad, 0); {
			case number.Kind() == reflect.Float64:
				number.SetFloat(bad)
			case whole:
				number.SetInt(int64(bad))
			default:
				continue
			}
			if err := r.Validate(); !errors.Is(err, epdapi.ErrRequest) {
				text, _ := json.Marshal(r)
				t.Errorf("number %d is %v: %v, want it refused: %s", i, bad, err, text)
			}
		}
	}
}
