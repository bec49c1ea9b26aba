package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"varve/broker/kafka"
)

// labelRequest names a request of Kafka's protocol; there are as many as the node knows.
const labelRequest = "request"

// kafkaMeasures are the metrics of the server that Kafka's clients talk to.
var kafkaMeasures = []struct {
	name  string
	help  string
	kind  prometheus.ValueType
	value func(s *kafka.Stats) float64
}{
	{"connections", "Clients that are connected.", gauge, func(s *kafka.Stats) float64 { return float64(s.Connections) }},
	{"connections_accepted_total", "Connections that were accepted.", counter, func(s *kafka.Stats) float64 { return float64(s.Accepted) }},
	{"connections_turned_away_total", "Connections that were too many.", counter, func(s *kafka.Stats) float64 { return float64(s.TurnedAway) }},
	{"connections_malformed_total", "Connections that were ended because of what came.", counter, func(s *kafka.Stats) float64 { return float64(s.Malformed) }},
	{"refused_batches_total", "Batches of producers that were not appended.", counter, func(s *kafka.Stats) float64 { return float64(s.Refused) }},
	{"produced_bytes_total", "Bytes of batches that were appended.", counter, func(s *kafka.Stats) float64 { return float64(s.Produced) }},
	{"fetched_bytes_total", "Bytes of batches that were sent.", counter, func(s *kafka.Stats) float64 { return float64(s.Fetched) }},
	{"lost_records_passed_total", "Records that a repair declared lost, each time that a client was led past them.", counter, func(s *kafka.Stats) float64 { return float64(s.Lost) }},
	{"request_memory_bytes", "Held by requests.", gauge, func(s *kafka.Stats) float64 { return float64(s.RequestBytes) }},
	{"fetch_memory_bytes", "Held by answers to Fetch.", gauge, func(s *kafka.Stats) float64 { return float64(s.FetchBytes) }},
}

var requestsDesc = desc("requests_total", "Requests of clients, by name.", labelRequest)

// kafkaDescs are those of kafkaMeasures.
var kafkaDescs = func() (all []*prometheus.Desc) {
	for _, m := range kafkaMeasures {
		all = append(all, desc(m.name, m.help))
	}
	return all
}()

// kafkaCollector reads the server when it is asked.
type kafkaCollector struct {
	stats func() kafka.Stats
}

// Describe implements prometheus.Collector.
func (c *kafkaCollector) Describe(to chan<- *prometheus.Desc) {
	to <- requestsDesc
	for _, d := range kafkaDescs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *kafkaCollector) Collect(to chan<- prometheus.Metric) {
	s := c.stats()
	for name, n := range s.Requests {
		to <- prometheus.MustNewConstMetric(requestsDesc, counter, float64(n), name)
	}
	for i, m := range kafkaMeasures {
		to <- prometheus.MustNewConstMetric(kafkaDescs[i], m.kind, m.value(&s))
	}
}
