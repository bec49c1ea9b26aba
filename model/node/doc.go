// Package node says what correct means for a node with many topics, from what its clients ask and are
// told. It knows nothing of catalogues, directories and logs.
//
//	c.Reset()
//	op := c.Call(node.Request{Kind: node.Create, Name: 1, Partitions: 2}) // before the node sees it
//	c.Return(op, node.Answer{Result: node.Done, Topic: op, Partitions: 2}) // the client is told
//	c.End(op)                                                              // or: it never was, and nothing of op is under way any more
//	if c.Violation() != "" { ... }
//
// # Topics
//
// A topic is named by the Create that made it, so that one of the same name made later is another.
// For each name the Checker keeps every state that the calls so far may have led to: a call takes
// effect at one instant between Call and Return, or at none before End if nobody was told. An answer that no
// state allows is a violation. So an acked topic is there, whatever crashed, until a delete of it was
// acked or is in doubt; a deleted one stays away; and every request about a topic by its name, produce and
// fetch too, shows which one it met.
//
// # Records
//
// Each partition of each topic has a reference log: by offset, the record that was acked or read there. A
// record's value names the produce that first carried it. An offset keeps its record, a record has one
// offset, what was acked is owed from then on, and a record that was read is as good as acked. What was
// refused for certain never shows up, nor does anything that was sent to another topic, partition or name.
package node
