package varve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Damage that readers meet again and again is logged once, and counted each time.
func TestDamageIsLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	l, err := Open(t.Context(), dir, Options{MinFreeBytes: -1, NoPreallocate: true, Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := l.Append(t.Context(), Record{Value: make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(dir + "/*.seg")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{1}, 8<<10); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	for range 20 {
		var damage *CorruptError
		for _, err := range l.Records(t.Context(), Position{}) {
			if errors.As(err, &damage) || err != nil {
				break
			}
		}
		if damage == nil {
			t.Fatal("nothing is damaged")
		}
	}
	if met := l.Stats().Corruptions; met != 20 {
		t.Errorf("%d were counted", met)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(lines.String(), "varve: damage"); got != 1 {
		t.Errorf("%d lines", got)
	}

	l = &Log{}
	for i, want := range []bool{true, false} {
		if l.tellDamage(0, "here") != want || l.tellDamage(0, "there") != want {
			t.Errorf("round %d", i)
		}
	}
	if !l.tellDamage(damagePause, "here") || l.tellDamage(damagePause, "here") {
		t.Error("a minute later")
	}
	for i := range 1000 {
		l.tellDamage(time.Hour, fmt.Sprint(i))
	}
	if len(l.damages) != damagesMax {
		t.Errorf("%d are remembered", len(l.damages))
	}
}
