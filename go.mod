module varve

go 1.26.0

require github.com/anishathalye/porcupine v1.3.1

require (
	github.com/alecthomas/kong v1.17.0
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/valkey-io/valkey-go v1.0.79
	go.uber.org/goleak v1.3.0
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/sys v0.50.0
	pgregory.net/rapid v1.3.0
)

require github.com/yuin/gopher-lua v1.1.1 // indirect
