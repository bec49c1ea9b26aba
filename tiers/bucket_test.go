package tiers

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckKey(t *testing.T) {
	long := strings.Repeat("n", NameBytesMax)
	for _, key := range []string{
		"a", "manifest.json", "orders/0/segments/00000000000000000000.seg", "...", "a/..b/c..", "ünïcode/a b+c%41",
		long, strings.Repeat(long+"/", 3) + long,
	} {
		if err := CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/..", `a\b`, "a\x00b", "a\nb", "a\x7f", "a\xffb",
		long + "n", "x/" + long + "n", strings.Repeat(long+"/", 4) + "n",
	} {
		if err := CheckKey(key); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestCheckPrefix(t *testing.T) {
	for _, prefix := range []string{"", "a", "a/", "a/b"} {
		if err := CheckPrefix(prefix); err != nil {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	for _, prefix := range []string{"/", "a//", "../", "..", "a/../"} {
		if err := CheckPrefix(prefix); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}
