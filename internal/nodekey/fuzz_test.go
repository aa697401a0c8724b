package nodekey_test

import (
	"context"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
)

// Whatever comes as a credential: only what the machine's key signed counts, as it was signed.
func FuzzCredentials(f *testing.F) {
	now := newClock()
	secret, err := nodekey.NewSecret(nodekey.Node, "n1")
	if err != nil {
		f.Fatal(err)
	}
	own, err := nodekey.NewSecret(nodekey.Controller, "head")
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	for _, err := range []error{
		secret.Write(dir + "/node.key"), own.Write(dir + "/own.key"),
		nodekey.WriteTrusted(dir+"/nodes", []nodekey.Public{secret.Public}),
		nodekey.WriteTrusted(dir+"/heads", []nodekey.Public{own.Public}),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	node, err := nodekey.Open(dir+"/node.key", dir+"/heads", now.Now)
	if err != nil {
		f.Fatal(err)
	}
	now.forward(10e9)
	text, err := node.Encode(context.Background(), []byte("payload"), munge.CredentialTerms{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, change := range [][2]string{
		{"n1", "n2"}, {"node", "controller"}, {"EPKEY", "MUNGE"}, {":", "::"}, {"=", ""}, {text[20:24], "0000"},
	} {
		f.Add(strings.Replace(text, change[0], change[1], 1))
	}
	f.Fuzz(func(t *testing.T, said string) {
		head, err := nodekey.Open(dir+"/own.key", dir+"/nodes", now.Now) // another one: it has seen none
		if err != nil {
			t.Fatal(err)
		}
		c, err := head.Decode(context.Background(), said)
		if said != text && (err == nil || c.Node != "") || c.Node != "" && string(c.Payload) != "payload" {
			t.Fatalf("%q counts as %+v, %v", said, c, err)
		}
	})
}

// Whatever a list of keys says: it is refused with its line, or reads the same once it is written again.
func FuzzTrusted(f *testing.F) {
	secret, err := nodekey.NewSecret(nodekey.Node, "n1")
	if err != nil {
		f.Fatal(err)
	}
	line := secret.String()
	for _, text := range []string{
		line, line + "\n" + line, "# x\n\n" + line + "\r\n", line[:9], "", "node n1", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := nodekey.ParseTrusted("keys", text)
		if err != nil {
			if !strings.Contains(err.Error(), "keys:") {
				t.Fatalf("the error names no line: %v", err)
			}
			return
		}
		var again strings.Builder
		for _, p := range list {
			again.WriteString(p.String() + "\n")
		}
		read, err := nodekey.ParseTrusted("keys", again.String())
		if err != nil || len(read) != len(list) {
			t.Fatalf("%q reads as %v, %v", again.String(), read, err)
		}
		for i := range read {
			if read[i].String() != list[i].String() {
				t.Fatalf("%v, %v", read[i], list[i])
			}
		}
	})
}
