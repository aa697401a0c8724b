package gpu

import "testing"

// BenchmarkSim is a call of a simulated GPU, in memory and with its state
// in a folder.
func BenchmarkSim(b *testing.B) {
	for name, dir := range map[string]string{"memory": "", "folder": b.TempDir()} {
		l, err := OpenSim("sim:8", builtinBoards, &SimOptions{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		list, err := l.Sims()
		if err != nil {
			b.Fatal(err)
		}
		g := list[3]
		b.Run("read/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := g.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("lock/"+name, func(b *testing.B) {
			for b.Loop() {
				if err := g.Set(CoreClock, 802); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
