package source_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/predict/source"
)

func TestNamesGetTheirNumbersInEveryStyle(t *testing.T) {
	for _, c := range []struct {
		text, name string
		want       float64
	}{
		{"NUM_EPOCHS = 11", "epochs", 11},
		{"lr = 1e-03", "lr", 1e-3},
		{"ap.add_argument('--batch-size', type=int, default=128)", "batchsize", 128},
		{"cfg = dict(batch_size=32, epochs=20)", "epochs", 20},
		{"#define ITERATIONS 10000", "iterations", 10000},
		{"const BATCH: i64 = 128;", "batch", 128},
		{"integer, parameter :: n = 256, nsteps = 1000", "nsteps", 1000},
		{"srun ./solver --grid 192 --steps 5000", "grid", 192},
		{"#SBATCH --ntasks=32", "ntasks", 32},
		{"# model with about 12.7 million parameters", "parameters", 12.7},
		{"int width = 8; float x = 2.5f;", "x", 2.5},
		{"epochs = 1_000", "epochs", 1000},
		{"use_amp = True", "useamp", math.E},
		{"use_amp = False", "useamp", 1},
		{`{"epochs": 30}`, "epochs", 30},
	} {
		got := source.Read(c.text).Numbers[c.name]
		if got != c.want {
			t.Errorf("%q: %s is %g, want %g (all: %v)", c.text, c.name, got, c.want,
				source.Read(c.text).Numbers)
		}
	}
}

func TestNumbersOfExpressionsBelongToNoName(t *testing.T) {
	got := source.Read("y = f(x) * 3\nz[7] = 1 + 4").Numbers
	if _, ok := got["y"]; ok {
		t.Errorf("numbers %v, want none for y", got)
	}
}

func TestNamesFallIntoWords(t *testing.T) {
	words := source.Read("trainLoader batch_size nn.BatchNorm2d").Words
	for _, w := range []string{"train", "loader", "batch", "size", "nn", "norm2d"} {
		if words[w] == 0 {
			t.Errorf("words %v, want %s", words, w)
		}
	}
	if words["batch"] != 2 {
		t.Errorf("batch occurs %d times, want 2", words["batch"])
	}
}

func TestStagesInOneFileAreCounted(t *testing.T) {
	one := "epochs = 5\nbatch = 32\n"
	if n := source.Read(one + one).Reassigned; n != 0 {
		t.Errorf("the same numbers: %d, want 0", n)
	}
	if n := source.Read(one + "epochs = 7\nbatch = 64\n").Reassigned; n != 2 {
		t.Errorf("other numbers: %d, want 2", n)
	}
}

func TestTwiceTheEpochsMovesOneCoordinateByTheLogarithm(t *testing.T) {
	a, b := source.Embed(source.Read("epochs = 10")), source.Embed(source.Read("EPOCHS = 20"))
	moved := 0
	for i := range a {
		if d := b[i] - a[i]; d != 0 {
			moved++
			if i < source.Style || math.Abs(d-math.Ln2) > 1e-12 {
				t.Errorf("coordinate %d moved by %g, want one of numbers by ln 2", i, d)
			}
		}
	}
	if moved != 1 || len(a) != source.Dimensions {
		t.Errorf("%d of %d coordinates moved, want 1 of %d", moved, len(a), source.Dimensions)
	}
}

func FuzzEmbed(f *testing.F) {
	for _, seed := range []string{
		"", "x = 1", "--a=1e999", "\x00\xff", "\"unclosed", strings.Repeat("(", 50),
		"a-", "0x1f", "1e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, v := range source.Embed(source.Read(text)) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("coordinate %d of %q is %g", i, text, v)
			}
		}
	})
}

func TestTheEmbeddingOfATextIsTheSameToTheLastBitEachTime(t *testing.T) {
	var text strings.Builder
	for i := range 3000 {
		letter := string(rune('a' + i%26))
		fmt.Fprintf(&text, "%s%sx = %d\n", strings.Repeat(letter, 2+i%7), string(rune('a'+i/26%26)), 3+i)
	}
	read := source.Read(text.String())
	want := source.Embed(read)
	for range 20 {
		if got := source.Embed(read); !slices.Equal(got, want) {
			t.Fatal("two embeddings of one text differ")
		}
	}
}
