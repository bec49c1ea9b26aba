package main

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"varve"
)

// key is a row of the table of settings.
type key struct {
	name         string // fsync_mode; warm.endpoints is endpoints in section warm
	env          string
	flag         string
	defaultValue string
	field        []int // in nodeSettings
	kind         reflect.Type
}

// table is the table of settings, read from the struct.
var table = keysOf(reflect.TypeFor[nodeSettings](), nil)

func keysOf(t reflect.Type, at []int) (all []key) {
	for i := range t.NumField() {
		f := t.Field(i)
		field := append(at[:len(at):len(at)], i)
		if f.Anonymous {
			all = append(all, keysOf(f.Type, field)...)
			continue
		}
		k := key{env: f.Tag.Get("env"), flag: f.Tag.Get("name"), defaultValue: f.Tag.Get("default"), field: field, kind: f.Type}
		k.name = strings.ToLower(strings.TrimPrefix(k.env, "VARVE_"))
		if k.flag == "" {
			k.flag = strings.ReplaceAll(k.name, "_", "-")
		}
		for _, section := range sections {
			if rest, ok := strings.CutPrefix(k.name, section+"_"); ok {
				k.name = section + "." + rest
			}
		}
		all = append(all, k)
	}
	return all
}

// sections are mappings in a file.
var sections = []string{"warm", "cold"}

// of returns the value that the key has in s.
func (k *key) of(s *nodeSettings) reflect.Value {
	return reflect.ValueOf(s).Elem().FieldByIndex(k.field)
}

// expected says which values the type of the key has.
func (k *key) expected() string {
	switch k.kind {
	case reflect.TypeFor[fsyncMode]():
		return "on_commit, periodic or none"
	case reflect.TypeFor[byteSize]():
		return "a number of bytes, such as 1048576 or 1MiB"
	case reflect.TypeFor[byteLimit]():
		return "a number of bytes above 0, such as 1048576 or 1MiB, or -1 for unlimited"
	case reflect.TypeFor[ageLimit]():
		return "a duration above 0, such as 24h, or -1 for unlimited"
	case reflect.TypeFor[time.Duration]():
		return "a duration, such as 60s"
	}
	switch k.kind.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "a list of strings"
	}
	return "a string"
}

// duration reports whether the value of the key is a time.
func (k *key) duration() bool {
	return k.kind == reflect.TypeFor[ageLimit]() || k.kind == reflect.TypeFor[time.Duration]()
}

// set gives the key a value in s, from text.
func (k *key) set(s *nodeSettings, text string) error {
	v := k.of(s)
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*p = d
		return err
	case *bool:
		b, err := strconv.ParseBool(text)
		*p = b
		return err
	case *int:
		n, err := strconv.Atoi(text)
		*p = n
		return err
	case *string:
		*p = text
	case *[]string:
		*p = nil
		if text != "" {
			*p = strings.Split(text, ",")
		}
	}
	return nil
}

// text returns the value that the key has in s, as a file has it.
func (k *key) text(s *nodeSettings) string {
	switch v := k.of(s).Interface().(type) {
	case fsyncMode:
		return varve.FsyncMode(v).String()
	case ageLimit:
		if v == -1 {
			return "-1"
		}
		return durationText(time.Duration(v))
	case time.Duration:
		return durationText(v)
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	case string:
		return strconv.Quote(v)
	default:
		return fmt.Sprint(v)
	}
}

// durationText returns a duration without the zeros at its end.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// defaults returns the settings of somebody who sets nothing.
func defaults() *nodeSettings {
	s := &nodeSettings{}
	for i := range table {
		if err := table[i].set(s, table[i].defaultValue); err != nil {
			panic(table[i].name + ": " + err.Error()) // the table itself is wrong
		}
	}
	return s
}

// keyNamed returns the row of a key, nil if there is none.
func keyNamed(name string) *key {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}
