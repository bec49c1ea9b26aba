package main

import (
	"strings"
	"testing"
)

// TestSE4WhoMayConnect: what can reach a node, and what clients are told, is said or refused by key.
func TestSE4WhoMayConnect(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "",
		"--listen localhost:0 --admin [::1]:0": "",
		"--listen 127.0.0.1:0 --admin 127.0.0.1:0":                        "",
		"--listen 127.9.9.9:1 --admin off":                                "",
		"--listen [::ffff:127.0.0.1]:9":                                   "",
		"--listen 10.0.0.1:9092 --allow-plaintext":                        "",
		"--listen :9092 --allow-plaintext --advertise varve.example:9092": "",
		"--listen 10.0.0.1:9092":                                          "listen: expected an address of this host alone",
		"--listen varve.example:9092":                                     "neither TLS nor a password",
		"--listen :9092 --advertise varve.example:9092":                   "listen: expected",
		"--listen 9092":                           "listen: expected host:port",
		"--listen 127.0.0.1:99999":                "listen: expected host:port",
		"--listen 127.0.0.1:":                     "listen: expected host:port",
		"--listen 127.0.0.1:092":                  "listen: expected host:port",
		"--listen 0.0.0.0:9092 --allow-plaintext": "advertise: expected the address that clients reach",
		"--listen [::]:9092 --allow-plaintext":    "advertise: expected the address that clients reach",
		"--advertise 0.0.0.0:9092":                "advertise: expected host:port",
		"--advertise varve.example":               "advertise: expected host:port",
		"--advertise varve.example:0":             "advertise: expected host:port",
		"--admin 10.0.0.1:9644":                   "admin: expected an address of this host alone",
		"--admin no":                              "admin: expected host:port, or off",
		"--admin 127.0.0.1:9092":                  "admin: expected another address than listen",
		"--admin off --pprof":                     "pprof: expected false where admin is off",
		"--drain-timeout 0s":                      "drain_timeout: expected above 0",
		"--partitions 9 --partitions-max 8":       "partitions: expected 1 to partitions_max (8), found 9; partitions_max is from --partitions-max",
		"--partitions-max 0":                      "partitions_max: expected 1 to",
		"--dir=":                                  "dir: expected a directory",
	} {
		r := varveRun(t, "", append([]string{"config", "explain"}, strings.Fields(args)...)...)
		if (r.code == exitUsage) != (want != "") || !strings.Contains(r.err, want) || strings.Count(r.err, "\n") > 1 {
			t.Errorf("%q: exit %d, %q, want %q", args, r.code, r.err, want)
		}
	}
}

// TestDirIsNoSettingOfALog: a file of settings that names the node's directory does not name a log.
func TestDirIsNoSettingOfALog(t *testing.T) {
	path := configured(t, "dir: "+t.TempDir()+"\n")
	if r := varveRun(t, "x\n", "log", "append", "--config", path); r.code != exitUsage || !strings.Contains(r.err, "--dir") {
		t.Fatalf("%+v", r)
	}
}
