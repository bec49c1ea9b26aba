package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// apiVersions tells a client what it may ask for.
func (c *conn) apiVersions(_ context.Context, req *kmsg.ApiVersionsRequest, resp *kmsg.ApiVersionsResponse) {
	if req.Version >= 3 && (!softwareName(req.ClientSoftwareName) || !softwareName(req.ClientSoftwareVersion)) {
		resp.ErrorCode = invalidRequest
		return
	}
	for _, a := range c.s.apis {
		if a != nil {
			resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: a.key, MinVersion: a.min, MaxVersion: a.max})
		}
	}
}

// softwareName reports whether a client may call itself so: letters, digits, dots and dashes, the
// latter two not at the ends.
func softwareName(s string) bool {
	for i := range len(s) {
		ch := s[i]
		inner := (ch == '.' || ch == '-') && i > 0 && i < len(s)-1
		if !inner && (ch < '0' || ch > '9') && (ch|0x20 < 'a' || ch|0x20 > 'z') {
			return false
		}
	}
	return s != ""
}

// apiVersionsRefused answers a version of ApiVersions that is not known, in version 0: the one request
// that a client has to send without knowing anything.
func apiVersionsRefused() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = unsupportedVersion
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: keyAPIVersions, MinVersion: 0, MaxVersion: apiVersionsMax}}
	return resp
}
