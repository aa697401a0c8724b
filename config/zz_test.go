package config
import ("testing";"strings";"time";"fmt")
func BenchmarkDefault(b *testing.B){ for b.Loop() { Default() } }
func BenchmarkLoad(b *testing.B){ s:=DefaultText(); for b.Loop() { Load(strings.NewReader(s),"x",nil) } }
func TestZ(t *testing.T){
 n := maxBytes
 for _, u := range []string{"[[gpu]]\n", "[[cluster.nodes]]\n", "[[model]]\n", "\n", "x=1\n", "[[a.a.a.a.a]]\n"} {
  s := strings.Repeat(u, n/len(u))
  t0 := time.Now(); _, err := Load(strings.NewReader(s), "x", nil)
  m := "nil"; if err!=nil {m=err.Error()}
  fmt.Printf("%q %v %.60q\n", u, time.Since(t0), m)
 }
 for _, s := range []string{"a = ["+strings.Repeat("[],", n/3-10)+"]", "a = ["+strings.Repeat("1,", n/2-10)+"]"} {
  t0 := time.Now(); _, err := Load(strings.NewReader(s), "x", nil)
  fmt.Printf("%v %.60q\n", time.Since(t0), err.Error())
 }
 var b strings.Builder
 for i:=0; b.Len()<n-20; i++ { fmt.Fprintf(&b, "k%d=1\n", i) }
 t0 := time.Now(); _, err := Load(strings.NewReader(b.String()), "x", nil)
 fmt.Printf("keys %v %.60q\n", time.Since(t0), err.Error())
 b.Reset()
 for i:=0; b.Len()<n-400; i++ { b.WriteString(strings.Replace(paperModel,"solver", fmt.Sprintf("s%d",i),1)) }
 t0 = time.Now(); m, err := ReadModels(strings.NewReader(b.String()), "x")
 fmt.Println("models", time.Since(t0), len(m.list), err)
}
