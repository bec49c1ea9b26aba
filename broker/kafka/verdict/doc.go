// Package verdict decides what a client of Kafka is told about a partition: which code stands for which
// outcome, which identity a batch is appended under, where an epoch ends. It is pure, so that the node and
// the simulator run the same code. Package kafka says what the codes mean for clients.
package verdict
