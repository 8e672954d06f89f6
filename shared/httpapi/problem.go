package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
)

// problem is what an error looks like to a client: RFC 9457 with code, request_id and extension members.
type problem struct {
	status     int
	code       string
	title      string
	detail     string // what to do next
	retryAfter time.Duration
	members    map[string]any
}

// ErrRouteNotFound is the answer of the default route.
var ErrRouteNotFound = errors.New("no such route")

// UnsupportedMediaTypeError refuses a body because of its Content-Type.
type UnsupportedMediaTypeError struct{ Detail string }

func (e *UnsupportedMediaTypeError) Error() string { return "unsupported media type" }

// sentinels is the one table from domain errors to the API. What it lacks, and classify does not know as a type, is
// a 500 with fixed text.
var sentinels = []struct {
	err error
	problem
}{
	{files.ErrFileNotFound, problem{status: 404, code: "file_not_found", title: "File not found", detail: "There is no such file for this key. Check the id or handle."}},
	{access.ErrKeyNotFound, problem{status: 404, code: "key_not_found", title: "Key not found", detail: "There is no such key in this account. List the keys with GET /v1/keys."}},
	{files.ErrClaimNotFound, problem{status: 404, code: "claim_not_found", title: "Claim not found", detail: "There is no such claim for this key. Claim the file with POST /v1/files/{id}/claims."}},
	{ErrRouteNotFound, problem{status: 404, code: "route_not_found", title: "Route not found", detail: "There is no such route. GET /openapi.json lists them all."}},
	{files.ErrEmptyFile, problem{status: 400, code: "empty_file", title: "Empty file", detail: "A file has at least one byte. Send one that isn't empty."}},
	{files.ErrNotUploaded, problem{status: 409, code: "not_uploaded", title: "Not uploaded yet", detail: "No bytes have arrived for this file. Upload them with the presigned request of GET /v1/uploads/{id}, then try again."}},
	{files.ErrClaimRequired, problem{status: 409, code: "claim_required", title: "Claim required", detail: "This file is single use. Claim it with POST /v1/files/{id}/claims to get a link."}},
	{files.ErrNotSingleUse, problem{status: 409, code: "not_single_use", title: "Not single use", detail: "Only files reserved with single_use are claimed. Get a link with POST /v1/files/{id}/links."}},
	{files.ErrLeaseLost, problem{status: 409, code: "lease_lost", title: "Lease lost", detail: "This claim is not the current one of its file. Claim the file again with POST /v1/files/{id}/claims."}},
	{files.ErrUploadExpired, problem{status: 410, code: "upload_expired", title: "Upload expired", detail: "The bytes did not arrive in time. Reserve again with POST /v1/uploads."}},
	{files.ErrFileExpired, problem{status: 410, code: "file_expired", title: "File expired", detail: "The file has reached its end. Ask its owner to upload it again."}},
	{files.ErrFileSpent, problem{status: 410, code: "file_spent", title: "File spent", detail: "This single-use file was used. Ask its owner to upload it again."}},
	{files.ErrFileDeleted, problem{status: 410, code: "file_deleted", title: "File deleted", detail: "The file was deleted. Ask its owner to upload it again."}},
	{files.ErrIdempotencyMismatch, problem{status: 422, code: "idempotency_mismatch", title: "Idempotency-Key reused", detail: "This Idempotency-Key came with a different request in the last 24 hours. Use a new key for a new request."}},
	{files.ErrUnauthorized, problem{status: 401, code: "unauthorized", title: "Unauthorized", detail: "Send a valid key as Authorization: Bearer ck_… and no Mandate header."}},
	{files.ErrForbidden, problem{status: 403, code: "forbidden", title: "Forbidden", detail: "The key lacks a scope that this needs. Ask an administrator of the account for a key with more scopes."}},
	{files.ErrTryAgain, problem{status: 503, code: "try_again", title: "Temporarily unavailable", detail: "The service is busy. Nothing is wrong with the request; send it again.", retryAfter: time.Second}},
}

var internal = problem{status: 500, code: "internal_error", title: "Internal error", detail: "Something went wrong on our side. Try again; if it stays, report the request_id."}

// classify finds the problem that an error is.
func classify(err error) problem {
	var handle *files.HandleError
	if errors.As(err, &handle) {
		p := classify(handle.Err)
		p.members = maps.Clone(p.members)
		if p.members == nil {
			p.members = map[string]any{}
		}
		p.members["handle"] = printable(handle.Handle)
		return p
	}
	if p, ok := classifyType(err); ok {
		return p
	}
	for _, row := range sentinels {
		if errors.Is(err, row.err) {
			return row.problem
		}
	}
	return internal
}

// classifyType knows the errors that carry values of their own.
func classifyType(err error) (problem, bool) {
	var (
		invalid  *files.ValidationError
		tooLarge *files.TooLargeError
		bodySize *requestTooLarge
		limit    *files.LimitError
		claimed  *files.ClaimedError
		rejected *files.RejectedError
		failed   *files.FailedVerificationError
		media    *UnsupportedMediaTypeError
		scope    *scopeError
	)
	switch {
	case errors.As(err, &invalid):
		fields := make([]map[string]string, len(invalid.Fields))
		for i, f := range invalid.Fields {
			fields[i] = map[string]string{"field": f.Field, "message": f.Message}
		}
		return problem{status: 400, code: "invalid_request", title: "Invalid request", detail: "Correct the fields named in errors and send the request again.", members: map[string]any{"errors": fields}}, true
	case errors.As(err, &tooLarge):
		return problem{status: 413, code: "file_too_large", title: "File too large", detail: tooLarge.Detail, members: map[string]any{"max_size_bytes": tooLarge.Max}}, true
	case errors.As(err, &bodySize):
		return problem{status: 413, code: "request_too_large", title: "Request too large", detail: fmt.Sprintf("The JSON body may have at most %d bytes. Send files with POST /v1/uploads, not inside JSON.", bodySize.max), members: map[string]any{"max_request_bytes": bodySize.max}}, true
	case errors.As(err, &limit):
		return limitProblem(limit), true
	case errors.As(err, &claimed):
		return problem{status: 409, code: "file_claimed", title: "File claimed", detail: "Another holder is using this single-use file. Try again when its lease ends.", retryAfter: claimed.RetryAfter}, true
	case errors.As(err, &failed):
		return verificationProblem(failed), true
	case errors.As(err, &rejected):
		return rejectedProblem(rejected), true
	case errors.As(err, &media):
		return problem{status: 415, code: "unsupported_media_type", title: "Unsupported media type", detail: media.Detail}, true
	case errors.As(err, &scope):
		p := classify(files.ErrForbidden)
		p.detail = fmt.Sprintf("This needs a key with the scope %s.", scope.scope)
		p.members = map[string]any{"scope": string(scope.scope)}
		return p, true
	}
	return problem{}, false
}

func limitProblem(e *files.LimitError) problem {
	p := problem{retryAfter: e.RetryAfter}
	switch e.Kind {
	case files.LimitBytes:
		p.status, p.code, p.title = 403, "storage_quota_exceeded", "Storage quota exceeded"
		p.detail = fmt.Sprintf("The account may hold %d live bytes. Delete files or wait until some expire.", e.Max)
		if e.Bytes > e.Max {
			p.detail = fmt.Sprintf("The account may hold %d live bytes, and this file alone counts %d. It can't be stored: send a smaller one, or declare size_bytes if it is smaller.", e.Max, e.Bytes)
		}
		p.members = map[string]any{"max_live_bytes": e.Max}
	case files.LimitReservations:
		p.status, p.code, p.title = 429, "too_many_reservations", "Too many reservations"
		p.detail = fmt.Sprintf("The actor may hold %d open reservations. Finish or delete some, or wait until they expire.", e.Max)
		p.members = map[string]any{"max_reservations": e.Max}
	case files.LimitUnsized:
		p.status, p.code, p.title = 429, "too_many_reservations", "Too many reservations"
		p.detail = fmt.Sprintf("Reservations without size_bytes count as the largest file, and one actor may hold %d bytes that way. Declare size_bytes, or finish or delete some.", e.Max)
		p.members = map[string]any{"max_unsized_bytes": e.Max}
	}
	return p
}

// verificationProblem is a failed check in the answer to the request that asked for it.
func verificationProblem(e *files.FailedVerificationError) problem {
	p := problem{status: 422, code: e.Reason.Code, title: "Verification failed", detail: e.Reason.Detail}
	switch e.Reason.Code {
	case files.CodeTypeMismatch:
		p.members = map[string]any{"declared": e.Reason.Declared, "detected": nullable(e.Reason.Detected)}
	case files.CodeFileTooLarge:
		p.members = map[string]any{"max_size_bytes": e.MaxFileBytes}
	}
	return p
}

func rejectedProblem(e *files.RejectedError) problem {
	p := problem{status: 410, code: "file_rejected", title: "File rejected", detail: "The uploaded bytes failed verification. Reserve again and upload the right ones."}
	if reason := e.File.Reason; reason != nil {
		p.members = map[string]any{"reason": reasonObject(reason)}
	}
	return p
}

// problemAnswer builds the answer for err.
func problemAnswer(r *Request, err error) Answer {
	p := classify(err)
	doc := map[string]any{
		"type":       "urn:claimcheck:problem:" + p.code,
		"title":      p.title,
		"status":     p.status,
		"detail":     p.detail,
		"code":       p.code,
		"request_id": r.id(),
	}
	maps.Copy(doc, p.members)
	a := Answer{StatusCode: p.status, Headers: baseHeaders(r)}
	a.Headers["Content-Type"] = "application/problem+json"
	if p.status == 401 {
		a.Headers["WWW-Authenticate"] = "Bearer"
	}
	if p.retryAfter > 0 {
		a.Headers["Retry-After"] = strconv.FormatInt(int64((p.retryAfter+time.Second-1)/time.Second), 10)
	}
	if r.Method() != "HEAD" {
		body, err := encode(doc)
		if err != nil {
			body = `{"type":"about:blank","status":500}` // unreachable: members are plain values
		}
		a.Body = body
	}
	return a
}
