package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker"
)

// describeConfigs lists the whole configuration of topics, with where each value comes from. A
// resource is described once, however often it is asked for.
func (c *conn) describeConfigs(_ context.Context, req *kmsg.DescribeConfigsRequest, resp *kmsg.DescribeConfigsResponse) {
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	seen := make(map[resource]bool)
	for i := range req.Resources {
		asked := &req.Resources[i]
		if key := (resource{asked.ResourceType, asked.ResourceName}); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = asked.ResourceType, asked.ResourceName
		entries, why, err := c.configOf(asked.ResourceType, asked.ResourceName)
		out.ErrorCode, out.ErrorMessage = why, text(err)
		for j := range entries {
			if e := &entries[j]; wanted(asked.ConfigNames, e.Name) {
				out.Configs = append(out.Configs, configEntry(req, e))
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
}

// configOf returns the configuration of a resource.
func (c *conn) configOf(kind kmsg.ConfigResourceType, name string) ([]broker.ConfigEntry, code, error) {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		t, err := c.s.broker.Topic(name)
		if err != nil {
			return nil, topicCode(err), err
		}
		return c.s.broker.ConfigEntries(t), none, nil
	case kmsg.ConfigResourceTypeBroker:
		if name == "" || name == strconv.Itoa(int(c.s.o.NodeID)) {
			return nil, none, nil // a node's settings are its operator's, who finds them in the node's own words
		}
		return nil, invalidRequest, fmt.Errorf("expected node %d, found %q", c.s.o.NodeID, name)
	}
	return nil, invalidRequest, fmt.Errorf("expected a topic or a broker, found resource type %d", kind)
}

// wanted reports whether a name is asked for: nil asks for all.
func wanted(names []string, name string) bool {
	if names == nil {
		return true
	}
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// sourceOf says where a value comes from.
func sourceOf(e *broker.ConfigEntry) kmsg.ConfigSource {
	if e.Set {
		return kmsg.ConfigSourceDynamicTopicConfig
	}
	return kmsg.ConfigSourceDefaultConfig
}

func configEntry(req *kmsg.DescribeConfigsRequest, e *broker.ConfigEntry) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	value := e.Value
	out.Name, out.Value, out.ReadOnly = e.Name, &value, e.ReadOnly
	out.Source, out.IsDefault = sourceOf(e), !e.Set
	out.ConfigType = kmsg.ConfigType(e.Type)
	if req.IncludeDocumentation {
		out.Documentation = kmsg.StringPtr(e.Doc)
	}
	if !req.IncludeSynonyms {
		return out
	}
	if e.Set {
		out.ConfigSynonyms = append(out.ConfigSynonyms, kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{
			Name: e.Name, Value: &value, Source: kmsg.ConfigSourceDynamicTopicConfig,
		})
	}
	out.ConfigSynonyms = append(out.ConfigSynonyms, kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{
		Name: e.Name, Value: kmsg.StringPtr(e.Default), Source: kmsg.ConfigSourceDefaultConfig,
	})
	return out
}

// alterConfigs gives topics another configuration, in place of all that they set.
func (c *conn) alterConfigs(ctx context.Context, req *kmsg.AlterConfigsRequest, resp *kmsg.AlterConfigsResponse) {
	ctx, cancel := c.context(ctx, changeMillis)
	defer cancel()
	for i := range req.Resources {
		asked := &req.Resources[i]
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = asked.ResourceType, asked.ResourceName
		out.ErrorCode, out.ErrorMessage = c.configure(ctx, asked.ResourceType, asked.ResourceName, func(config map[string]string) {
			clear(config)
			for _, kv := range asked.Configs {
				if kv.Value != nil {
					config[kv.Name] = *kv.Value
				}
			}
		}, req.ValidateOnly)
		resp.Resources = append(resp.Resources, out)
	}
}

// incrementalAlterConfigs changes single values of topics' configurations.
func (c *conn) incrementalAlterConfigs(ctx context.Context, req *kmsg.IncrementalAlterConfigsRequest, resp *kmsg.IncrementalAlterConfigsResponse) {
	ctx, cancel := c.context(ctx, changeMillis)
	defer cancel()
	for i := range req.Resources {
		asked := &req.Resources[i]
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = asked.ResourceType, asked.ResourceName
		if err := alterable(asked.Configs); err != nil {
			out.ErrorCode, out.ErrorMessage = invalidRequest, text(err)
		} else {
			out.ErrorCode, out.ErrorMessage = c.configure(ctx, asked.ResourceType, asked.ResourceName, func(config map[string]string) {
				alter(config, asked.Configs)
			}, req.ValidateOnly)
		}
		resp.Resources = append(resp.Resources, out)
	}
}

// alterable says which operation is none that a topic's values know.
func alterable(ops []kmsg.IncrementalAlterConfigsRequestResourceConfig) error {
	for _, kv := range ops {
		if kv.Op != kmsg.IncrementalAlterConfigOpDelete && (kv.Op != kmsg.IncrementalAlterConfigOpSet || kv.Value == nil) {
			return fmt.Errorf("expected to set or delete %s, which is no list; found operation %d", kv.Name, kv.Op)
		}
	}
	return nil
}

// alter carries operations out that are alterable.
func alter(config map[string]string, ops []kmsg.IncrementalAlterConfigsRequestResourceConfig) {
	for _, kv := range ops {
		if kv.Op == kmsg.IncrementalAlterConfigOpSet {
			config[kv.Name] = *kv.Value
		} else {
			delete(config, kv.Name)
		}
	}
}

func (c *conn) configure(ctx context.Context, kind kmsg.ConfigResourceType, name string, change func(map[string]string), validateOnly bool) (code, *string) {
	if kind != kmsg.ConfigResourceTypeTopic {
		return invalidRequest, kmsg.StringPtr("only topics are configured while the node runs")
	}
	err := c.s.broker.Configure(ctx, name, change, validateOnly)
	return topicCode(err), text(err)
}
