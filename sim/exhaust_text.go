package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String returns the text of a case: CONFIG:OP,OP@CRASH@CRASH, a crash being CALL, CALL.SECTORS,
// CALL.after or rest, then =kill or =IMAGE.
func (c *Case) String() string {
	text := SmallConfigs[c.Config] + ":"
	for i := range c.Len {
		if i > 0 {
			text += ","
		}
		text += c.Ops[i].String()
	}
	for i := range c.Depth {
		if i == 1 && c.More {
			text += "," + c.Then.String()
		}
		text += "@" + c.Crashes[i].String()
	}
	if c.Depth == 1 && c.More {
		text += "," + c.Then.String()
	}
	return text
}

// String returns the text of a crash.
func (p CrashPoint) String() string {
	text := "rest"
	switch {
	case p.Call == 0:
	case p.Part == partAfter:
		text = fmt.Sprintf("%d.after", p.Call)
	case p.Part > 0:
		text = fmt.Sprintf("%d.%d", p.Call, p.Part)
	default:
		text = fmt.Sprint(p.Call)
	}
	if p.Kill {
		return text + "=kill"
	}
	return fmt.Sprintf("%s=%#x", text, p.Image)
}

// Bounds of what ParseCase takes, far above what there is.
const (
	callMax = 1 << 20
	partMax = 1 << 12
)

// ParseCase is the inverse of String. An error names the place.
func ParseCase(text string) (c Case, err error) {
	words := strings.Split(text, "@")
	config, ops, _ := strings.Cut(words[0], ":")
	if c.Config = slices.Index(SmallConfigs[:], config); c.Config < 0 {
		return Case{}, caseError("configuration", strings.Join(SmallConfigs[:], ", "), config)
	}
	for _, word := range strings.Split(ops, ",") {
		if ops == "" {
			break
		}
		if c.Len == SmallOpsMax {
			return Case{}, caseError("operations", fmt.Sprintf("at most %d", SmallOpsMax), ops)
		}
		o := slices.Index(smallOpNames[:], word)
		if o < 0 {
			return Case{}, caseError(fmt.Sprintf("operation %d", c.Len+1), strings.Join(smallOpNames[:], ", "), word)
		}
		c.Ops[c.Len] = SmallOp(o)
		c.Len++
	}
	if c.Depth = len(words) - 1; c.Depth > len(c.Crashes) {
		return Case{}, caseError("crashes", fmt.Sprintf("at most %d", len(c.Crashes)), fmt.Sprint(c.Depth))
	}
	for i, word := range words[1:] {
		var ok bool
		if i == 0 {
			var then string
			if word, then, c.More = strings.Cut(word, ","); c.More {
				o := slices.Index(smallOpNames[:], then)
				if o < 0 {
					return Case{}, caseError("operation after crash 1", strings.Join(smallOpNames[:], ", "), then)
				}
				c.Then = SmallOp(o)
			}
		}
		if c.Crashes[i], ok = parseCrash(word); !ok {
			return Case{}, caseError(fmt.Sprintf("crash %d", i+1),
				"CALL, CALL.SECTORS, CALL.after or rest, then =kill or =IMAGE", word)
		}
	}
	return c, nil
}

func caseError(place, want, found string) error {
	return fmt.Errorf("sim: %s of the case: expected %s; found %.80q; copy the whole case from the line that named it", place, want, found)
}

func parseCrash(word string) (p CrashPoint, ok bool) {
	where, how, ok := strings.Cut(word, "=")
	if !ok {
		return p, false
	}
	if p.Kill = how == "kill"; !p.Kill {
		var err error
		if p.Image, err = strconv.ParseUint(how, 0, 64); err != nil {
			return p, false
		}
	}
	if where == "rest" {
		return p, true
	}
	call, part, inside := strings.Cut(where, ".")
	n, err := strconv.ParseUint(call, 10, 63)
	if err != nil || n == 0 || n > callMax {
		return p, false
	}
	p.Call = int(n)
	switch {
	case !inside:
		return p, true
	case part == "after":
		p.Part = partAfter
		return p, true
	}
	n, err = strconv.ParseUint(part, 10, 63)
	p.Part = int64(n)
	return p, err == nil && n > 0 && n <= partMax
}
