package apigw

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// answerFormat is a function's answer in payload format 2.0.
type answerFormat struct {
	StatusCode        *int                       `json:"statusCode"`
	Headers           map[string]json.RawMessage `json:"headers"`
	MultiValueHeaders map[string][]string        `json:"multiValueHeaders"`
	Cookies           []string                   `json:"cookies"`
	Body              *string                    `json:"body"`
	IsBase64Encoded   bool                       `json:"isBase64Encoded"`
}

// respond turns the function's answer into HTTP. Without a statusCode the whole
// answer is a JSON body of a 200, as the service infers. The error says why an
// answer makes no sense; nothing has been written then.
func respond(w http.ResponseWriter, r *http.Request, payload []byte) error {
	var probe any
	if err := json.Unmarshal(payload, &probe); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	object, isObject := probe.(map[string]any)
	if _, has := object["statusCode"]; !isObject || !has {
		return infer(w, r, payload, probe)
	}
	var a answerFormat
	if err := json.Unmarshal(payload, &a); err != nil {
		return fmt.Errorf("it does not have payload format 2.0: %w", err)
	}
	if a.StatusCode == nil || *a.StatusCode < 200 || *a.StatusCode > 599 {
		return errors.New("its statusCode is not between 200 and 599")
	}
	var body []byte
	if a.Body != nil {
		body = []byte(*a.Body)
		if a.IsBase64Encoded {
			decoded, err := base64.StdEncoding.DecodeString(*a.Body)
			if err != nil {
				return fmt.Errorf("isBase64Encoded is true, but the body is not base64: %w", err)
			}
			body = decoded
		}
	}
	headers := http.Header{}
	for _, name := range sortedNames(a.Headers) {
		value, err := headerValue(a.Headers[name])
		if err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
		headers.Add(name, value)
	}
	for _, name := range sortedNames(a.MultiValueHeaders) {
		headers.Del(name)
		for _, v := range a.MultiValueHeaders[name] {
			headers.Add(name, v)
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade", "Trailer"} {
		headers.Del(name)
	}
	for name, values := range headers {
		w.Header()[name] = values
	}
	for _, c := range a.Cookies {
		w.Header().Add("Set-Cookie", c)
	}
	write(w, r, *a.StatusCode, body)
	return nil
}

// headerValue accepts a string, a number or a boolean.
func headerValue(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var other any
	if err := json.Unmarshal(raw, &other); err != nil {
		return "", err
	}
	switch other.(type) {
	case float64, bool:
		return string(bytes.TrimSpace(raw)), nil
	}
	return "", errors.New("its value is not a string")
}

func infer(w http.ResponseWriter, r *http.Request, payload []byte, value any) error {
	body := payload
	if text, ok := value.(string); ok {
		body = []byte(text)
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, r, http.StatusOK, body)
	return nil
}

func write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	bodyless := status == http.StatusNoContent || status == http.StatusNotModified
	if bodyless {
		h.Del("Content-Length")
	} else {
		if h.Get("Content-Type") == "" && len(body) > 0 {
			h.Set("Content-Type", "text/plain;charset=UTF-8")
		}
		// The body counts, not what the function said; but an answer to HEAD has
		// no body to count, so there its own length stands.
		if r.Method != http.MethodHead || h.Get("Content-Length") == "" {
			h.Set("Content-Length", strconv.Itoa(len(body)))
		}
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead && !bodyless {
		w.Write(body)
	}
}
