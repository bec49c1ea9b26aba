package broker

import (
	"fmt"
	"math"
	"syscall"

	"varve"
	"varve/core"
)

const (
	// filesPerPartition is how many descriptors an idle partition has: lock, superblock slots, active segment.
	filesPerPartition = 4
	// filesOfNode is how many are left to the rest: the catalogue, connections, readers, work on files.
	filesOfNode = 1024

	partitionsDefault = 4096
)

// partitionsMax returns how many partitions the node may have: as many as are asked for, if the process
// may open so many files; where nobody asked, as many as it may.
func (o *Options) partitionsMax() (int32, error) {
	files, err := filesMax()
	if err != nil {
		return 0, err
	}
	most := max((files-filesOfNode)/filesPerPartition, 1)
	switch {
	case o.PartitionsMax == 0 && most < partitionsDefault:
		o.Logger.Warn("broker: fewer partitions than usual: the process may open few files", "partitions", most, "files", files)
		return int32(most), nil
	case o.PartitionsMax == 0:
		return partitionsDefault, nil
	case int64(o.PartitionsMax) > most:
		return 0, fmt.Errorf("%w: %d partitions may need %d open files, this process may have %d: raise RLIMIT_NOFILE (ulimit -n), or ask for at most %d partitions",
			ErrBudget, o.PartitionsMax, int64(o.PartitionsMax)*filesPerPartition+filesOfNode, files, most)
	}
	return o.PartitionsMax, nil
}

// filesMax returns how many files the process may open.
func filesMax() (int64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("broker: limit of open files: %w", err)
	}
	return int64(min(limit.Cur, math.MaxInt32)), nil
}

// Connections returns how many connections leave the logs the descriptors that they need: a log that cannot open the
// file that it writes next stops. Each may have a file open for a reader, and as many files are kept open for readers
// beside those.
func (b *Broker) Connections() int {
	b.mu.Lock()
	partitions := int64(len(b.parts))
	b.mu.Unlock()
	return int(max(b.files-partitions*filesPerPartition-filesOfNode/2, filesOfNode/8) / 3)
}

// budget returns what all partitions together may hold in memory that is not written yet.
func (o *Options) budget() *varve.Budget {
	bytes := o.Log.PendingBytes
	if bytes == 0 {
		bytes = max(core.DefaultConfig().PendingBytes, o.Log.MaxBatchBytes)
	}
	return varve.NewBudget(bytes)
}
