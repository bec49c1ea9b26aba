package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"varve/broker/brokertest"
	"varve/tiers/tiertest"
)

// TestKafkaJS runs kafkajs/main.js, with what npm ci installs there.
func TestKafkaJS(t *testing.T) {
	if _, err := os.Stat("kafkajs/node_modules/kafkajs"); err != nil {
		tiertest.Lacks(t, "npm ci in broker/clients/kafkajs", err)
	}
	n := brokertest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "main.js", n.Addr, fmt.Sprint(number(t, "VARVE_RECORDS", recordsDefault)))
	cmd.Dir = "kafkajs"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
