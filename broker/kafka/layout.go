package kafka

// layout says how the body of a request lies in its bytes, in the versions that have tags: b, h, i, l
// and u stand for 1, 2, 4, 8 and 16 bytes, s for a string, y for bytes, t for tags, and parentheses
// for an array. The codec believes the number of tags, and counts up to 4 billion of them where none
// are; so a body is measured before it is decoded.
type layout struct {
	from int16 // first version
	text string
}

// layouts are those of a request, by version; a later one counts from its version on.
func layouts(key int16) []layout {
	switch key {
	case keyProduce:
		return []layout{{9, "shi(s(iyt)t)t"}, {13, "shi(u(iyt)t)t"}}
	case keyFetch:
		return []layout{
			{12, "iiiibii(s(iililit)t)(s(i)t)st"},
			{13, "iiiibii(u(iililit)t)(u(i)t)st"},
			{15, "iiibii(u(iililit)t)(u(i)t)st"},
		}
	case 2: // ListOffsets
		return []layout{{6, "ib(s(iilt)t)t"}, {10, "ib(s(iilt)t)it"}}
	case 3: // Metadata
		return []layout{{9, "(st)bbbt"}, {10, "(ust)bbbt"}, {11, "(ust)bbt"}}
	case 10: // FindCoordinator
		return []layout{{3, "sbt"}, {4, "b(s)t"}}
	case keyAPIVersions:
		return []layout{{3, "sst"}}
	case 19: // CreateTopics
		return []layout{{5, "(sih(i(i)t)(sst)t)ibt"}}
	case 20: // DeleteTopics
		return []layout{{4, "(s)it"}, {6, "(sut)it"}}
	case 21: // DeleteRecords
		return []layout{{2, "(s(ilt)t)it"}}
	case 22: // InitProducerID
		return []layout{{2, "sit"}, {3, "silht"}}
	case 23: // OffsetForLeaderEpoch
		return []layout{{4, "i(s(iiit)t)t"}}
	case 32: // DescribeConfigs
		return []layout{{4, "(bs(s)t)bbt"}}
	case 33: // AlterConfigs
		return []layout{{2, "(bs(sst)t)bt"}}
	case 37: // CreatePartitions
		return []layout{{2, "(si((i)t)t)ibt"}}
	case 44: // IncrementalAlterConfigs
		return []layout{{1, "(bs(sbst)t)bt"}}
	case 60: // DescribeCluster
		return []layout{{0, "bt"}, {1, "bbt"}, {2, "bbbt"}}
	}
	return nil
}

// measure reports whether a body lies as the layout of its version says. A version without tags is the
// codec's to judge. Bytes behind the end are ignored, as Kafka does: librdkafka 2.11 writes the null array
// of a Metadata request for all topics in four bytes where one is meant, and its booleans come out behind.
func (a *api) measure(version int16, body []byte) bool {
	text := ""
	for _, l := range a.layouts {
		if version >= l.from {
			text = l.text
		}
	}
	if text == "" {
		return version < a.flexible
	}
	d := decoder{b: body, flexible: true}
	d.walk(text)
	return !d.bad
}

// walk passes over what a text describes, up to a parenthesis that closes.
func (d *decoder) walk(text string) {
	for text != "" && text[0] != ')' {
		c := text[0]
		text = text[1:]
		switch c {
		case '(':
			inner := text
			text = skipArray(text)
			for n := d.array(1); n > 0 && !d.bad; n-- {
				d.walk(inner)
			}
		case 't':
			d.tags()
		case 's', 'y':
			d.string()
		default:
			d.take(fixedBytes(c))
		}
	}
}

// skipArray returns what is behind the array that a text begins within.
func skipArray(text string) string {
	depth := 1
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return text[i+1:]
			}
		}
	}
	return ""
}

func fixedBytes(c byte) int {
	switch c {
	case 'b':
		return 1
	case 'h':
		return 2
	case 'i':
		return 4
	case 'l':
		return 8
	}
	return 16
}
