package report

import (
	"bytes"
	"time"

	"varve/model/porcupine"
)

// Calls are drawn up to callsMax; a picture of more is none. The search for an order gets pictureTime.
const (
	callsMax    = 2000
	pictureTime = 10 * time.Second
)

// Picture returns porcupine's page about the history, "" if it has no calls or too many.
func (s *Story) Picture() (string, error) {
	if n := len(s.History.Calls); n == 0 || n > callsMax {
		return "", nil
	}
	var b bytes.Buffer
	_, err := porcupine.Visualize(&b, &s.History, pictureTime)
	return b.String(), err
}
