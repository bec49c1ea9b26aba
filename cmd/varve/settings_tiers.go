package main

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"varve"
	"varve/tiers"
	"varve/tiers/s3"
	"varve/tiers/valkey"
)

// tierSettings are the keys of the tiers beyond the local disk: sections warm and cold of a file.
type tierSettings struct {
	WarmEndpoints               []string  `name:"warm-endpoints" env:"VARVE_WARM_ENDPOINTS" placeholder:"HOST:PORT" help:"Valkey servers that mirror the tail of the log; none: no warm tier."`
	WarmWaitReplicas            int       `name:"warm-wait-replicas" env:"VARVE_WARM_WAIT_REPLICAS" default:"1" help:"So many Valkey replicas confirm an append before it is acked."`
	WarmWaitTimeout             int       `name:"warm-wait-timeout-ms" env:"VARVE_WARM_WAIT_TIMEOUT_MS" default:"100" help:"Milliseconds to wait for them."`
	WarmOnWaitTimeout           string    `name:"warm-on-wait-timeout" env:"VARVE_WARM_ON_WAIT_TIMEOUT" default:"fail" placeholder:"fail|ack" help:"What becomes of the append then."`
	WarmMaxCachedClosedSegments int       `name:"warm-max-cached-closed-segments" env:"VARVE_WARM_MAX_CACHED_CLOSED_SEGMENTS" default:"5" help:"Closed segments that stay in Valkey."`
	WarmMaxBytes                byteLimit `name:"warm-max-bytes" env:"VARVE_WARM_MAX_BYTES" default:"-1" help:"And at most so many bytes of the log; -1: no limit of its own."`

	WarmName                 string `name:"warm-name" env:"VARVE_WARM_NAME" placeholder:"NAME" help:"What the log is called there; default: the last name of its directory. Its key is varve:{NAME}."`
	WarmServers              string `name:"warm-servers" env:"VARVE_WARM_SERVERS" default:"single" placeholder:"single|cluster|sentinel" help:"What the endpoints are: one server, nodes of a cluster, or sentinels."`
	WarmSentinelMaster       string `name:"warm-sentinel-master" env:"VARVE_WARM_SENTINEL_MASTER" placeholder:"NAME" help:"What the sentinels call the primary."`
	WarmUsername             string `name:"warm-username" env:"VARVE_WARM_USERNAME" placeholder:"NAME" help:"User of the server; none: its default user."`
	WarmPasswordFile         string `name:"warm-password-file" env:"VARVE_WARM_PASSWORD_FILE" placeholder:"F" help:"File with the user's password."`
	WarmSentinelUsername     string `name:"warm-sentinel-username" env:"VARVE_WARM_SENTINEL_USERNAME" placeholder:"NAME" help:"User of the sentinels."`
	WarmSentinelPasswordFile string `name:"warm-sentinel-password-file" env:"VARVE_WARM_SENTINEL_PASSWORD_FILE" placeholder:"F" help:"File with that user's password."`
	WarmTLS                  bool   `name:"warm-tls" env:"VARVE_WARM_TLS" default:"false" help:"Talk TLS to the servers."`
	WarmTLSCAFile            string `name:"warm-tls-ca-file" env:"VARVE_WARM_TLS_CA_FILE" placeholder:"F" help:"Certificates to trust, in PEM; default: the system's."`
	WarmTLSCertFile          string `name:"warm-tls-cert-file" env:"VARVE_WARM_TLS_CERT_FILE" placeholder:"F" help:"Certificate to show, in PEM."`
	WarmTLSKeyFile           string `name:"warm-tls-key-file" env:"VARVE_WARM_TLS_KEY_FILE" placeholder:"F" help:"And its key."`

	ColdURL          string   `name:"cold-url" env:"VARVE_COLD_URL" placeholder:"URL" help:"Where sealed segments are kept: s3://bucket/prefix or file:///dir; none: no cold tier."`
	ColdName         string   `name:"cold-name" env:"VARVE_COLD_NAME" placeholder:"NAME" help:"What the log is called below that; default: the last name of its directory."`
	ColdEndpoint     string   `name:"cold-endpoint" env:"VARVE_COLD_ENDPOINT" placeholder:"URL" help:"Address of an S3 server other than Amazon's."`
	ColdRegion       string   `name:"cold-region" env:"VARVE_COLD_REGION" placeholder:"NAME" help:"Region of the bucket."`
	ColdPathStyle    string   `name:"cold-path-style" env:"VARVE_COLD_PATH_STYLE" default:"auto" placeholder:"auto|always|never" help:"Whether the bucket is named in the path of a request (http://server/bucket) and not in its host; auto: if there is a cold-endpoint."`
	ColdSSE          string   `name:"cold-sse" env:"VARVE_COLD_SSE" default:"none" placeholder:"none|AES256|aws:kms|aws:kms:dsse" help:"Encryption that the server is asked for with each object; none: what the bucket does by itself."`
	ColdSSEKMSKey    string   `name:"cold-sse-kms-key" env:"VARVE_COLD_SSE_KMS_KEY" placeholder:"ID" help:"Key of aws:kms; none: the account's own."`
	ColdPartBytes    byteSize `name:"cold-part-bytes" env:"VARVE_COLD_PART_BYTES" default:"8388608" help:"Objects are written in parts of this size."`
	ColdMaxUploadAge ageLimit `name:"cold-max-upload-age" env:"VARVE_COLD_MAX_UPLOAD_AGE" default:"-1" help:"An active segment of this age is rolled and uploaded; -1: when it is full or segment-age old."`
}

// Values of warm.on_wait_timeout.
const (
	waitFail = "fail" // the append ends in ErrUnknown
	waitAck  = "ack"  // it is acked, although the warm tier may lack it
)

// Values of warm.servers.
const (
	serversSingle   = "single"
	serversCluster  = "cluster"
	serversSentinel = "sentinel"
)

// Values of cold.path_style, and of cold.sse what is no name of S3's.
const (
	styleAuto   = "auto"
	styleAlways = "always"
	styleNever  = "never"
	sseNone     = "none"
)

// Limits of parts are S3's: 5 MiB to 5 GiB, at most 10,000 an object.
const (
	partBytesMax = 5 << 30
	partsMax     = 10_000
)

func (s *tierSettings) warm() bool { return len(s.WarmEndpoints) > 0 }
func (s *tierSettings) cold() bool { return s.ColdURL != "" }

// Validate refuses values and combinations that cannot work, as settings.Validate does.
func (s *tierSettings) Validate() error {
	for i, e := range s.WarmEndpoints {
		if host, port, err := net.SplitHostPort(e); err != nil || host == "" || !validPort(port) {
			return unfit("warm.endpoints", strconv.Quote(e), "host:port")
		}
		for _, other := range s.WarmEndpoints[:i] {
			if e == other {
				return unfit("warm.endpoints", strconv.Quote(e), "each server once")
			}
		}
	}
	if err := s.validateServers(); err != nil {
		return err
	}
	switch {
	case s.WarmWaitReplicas < 0 || s.WarmWaitReplicas > 100:
		return unfit("warm.wait_replicas", s.WarmWaitReplicas, "0 to 100")
	case s.WarmWaitTimeout < 1 || s.WarmWaitTimeout > 3_600_000:
		return unfit("warm.wait_timeout_ms", s.WarmWaitTimeout, "1 ms to an hour") // 0 would be "for ever" to WAIT
	case s.WarmOnWaitTimeout != waitFail && s.WarmOnWaitTimeout != waitAck:
		return unfit("warm.on_wait_timeout", strconv.Quote(s.WarmOnWaitTimeout), "fail or ack")
	case s.WarmMaxCachedClosedSegments < 0 || s.WarmMaxCachedClosedSegments > 1_000_000:
		return unfit("warm.max_cached_closed_segments", s.WarmMaxCachedClosedSegments, "0 to 1000000")
	}
	return s.validateCold()
}

// validateServers refuses what says nothing, or two things, about the servers of the warm tier.
func (s *tierSettings) validateServers() error {
	alone := func(key, value string) error { // set, and nothing is there that it is about
		return unfit(key, strconv.Quote(value), "it to be unset without warm.endpoints")
	}
	for _, k := range []struct{ key, value string }{
		{"warm.name", s.WarmName},
		{"warm.sentinel_master", s.WarmSentinelMaster},
		{"warm.username", s.WarmUsername},
		{"warm.password_file", s.WarmPasswordFile},
		{"warm.tls_ca_file", s.WarmTLSCAFile},
		{"warm.tls_cert_file", s.WarmTLSCertFile},
	} {
		if k.value != "" && !s.warm() {
			return alone(k.key, k.value)
		}
	}
	if _, err := valkey.Key(s.WarmName); s.WarmName != "" && err != nil {
		return unfit("warm.name", fmt.Sprintf("%.80q", s.WarmName), "up to 249 letters, digits, '.', '_' and '-', and no name of a folder")
	}
	switch {
	case s.WarmServers != serversSingle && s.WarmServers != serversCluster && s.WarmServers != serversSentinel:
		return unfit("warm.servers", strconv.Quote(s.WarmServers), "single, cluster or sentinel")
	case s.WarmServers != serversSingle && !s.warm():
		return unfit("warm.servers", strconv.Quote(s.WarmServers), "single without warm.endpoints")
	case len(s.WarmEndpoints) > 1 && s.WarmServers == serversSingle:
		return unfit("warm.endpoints", fmt.Sprintf("%d of them", len(s.WarmEndpoints)), "one server, or several where warm.servers is cluster or sentinel")
	case (s.WarmSentinelMaster != "") != (s.WarmServers == serversSentinel):
		return unfit("warm.sentinel_master", strconv.Quote(s.WarmSentinelMaster), "what sentinels call the primary, where warm.servers is sentinel, and elsewhere it to be unset")
	case s.WarmSentinelUsername != "" && s.WarmSentinelMaster == "":
		return unfit("warm.sentinel_username", strconv.Quote(s.WarmSentinelUsername), "it to be unset without warm.sentinel_master")
	case s.WarmSentinelPasswordFile != "" && s.WarmSentinelMaster == "":
		return unfit("warm.sentinel_password_file", strconv.Quote(s.WarmSentinelPasswordFile), "it to be unset without warm.sentinel_master")
	case s.WarmTLS && !s.warm():
		return unfit("warm.tls", true, "false without warm.endpoints")
	case s.WarmTLSCAFile != "" && !s.WarmTLS:
		return unfit("warm.tls_ca_file", strconv.Quote(s.WarmTLSCAFile), "it to be unset without warm.tls")
	case s.WarmTLSCertFile != "" && !s.WarmTLS:
		return unfit("warm.tls_cert_file", strconv.Quote(s.WarmTLSCertFile), "it to be unset without warm.tls")
	case (s.WarmTLSCertFile == "") != (s.WarmTLSKeyFile == ""):
		return unfit("warm.tls_key_file", strconv.Quote(s.WarmTLSKeyFile), "it to be set with warm.tls_cert_file, and without that unset")
	}
	return nil
}

func (s *tierSettings) validateCold() error {
	var scheme string
	if s.cold() {
		var err error
		if scheme, err = coldScheme(s.ColdURL); err != nil {
			return err
		}
	}
	switch {
	case s.ColdName != "" && !s.cold():
		return unfit("cold.name", strconv.Quote(s.ColdName), "it to be unset without a cold.url")
	case s.ColdName != "" && tiers.CheckKey(s.ColdName) != nil:
		return unfit("cold.name", fmt.Sprintf("%.80q", s.ColdName), "plain names with one / between two")
	case s.ColdEndpoint != "" && scheme != "s3":
		return unfit("cold.endpoint", strconv.Quote(s.ColdEndpoint), "it to be unset without a cold.url of s3://")
	case s.ColdEndpoint != "" && !validEndpoint(s.ColdEndpoint):
		return unfit("cold.endpoint", strconv.Quote(withoutPassword(s.ColdEndpoint)), "http:// or https:// with a host, and nothing behind it")
	case s.ColdRegion != "" && scheme != "s3":
		return unfit("cold.region", strconv.Quote(s.ColdRegion), "it to be unset without a cold.url of s3://")
	case s.ColdPathStyle != styleAuto && s.ColdPathStyle != styleAlways && s.ColdPathStyle != styleNever:
		return unfit("cold.path_style", strconv.Quote(s.ColdPathStyle), "auto, always or never")
	case s.ColdPathStyle != styleAuto && scheme != "s3":
		return unfit("cold.path_style", strconv.Quote(s.ColdPathStyle), "auto without a cold.url of s3://")
	case s.ColdSSE != sseNone && !s3.KnowsSSE(s.ColdSSE):
		return unfit("cold.sse", strconv.Quote(s.ColdSSE), "none, AES256, aws:kms or aws:kms:dsse")
	case s.ColdSSE != sseNone && scheme != "s3":
		return unfit("cold.sse", strconv.Quote(s.ColdSSE), "none without a cold.url of s3://")
	case s.ColdSSEKMSKey != "" && !strings.HasPrefix(s.ColdSSE, "aws:kms"):
		return unfit("cold.sse_kms_key", strconv.Quote(s.ColdSSEKMSKey), "it to be unset without a cold.sse of aws:kms")
	case s.ColdPartBytes < tiers.PartBytesMin || s.ColdPartBytes > partBytesMax:
		return unfit("cold.part_bytes", int64(s.ColdPartBytes), "5 MiB to 5 GiB")
	case s.ColdMaxUploadAge != varve.Unlimited && s.ColdMaxUploadAge < ageLimit(time.Second):
		return unfit("cold.max_upload_age", time.Duration(s.ColdMaxUploadAge), "1 s or more, or -1 for unlimited") // each upload costs requests
	}
	return nil
}

// fits checks what depends on the size of a segment.
func (s *tierSettings) fits(segmentBytes int64) error {
	if s.cold() && segmentBytes/int64(s.ColdPartBytes) >= partsMax {
		return unfit("cold.part_bytes", int64(s.ColdPartBytes), fmt.Sprintf("more than segment_bytes (%d) / %d", segmentBytes, partsMax))
	}
	return nil
}

// coldScheme checks the place of the cold tier, and returns s3 or file.
func coldScheme(text string) (string, error) {
	bad := func(want string) (string, error) {
		return "", unfit("cold.url", strconv.Quote(withoutPassword(text)), want)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "s3" && u.Scheme != "file":
		return bad("s3://bucket/prefix or file:///directory")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return bad("a place without user, password, ? and #; credentials come from the environment of the SDK")
	case u.Scheme == "file" && (u.Host != "" || path.Clean(u.Path) != u.Path || u.Path == "/" || strings.ContainsRune(u.Path, 0)):
		return bad("file:// and an absolute path, such as file:///srv/varve")
	case u.Scheme == "file":
		return u.Scheme, nil
	case tiers.CheckName(u.Host) != nil || strings.Contains(u.Host, ":"):
		return bad("s3:// and the name of a bucket")
	case tiers.CheckPrefix(strings.TrimPrefix(u.Path, "/")) != nil:
		return bad("a prefix of plain names with one / between two")
	}
	return u.Scheme, nil
}

func validEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && (u.Port() == "" || validPort(u.Port())) &&
		(u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// withoutPassword returns an address as an error may show it.
func withoutPassword(text string) string {
	if u, err := url.Parse(text); err == nil {
		if u.User == nil {
			return text
		}
		return u.Redacted()
	}
	if _, rest, ok := strings.Cut(text, "@"); ok {
		return "...@" + rest
	}
	return text
}
