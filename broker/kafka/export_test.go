package kafka

import "time"

// SetListOffsetsTimeout sets how long the searches of a request may take, and returns how long they might.
func SetListOffsetsTimeout(d time.Duration) (was time.Duration) {
	was, listOffsetsTimeout = listOffsetsTimeout, d
	return was
}
