package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// fileRow is the record of a file whose upload is the stand-ins' object.
func (s *standIns) fileRow(id string) []byte {
	now := time.Now().Unix()
	number := func(n int64) value { return value{"N": strconv.FormatInt(n, 10)} }
	size := int64(len(s.object))
	return row(map[string]value{
		"pk": {"S": id}, "sk": {"S": "file"}, "list_pk": {"S": "files#acme"}, "list_sk": {"S": "001767225600#" + id},
		"account": {"S": "acme"}, "actor": {"S": "ada"}, "state": {"S": "reserved"}, "purpose": {"S": "upload"}, "counted": {"BOOL": true},
		"filename": {"S": "object"}, "content_type": {"S": "application/octet-stream"}, "size": number(size), "charged": number(size),
		"created_at": number(now), "upload_by": number(now + 900), "expires_at": number(now + 86400), "ttl": number(now + 3*86400),
		"write": {"S": "0123456789abcdefghijklmnop"},
	})
}

const etag = `"9b2cf535f27731c974343645a3985328-13"`

// s3 has the object at every key. It can be read, from its beginning on or as a whole, copied and deleted, and is there
// again.
func (s *standIns) s3(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Amz-Request-Id", rand.Text()[:16])
	h.Set("X-Amz-Id-2", rand.Text()+rand.Text()+rand.Text())
	switch {
	case r.Method == http.MethodGet:
		s.count("GetObject")
		h.Set("Etag", etag)
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		body, status := s.object, http.StatusOK
		if last := 0; r.Header.Get("Range") != "" {
			if n, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=0-%d", &last); n != 1 || err != nil || last >= len(s.object) {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			body, status = s.object[:last+1], http.StatusPartialContent
			h.Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", last, len(s.object)))
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		w.Write(body)
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		s.count("CopyObject")
		h.Set("Content-Type", "application/xml")
		fmt.Fprintf(w, copyAnswer, time.Now().UTC().Format(time.RFC3339), etag, s.digest)
	case r.Method == http.MethodDelete:
		s.count("DeleteObject")
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

const copyAnswer = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
	`<CopyObjectResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LastModified>%s</LastModified><ETag>%s</ETag>` +
	`<ChecksumType>FULL_OBJECT</ChecksumType><ChecksumSHA256>%s</ChecksumSHA256></CopyObjectResult>`

// digestOf is the SHA-256 of an object as S3 writes it.
func digestOf(object []byte) string {
	sum := sha256.Sum256(object)
	return base64.StdEncoding.EncodeToString(sum[:])
}
