package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"varve/tiers"
)

// kinds are the seam's errors of S3's error codes. A code that is missing here, such as InternalError,
// RequestTimeout or BadDigest, leaves the effect unknown or may be tried again.
var kinds = map[string]error{
	"NoSuchKey": tiers.ErrNotFound, "NotFound": tiers.ErrNotFound,
	"NoSuchUpload": tiers.ErrNoUpload,

	"PreconditionFailed":         tiers.ErrPrecondition,
	"ConditionalRequestConflict": tiers.ErrConflict, "OperationAborted": tiers.ErrConflict,

	"AccessDenied": tiers.ErrDenied, "AllAccessDisabled": tiers.ErrDenied, "AccountProblem": tiers.ErrDenied,
	"InvalidAccessKeyId": tiers.ErrDenied, "SignatureDoesNotMatch": tiers.ErrDenied,
	"ExpiredToken": tiers.ErrDenied, "InvalidToken": tiers.ErrDenied, "TokenRefreshRequired": tiers.ErrDenied,
	"RequestTimeTooSkewed": tiers.ErrDenied, "AuthorizationHeaderMalformed": tiers.ErrDenied,
	"InvalidObjectState": tiers.ErrDenied,

	"NoSuchBucket": tiers.ErrInvalid, "InvalidBucketName": tiers.ErrInvalid, "PermanentRedirect": tiers.ErrInvalid,
	"InvalidPart": tiers.ErrInvalid, "InvalidPartOrder": tiers.ErrInvalid, "InvalidPartNumber": tiers.ErrInvalid,
	"EntityTooSmall": tiers.ErrInvalid, "EntityTooLarge": tiers.ErrInvalid, "MalformedXML": tiers.ErrInvalid,
	"InvalidArgument": tiers.ErrInvalid, "InvalidRequest": tiers.ErrInvalid, "KeyTooLongError": tiers.ErrInvalid,
	"MethodNotAllowed": tiers.ErrInvalid, "NotImplemented": tiers.ErrInvalid,

	"SlowDown": tiers.ErrThrottled, "ServiceUnavailable": tiers.ErrThrottled, "Throttling": tiers.ErrThrottled,
	"TooManyRequests": tiers.ErrThrottled, "RequestLimitExceeded": tiers.ErrThrottled,
}

// statuses are the seam's errors where the answer has no code, as that of a HEAD request.
var statuses = map[int]error{
	http.StatusNotFound: tiers.ErrNotFound, http.StatusPreconditionFailed: tiers.ErrPrecondition,
	http.StatusConflict: tiers.ErrConflict, http.StatusUnauthorized: tiers.ErrDenied,
	http.StatusForbidden: tiers.ErrDenied, http.StatusServiceUnavailable: tiers.ErrThrottled,
	http.StatusTooManyRequests: tiers.ErrThrottled,
}

// noIdentity is in the SDK's error, which has no type, where its chain found no credentials: nothing
// was sent.
const noIdentity = "get identity: "

// hints are the next steps of errors that a person must mend.
var hints = map[string]string{
	"NoSuchBucket":                 "create the bucket, or name another",
	"PermanentRedirect":            "set the bucket's own region and endpoint",
	"AuthorizationHeaderMalformed": "set the bucket's own region",
	"RequestTimeTooSkewed":         "set this machine's clock",
	"InvalidAccessKeyId":           "give other credentials",
	"SignatureDoesNotMatch":        "give other credentials",
	"ExpiredToken":                 "renew the credentials",
	"AccessDenied":                 "let these credentials read, write, list and delete below the prefix",
	"InvalidObjectState":           "bring the object back from the archive",
}

// kindOf returns the error of the seam that an error of the SDK stands for, and the next step; nil
// where the effect is unknown.
func kindOf(err error) (hint string, kind error) {
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	switch {
	case err == nil:
	case errors.As(err, &api):
		hint, kind = hints[api.ErrorCode()], kinds[api.ErrorCode()]
		if errors.As(err, &answer) && unnamed(api.ErrorCode(), answer.HTTPStatusCode()) {
			kind = statuses[answer.HTTPStatusCode()]
		}
	case errors.As(err, &answer):
		kind = statuses[answer.HTTPStatusCode()]
	case strings.Contains(err.Error(), noIdentity):
		hint, kind = "give credentials", tiers.ErrDenied
	}
	return hint, kind
}

// unnamed reports whether the SDK made an error code from the status, because the answer had none.
func unnamed(code string, status int) bool {
	return code == "" || code == "UnknownError" || code == http.StatusText(status)
}

// fail names call, object and place; nil stays nil.
func (b *Bucket) fail(op, key string, err error) error {
	if err == nil {
		return nil
	}
	hint, kind := kindOf(err)
	if hint != "" {
		err = fmt.Errorf("%w: %s", err, hint)
	}
	if kind != nil && !errors.Is(err, kind) {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return fmt.Errorf("s3: %s %q in %s: %w", op, key, b.place, err)
}
