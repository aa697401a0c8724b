package record_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/store/record"
)

func TestVectorsSurviveBeingPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(rapid.Just(float32(0)), rapid.Float32()), 0, 1100).Draw(t, "v")
		packed := record.PackVector(v)
		got, err := record.UnpackVector(packed)
		if err != nil || !slices.Equal(got, v) && len(v) > 0 {
			t.Fatalf("%v, %v", got, err)
		}
		if len(packed) > 0 {
			cut := rapid.IntRange(0, len(packed)-1).Draw(t, "cut")
			if short, err := record.UnpackVector(packed[:cut]); err == nil && cut > 0 &&
				len(short) != len(v) {
				t.Fatalf("cut off: %d coordinates, want %d", len(short), len(v))
			}
		}
	})
}

func TestBytesThatAreNoVectorAreRefused(t *testing.T) {
	for _, packed := range [][]byte{
		{0},
		{0xff},
		{0xff, 0xff, 0xff, 0xff, 0x0f},
		{4, 0, 0, 0, 0, 0},
		{4, 5, 0, 0, 0, 0},
		{4, 1, 0, 0},
		{
			4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0,
		},
	} {
		if v, err := record.UnpackVector(packed); !errors.Is(err, record.ErrInvalid) {
			t.Errorf("%v: %v, %v", packed, v, err)
		}
	}
}
