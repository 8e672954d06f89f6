package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// Response is a successful answer: JSON, text, or nothing.
type Response struct {
	Status  int
	Headers map[string]string
	JSON    any    // when set, the body
	Text    string // otherwise the body
}

// OK answers 200 with v as JSON.
func OK(v any) (*Response, error) { return &Response{Status: 200, JSON: v}, nil }

// Created answers 201 with v as JSON.
func Created(v any) (*Response, error) { return &Response{Status: 201, JSON: v}, nil }

// NoContent answers 204.
func NoContent() (*Response, error) { return &Response{Status: 204}, nil }

func (resp *Response) answer(r *Request) (Answer, error) {
	a := Answer{StatusCode: resp.Status, Headers: baseHeaders(r), Body: resp.Text}
	switch {
	case resp.JSON != nil:
		body, err := encode(resp.JSON)
		if err != nil {
			return Answer{}, fmt.Errorf("encoding the answer: %w", err)
		}
		a.Headers["Content-Type"] = "application/json"
		a.Body = body
	case resp.Text != "":
		a.Headers["Content-Type"] = "text/plain; charset=utf-8"
	}
	maps.Copy(a.Headers, resp.Headers)
	if r.Method() == "HEAD" {
		a.Body = ""
	}
	return a, nil
}

// baseHeaders stand on every answer. Answers hold presigned URLs and private facts, so nothing may keep them.
func baseHeaders(r *Request) map[string]string {
	return map[string]string{
		"X-Request-Id":           r.id(),
		"Cache-Control":          "no-store",
		"X-Content-Type-Options": "nosniff",
	}
}

// encode writes JSON without escaping & < >, so that a URL in an answer reads as it is.
func encode(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return b.String(), nil
}
