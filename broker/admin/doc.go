// Package admin is the address of a node for those who look after it, not for its clients:
//
//	/metrics       Prometheus's text, each name with the prefix varve_
//	/healthz       200 as long as the process answers
//	/readyz        200 while clients are served; 503 while logs are opened, with how far that is, and while the node stops
//	/debug/pprof/  profiles, if Options.Pprof
//
// It can be asked before the node is open. Nothing that it serves changes anything.
package admin
