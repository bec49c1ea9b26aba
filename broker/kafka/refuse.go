package kafka

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// refuse answers a whole request with one code. Answers repeat the names and numbers that they are
// about, and have a code beside each of them or one for all; the types of both are alike enough to do
// that for every kind at once. It reports whether there was a place for the code.
func refuse(req kmsg.Request, why code) (kmsg.Response, bool) {
	resp := req.ResponseKind()
	return resp, mirror(reflect.ValueOf(resp).Elem(), reflect.ValueOf(req).Elem(), why)
}

// mirror fills a part of an answer from the part of the request with the same names.
func mirror(to, from reflect.Value, why code) (told bool) {
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if field.Name == "ErrorCode" {
			to.Field(i).SetInt(int64(why))
			told = true
			continue
		}
		have := from.FieldByName(field.Name)
		switch {
		case !have.IsValid() || field.Name == "UnknownTags":
		case have.Type() == field.Type:
			to.Field(i).Set(have)
		case have.Kind() == reflect.Slice && field.Type.Kind() == reflect.Slice && structs(have.Type()) && structs(field.Type):
			list := reflect.MakeSlice(field.Type, have.Len(), have.Len())
			for j := range have.Len() {
				list.Index(j).Addr().MethodByName("Default").Call(nil)
				told = mirror(list.Index(j), have.Index(j), why) || told
			}
			to.Field(i).Set(list)
		}
	}
	return told
}

func structs(slice reflect.Type) bool { return slice.Elem().Kind() == reflect.Struct }
