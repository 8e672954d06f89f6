package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
	"claimcheck.dev/claimcheck/shared/mediatype"
)

func endpoint(auth httpapi.Authenticator, inline *files.Inline, prefix string) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesWrite,
		Query: []string{"filename", "content_type", "single_use", "ttl_seconds"},
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			draft, body, err := decode(r)
			if err != nil {
				return nil, err
			}
			idem, err := r.Idempotency(draft.ContentType)
			if err != nil {
				return nil, err
			}
			f, err := inline.Create(ctx, r.Caller, draft, body, idem)
			if err != nil {
				return nil, err
			}
			return httpapi.Created(httpapi.NewFileObject(prefix, f, inline.Now()))
		},
	}
}

func decode(r *httpapi.Request) (files.Draft, []byte, error) {
	var bad files.ValidationError
	filename, ok := r.Query("filename")
	if !ok {
		filename = "file"
	}
	sent := mediatype.Base(r.Header("content-type"))
	contentType, given := r.Query("content_type")
	switch {
	case given && contentType == "":
		bad.Add("content_type", "must not be empty; leave it out instead")
	case given:
		contentType = plusAsSent(contentType)
	case sent == "" || sent == "application/x-www-form-urlencoded": // curl's default says nothing about the file
		contentType = mediatype.OctetStream
	default:
		contentType = r.Header("content-type")
	}
	draft := files.Draft{
		Filename:    filename,
		ContentType: contentType,
		SingleUse:   r.QueryBool("single_use", &bad),
		TTLSeconds:  r.QueryInt("ttl_seconds", &bad),
	}
	if err := bad.Err(); err != nil {
		return files.Draft{}, nil, err
	}
	if strings.HasPrefix(sent, "multipart/") {
		return files.Draft{}, nil, &httpapi.UnsupportedMediaTypeError{Detail: "A form is not the file itself. Send the bytes as the body, with curl: --data-binary @file -H 'Content-Type: application/octet-stream'."}
	}
	body, exact, err := r.Body()
	if err != nil {
		return files.Draft{}, nil, err
	}
	draft.SHA256, err = checkDigest(r.Header("repr-digest"), sent, body, exact)
	return draft, body, err
}

// plusAsSent undoes for the type and subtype what a query does to a plus sign that isn't percent-encoded, as in
// content_type=image/svg+xml: it means a space, which neither of them can hold.
func plusAsSent(contentType string) string {
	base, parameters, found := strings.Cut(contentType, ";")
	base = strings.ReplaceAll(strings.Trim(base, " "), " ", "+")
	if !found {
		return base
	}
	return base + ";" + parameters
}

// checkDigest compares the body with the sha-256 of a Repr-Digest header (RFC 9530) and returns that digest as hex, ""
// when there is none. HTTP APIs hand bodies of text types over as UTF-8 strings, which damages any other encoding, so
// those are taken only when the digest proves them whole.
func checkDigest(header, sent string, body []byte, exact bool) (string, error) {
	want, err := parseReprDigest(header)
	if err != nil {
		return "", err
	}
	if (!exact && len(body) > 0) || textLike(sent) {
		sum := sha256.Sum256(body)
		if want != hex.EncodeToString(sum[:]) {
			return "", &httpapi.UnsupportedMediaTypeError{Detail: "Bodies of text types may be changed on their way. Send the bytes as application/octet-stream with ?content_type= naming their type, or add a matching Repr-Digest: sha-256=:…: header."}
		}
	}
	return want, nil
}

// textLike reports whether the gateway treats bodies of type t as text.
func textLike(t string) bool {
	if strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml") {
		return true
	}
	switch t {
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return false
}

// parseReprDigest returns the sha-256 member of a Repr-Digest header as hex; other algorithms are passed over. As in any
// dictionary of RFC 8941 the last of repeated members counts, and padding may be missing. Spaces around the equals sign
// are no dictionary, but still a digest that somebody wants compared.
func parseReprDigest(header string) (digest string, err error) {
	bad := files.Invalid("Repr-Digest", "must be sha-256=:<base64 of the digest>:")
	for member := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(member), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "sha-256") {
			continue
		}
		value, _, _ = strings.Cut(value, ";") // parameters carry nothing here
		inner, isBytes := strings.CutPrefix(strings.TrimSpace(value), ":")
		inner, closed := strings.CutSuffix(inner, ":")
		raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(inner, "="))
		if !ok || !isBytes || !closed || err != nil || len(raw) != sha256.Size {
			return "", bad
		}
		digest = hex.EncodeToString(raw)
	}
	return digest, nil
}
