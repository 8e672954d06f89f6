package e2e

import (
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/local/stack"
)

// silent is an S3 that tells nobody of new objects: its events may be minutes late.
func silent(o *stack.Options) { o.Notify = func(string) []time.Duration { return nil } }

// TestVerifiedOnDemand asks for files that no event has verified yet, by every route that verifies them itself.
func TestVerifiedOnDemand(t *testing.T) {
	in := open(t, t.TempDir(), silent)
	routes := []struct {
		name   string
		single bool
		status int
		ask    func(id string) reply
	}{
		{"complete", false, 200, func(id string) reply { return in.call("POST", "/v1/uploads/"+id+"/complete", "") }},
		{"link", false, 201, func(id string) reply { return in.call("POST", "/v1/files/"+id+"/links", "") }},
		{"content", false, 302, func(id string) reply { return in.call("GET", "/v1/files/"+id+"/content", "") }},
		{"resolve", false, 200, func(id string) reply { return in.call("POST", "/v1/resolve", `{"input":{"x":"claim://`+id+`"}}`) }},
		{"claim", true, 201, func(id string) reply { return in.call("POST", "/v1/files/"+id+"/claims", `{"holder":"a"}`) }},
	}
	for _, route := range routes {
		t.Run(route.name, func(t *testing.T) {
			single := `,"single_use":false`
			if route.single {
				single = `,"single_use":true`
			}
			good := in.reserve(t, `{"filename":"a.txt","content_type":"text/plain","size_bytes":6`+single+`}`)
			if got := route.ask(good.ID); got.status != 409 || got.code() != "not_uploaded" {
				t.Errorf("before the upload: %s", got)
			}
			if got := good.put([]byte("hello\n")); got.status != 200 {
				t.Fatalf("uploading: %s", got)
			}
			if got := route.ask(good.ID); got.status != route.status {
				t.Errorf("after it: %s, want %d", got, route.status)
			}
			var f file
			in.call("GET", "/v1/files/"+good.ID, "").into(t, &f)
			if f.SHA256 != hexSHA256([]byte("hello\n")) || in.objects(t, "staging/"+good.ID) != 0 || in.objects(t, "files/"+good.ID+"/") != 1 {
				t.Errorf("verified as %+v, %d staged, %d sealed", f, in.objects(t, "staging/"+good.ID), in.objects(t, "files/"+good.ID+"/"))
			}

			bad := in.reserve(t, `{"filename":"a.png","content_type":"image/png","size_bytes":6`+single+`}`)
			if got := bad.put([]byte("hello\n")); got.status != 200 {
				t.Fatalf("uploading: %s", got)
			}
			if got := route.ask(bad.ID); got.status != 410 && got.status != 422 {
				t.Errorf("what is no PNG: %s", got)
			}
			in.call("GET", "/v1/files/"+bad.ID, "").into(t, &f)
			if f.State != "rejected" || in.objects(t, "staging/"+bad.ID) != 0 || in.objects(t, "files/"+bad.ID+"/") != 0 {
				t.Errorf("what is no PNG is %s", f.State)
			}
		})
	}
}

// TestSweepVerifies: bytes that came in time are not lost when neither an event nor a request comes before the
// reservation is over.
func TestSweepVerifies(t *testing.T) {
	in := open(t, t.TempDir(), silent, func(o *stack.Options) {
		// As in expiry.txt, sorted.
		o.Params = map[string]string{"ReservationTTLSeconds": "3", "FileTTLSeconds": "60", "LinkTTLSeconds": "60"}
	})
	r := in.reserve(t, `{"filename":"a.txt","content_type":"text/plain","size_bytes":6}`)
	if got := r.put([]byte("hello\n")); got.status != 200 {
		t.Fatalf("uploading: %s", got)
	}
	eventually(t, "the sweep's verification", func() bool {
		if res, err := in.Trigger(t.Context(), "sweep-expired"); err != nil || res.FunctionError != "" {
			t.Fatalf("sweeping: %s %v", res.Payload, err)
		}
		return in.objects(t, "staging/"+r.ID) == 0
	})
	var f file
	in.call("GET", "/v1/files/"+r.ID, "").into(t, &f)
	if f.State != "ready" || in.read(t, r.ID).status != 200 {
		t.Errorf("the file is %s", f.State)
	}
}
