package valkey_test

import (
	"errors"
	"strings"
	"testing"

	"varve/tiers/valkey"
)

func TestPipelineHoldsCommands(t *testing.T) {
	var p valkey.Pipeline
	value := []byte("value")
	for range 2 {
		p.Reset(5, 1<<20)
		p.Command("XADD").Key("varve:{a}").ID(valkey.ID{Generation: 3, End: 7}).Text("e").Bytes(value)
		p.Command("WAIT").Number(1).Number(-100)
		var got []string
		for i := range p.Len() {
			args, key := p.Args(i)
			line := strings.TrimSpace(strings.Repeat("key@", key+1))
			for _, a := range args {
				line += " " + string(a)
			}
			got = append(got, line)
		}
		if want := "key@key@ XADD varve:{a} 3-7 e value; WAIT 1 -100"; strings.Join(got, ";") != want {
			t.Fatalf("commands %q, want %q", strings.Join(got, ";"), want)
		}
		if p.Blocking(0) || !p.Blocking(1) {
			t.Error("WAIT alone may take as long as it pleases")
		}
		if args, _ := p.Args(0); &args[4][0] != &value[0] {
			t.Error("the value was copied")
		}
	}
}

// A reply may not pass its bound, whatever it is made of.
func TestPipelineBoundsReplies(t *testing.T) {
	var p valkey.Pipeline
	p.Reset(5, 100)
	p.Command("PING")
	if _, err := p.NewText(60); err != nil {
		t.Fatal(err)
	}
	if _, err := p.NewArray(2); err != nil {
		t.Fatal(err)
	}
	if _, err := p.NewText(9); !errors.Is(err, valkey.ErrReplyTooLarge) {
		t.Fatalf("101 bytes: %v", err)
	}
	p.Reset(5, 100)
	p.Command("PING")
	if _, err := p.NewArray(1 << 40); !errors.Is(err, valkey.ErrReplyTooLarge) {
		t.Fatalf("a huge array: %v", err)
	}
}

// A pipeline that is used again allocates nothing, and what it gave out before it was full stays.
func TestPipelineMemory(t *testing.T) {
	var p valkey.Pipeline
	value := make([]byte, 100)
	use := func() {
		p.Reset(5, 1<<20)
		first, _ := p.NewText(1)
		first[0] = 'x'
		for range 300 {
			p.Command("XADD").Key("varve:{a}").ID(valkey.ID{Generation: 3, End: 7}).Text("e").Bytes(value)
		}
		for i := range p.Answer() {
			e, _ := p.NewArray(2)
			e[0].Text, _ = p.NewText(40)
			p.Replies[i] = valkey.Reply{Kind: valkey.Array, Elems: e}
		}
		if first[0] != 'x' {
			t.Fatal("memory was given out twice")
		}
	}
	use()
	if n := testing.AllocsPerRun(20, use); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
