package main

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"claimcheck.dev/claimcheck/shared/functiontest"
)

func TestServesTheDocument(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	a := f.Serve(t, endpoint(), functiontest.Event(t, "openapi"))
	if a.StatusCode != 200 || a.Headers["Content-Type"] != "application/json" || a.IsBase64Encoded {
		t.Errorf("got %d, %v", a.StatusCode, a.Headers)
	}
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) || got["openapi"] != "3.1.0" {
		t.Error("what is served isn't openapi.json")
	}
	if len(a.Body) > 5<<20 {
		t.Errorf("%d bytes: Lambda answers at most 6 MB", len(a.Body))
	}
}
