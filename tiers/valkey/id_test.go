package valkey_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"varve/tiers/valkey"
)

func TestIDText(t *testing.T) {
	for text, id := range map[string]valkey.ID{
		"0-0":   {},
		"1-0":   {Generation: 1},
		"12-34": {Generation: 12, End: 34},
		"18446744073709551615-9223372036854775807": valkey.IDMax,
	} {
		if got := id.String(); got != text {
			t.Errorf("%+v is written %q, want %q", id, got, text)
		}
		if got, ok := valkey.ParseID([]byte(text)); !ok || got != id {
			t.Errorf("%q is read as %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "-", "1", "1-", "-1", "1-2-3", "01-2", "1-02", "+1-2", "1--2", " 1-2", "1-2 ", "a-1", "1-0x1", "0-00",
		"18446744073709551616-0", "1-18446744073709551616", "1-9223372036854775808", "99999999999999999999999-1",
	} {
		if id, ok := valkey.ParseID([]byte(text)); ok {
			t.Errorf("%q is read as %+v", text, id)
		}
	}
}

// The server orders entries by generation, then by offset.
func TestIDOrder(t *testing.T) {
	sorted := []valkey.ID{
		{},
		{Generation: 1},
		{Generation: 1, End: 1},
		{Generation: 1, End: math.MaxInt64},
		{Generation: 2},
		{Generation: math.MaxUint64, End: 3},
		valkey.IDMax,
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if a.Less(b) != (i < j) {
				t.Errorf("%v < %v is %v", a, b, a.Less(b))
			}
		}
	}
}

// A name that would leave its place is refused before any call.
func TestKeyOfAName(t *testing.T) {
	for _, name := range []string{"a", "orders-0", "Orders.v2_x", "a..b", strings.Repeat("n", 249)} {
		if key, err := valkey.Key(name); err != nil || key != "varve:{"+name+"}" {
			t.Errorf("%q has the key %q, %v", name, key, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "../a", "a/b", "/a", `a\b`, "C:x", "a\x00b", "{a}", "a}", "a{", "a b", "a\n", "é", "%2e%2e", "a*", "\xff",
		strings.Repeat("n", 250), strings.Repeat("n", 300), strings.Repeat("n", 1<<20),
	} {
		key, err := valkey.Key(name)
		if !errors.Is(err, valkey.ErrName) || key != "" {
			t.Errorf("%q has the key %q, %v", name, key, err)
		}
		if err != nil && (len(err.Error()) > 250 || strings.ContainsAny(err.Error(), "\n\x00")) {
			t.Errorf("%q: a message of more than a line: %q", name, err)
		}
	}
}
