package segment

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// Golden footer of format version 1, as in docs/format.md, from the same second implementation.
const goldenFooter = "56525649000000000100000049ff5bf5e8030000000000000002000000000000" +
	"0000000000000080" +
	"5652565000000000010000002fe6e1494d000000000000000200010000000000" +
	"0500000005000000e80300000000000000000000000000000000000000000000" +
	"0000000000000000000000000000000000000000000000000000000000000000" +
	"00000000000000000000000000000000" +
	"564152564549445801000000030000000700000003000000e803000000000000" +
	"ed03000000000000000200000000000090020000000000000004000000000000" +
	"010000000000000004002a36fe9c971704002a36fe9c97170065f753fe9c9717" +
	"0c00000000000000503327e1c35170b4010000000100000000000000825b9c70"

func TestGoldenFooter(t *testing.T) {
	want, err := hex.DecodeString(goldenFooter)
	if err != nil {
		t.Fatal(err)
	}
	h := goldenHeaderFields()
	_, i := goldenBatchFields(make([]byte, 32))
	i.ProducerID, i.ProducerEpoch, i.Sequence = 77, 2, 5
	var b FooterBuilder
	b.Reset(&h, 0xb47051c3, 4096)
	b.Add(512, &i, 12, 0xe1273350)
	if got := b.Append(nil); !bytes.Equal(got, want) || b.Pos() != 1024 {
		t.Errorf("footer at %d is\n%x, want\n%x", b.Pos(), got, want)
	}
	file := append(make([]byte, 1024), want...)
	f, _, ok := ReadTrailer(file, int64(len(file)), h.LogID, h.ID, false)
	if !ok || f != b.Summary() {
		t.Errorf("read back: %+v, ok %v", f, ok)
	}
	page, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.ReplaceAll(string(page), "\n", ""), goldenFooter) {
		t.Error("docs/format.md shows another footer")
	}
}
