// Package librdkafka tests a node with the library below most Kafka clients, librdkafka, in the newer version
// that confluent-kafka-go brings along (kcat uses an older one). It is a module of its own, because that is
// a C library that nothing else needs.
package librdkafka
