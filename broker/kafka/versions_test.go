package kafka_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// oneBatch encodes a batch of records with these times and small values.
func oneBatch(codec int16, times ...int64) []byte {
	b := kmsg.NewRecordBatch()
	b.PartitionLeaderEpoch, b.Magic, b.Attributes = -1, 2, codec
	b.LastOffsetDelta, b.NumRecords = int32(len(times)-1), int32(len(times))
	b.FirstTimestamp, b.MaxTimestamp = times[0], times[0]
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = -1, -1, -1
	var records []byte
	for i, ms := range times {
		b.MaxTimestamp = max(b.MaxTimestamp, ms)
		r := kmsg.NewRecord()
		r.TimestampDelta64, r.OffsetDelta = ms-times[0], int32(i)
		r.Key, r.Value = []byte{byte(i)}, []byte("value")
		body := r.AppendTo(nil)[1:] // the length is 0, a byte
		records = binary.AppendVarint(records, int64(len(body)))
		records = append(records, body...)
	}
	b.Records = compress(codec, records)
	return sealBatch(b.AppendTo(nil))
}

// sealBatch makes length and checksum right.
func sealBatch(b []byte) []byte {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func produceRequest(topic string, partition int32, batch []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 5000
	req.Topics = []kmsg.ProduceRequestTopic{{
		Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: batch}},
	}}
	return req
}

func fetchRequest(topic string, offset int64) *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 0, 1, 1<<20
	req.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	return req
}

// sample returns a request of a kind that asks for something.
func sample(key int16) kmsg.Request {
	none := ""
	switch req := kmsg.RequestForKey(key).(type) {
	case *kmsg.ProduceRequest:
		return produceRequest("t", 0, oneBatch(0, 1000))
	case *kmsg.FetchRequest:
		return fetchRequest("t", 0)
	case *kmsg.ListOffsetsRequest:
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = -2
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
		return req
	case *kmsg.MetadataRequest:
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("t")}}
		return req
	case *kmsg.FindCoordinatorRequest:
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g"}
		return req
	case *kmsg.ApiVersionsRequest:
		req.ClientSoftwareName, req.ClientSoftwareVersion = "raw", "v1.0"
		return req
	case *kmsg.CreateTopicsRequest:
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "u", 1, 1
		req.Topics = []kmsg.CreateTopicsRequestTopic{topic}
		return req
	case *kmsg.DeleteTopicsRequest:
		req.TopicNames = []string{"u"}
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("u")}}
		return req
	case *kmsg.DeleteRecordsRequest:
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "t", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{}}}}
		return req
	case *kmsg.InitProducerIDRequest:
		req.TransactionalID = nil
		return req
	case *kmsg.OffsetForLeaderEpochRequest:
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.CurrentLeaderEpoch = -1
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{
			Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p},
		}}
		return req
	case *kmsg.DescribeConfigsRequest:
		req.IncludeDocumentation, req.IncludeSynonyms = true, true
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"}}
		return req
	case *kmsg.AlterConfigsRequest:
		req.ValidateOnly = true
		req.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"}}
		return req
	case *kmsg.IncrementalAlterConfigsRequest:
		req.ValidateOnly = true
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
			ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t",
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: &none, Op: kmsg.IncrementalAlterConfigOpDelete}},
		}}
		return req
	case *kmsg.CreatePartitionsRequest:
		req.ValidateOnly = true
		req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 9}}
		return req
	case *kmsg.DescribeClusterRequest:
		req.EndpointType = 1
		return req
	}
	return nil
}

// refused are the versions that are advertised and not served: see table.
func refused(key, version int16) bool { return key == 0 && version < 3 }

// codes collects every error code of an answer, in the order in which they stand there.
func codes(resp kmsg.Response) (all []int16) {
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		all = append(all, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.FetchResponse:
		all = append(all, r.ErrorCode)
		for _, t := range r.Topics {
			all = append(all, t.Partitions[0].ErrorCode)
		}
	case *kmsg.ListOffsetsResponse:
		all = append(all, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.MetadataResponse:
		all = append(all, r.ErrorCode, r.Topics[0].ErrorCode)
	case *kmsg.FindCoordinatorResponse:
		all = append(all, r.ErrorCode)
		for _, c := range r.Coordinators {
			all = append(all, c.ErrorCode)
		}
	case *kmsg.ApiVersionsResponse:
		all = append(all, r.ErrorCode)
	case *kmsg.CreateTopicsResponse:
		all = append(all, r.Topics[0].ErrorCode)
	case *kmsg.DeleteTopicsResponse:
		all = append(all, r.Topics[0].ErrorCode)
	case *kmsg.DeleteRecordsResponse:
		all = append(all, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.InitProducerIDResponse:
		all = append(all, r.ErrorCode)
	case *kmsg.OffsetForLeaderEpochResponse:
		all = append(all, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.DescribeConfigsResponse:
		all = append(all, r.Resources[0].ErrorCode)
	case *kmsg.AlterConfigsResponse:
		all = append(all, r.Resources[0].ErrorCode)
	case *kmsg.IncrementalAlterConfigsResponse:
		all = append(all, r.Resources[0].ErrorCode)
	case *kmsg.CreatePartitionsResponse:
		all = append(all, r.Topics[0].ErrorCode)
	case *kmsg.DescribeClusterResponse:
		all = append(all, r.ErrorCode)
	}
	return all
}

// Every version that is advertised is served: a real request of it gets an answer that is one of that
// version, to the byte, and no error. One below and one above are refused in their own format where
// there is one, and else end the connection; another is as good as before.
func TestEveryVersion(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.raw()
	r.ask(sample(3), 1) // makes the topic
	versions := r.ask(sample(18), 0).(*kmsg.ApiVersionsResponse)
	if len(versions.ApiKeys) != 16 {
		t.Errorf("%d kinds of request are advertised", len(versions.ApiKeys))
	}
	const unsupported, notAvailable = 35, 15
	for _, k := range versions.ApiKeys {
		name := kmsg.NameForKey(k.ApiKey)
		for v := k.MinVersion; v <= k.MaxVersion; v++ {
			if k.ApiKey == 20 {
				r.ask(sample(19), 5) // for it to delete
			}
			want := int16(0)
			switch {
			case refused(k.ApiKey, v):
				want = unsupported
			case k.ApiKey == 10:
				want = notAvailable
			}
			all := codes(r.ask(sample(k.ApiKey), v))
			told := all[len(all)-1]
			if told != want {
				t.Errorf("%s version %d: codes %d, want %d", name, v, all, want)
			}
			if k.ApiKey == 19 {
				r.ask(sample(20), 5)
			}
		}
		for _, v := range []int16{k.MinVersion - 1, k.MaxVersion + 1} {
			known := v >= 0 && v <= kmsg.RequestForKey(k.ApiKey).MaxVersion()
			if v < 0 || k.ApiKey == 18 {
				continue
			}
			other, req := n.raw(), sample(k.ApiKey)
			other.send(req, v)
			resp, err := other.receive(req, other.id)
			switch {
			case known && k.ApiKey != 10 && (err != nil || !slices.Contains(codes(resp), unsupported)):
				t.Errorf("%s version %d: %+v, %v", name, v, resp, err)
			case !known && !errors.Is(err, io.EOF):
				t.Errorf("%s version %d: %+v, %v; want the end of the connection", name, v, resp, err)
			}
		}
	}
	r.ask(sample(18), 3)
}

// A version of ApiVersions that is not known is answered in version 0, with the versions that are.
func TestApiVersionsUnknown(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	r := n.raw()
	for _, body := range [][]byte{nil, {0, 0xff, 0xff}, {0, 7, 1, 2, 3}} {
		r.id++
		b := binary.BigEndian.AppendUint32(nil, uint32(13+len(body)))
		b = append(b, 0, 18, 0, 99)
		b = binary.BigEndian.AppendUint32(b, uint32(r.id))
		b = append(b, 0, 3, 'r', 'a', 'w')
		if _, err := r.nc.Write(append(b, body...)); err != nil {
			t.Fatal(err)
		}
		resp, err := r.receive(kmsg.NewPtrApiVersionsRequest(), r.id)
		if err != nil {
			t.Fatal(err)
		}
		v := resp.(*kmsg.ApiVersionsResponse)
		if v.ErrorCode != 35 || len(v.ApiKeys) != 1 || v.ApiKeys[0].ApiKey != 18 || v.ApiKeys[0].MaxVersion != 4 {
			t.Errorf("got %+v", v)
		}
	}
	for name, want := range map[string]int16{"raw": 0, "a-b.c": 0, "": 42, "-a": 42, "a.": 42, "a b": 42, "a\x00": 42} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = name, "1"
		if got := r.ask(req, 3).(*kmsg.ApiVersionsResponse).ErrorCode; got != want {
			t.Errorf("client %q: code %d, want %d", name, got, want)
		}
	}
}
