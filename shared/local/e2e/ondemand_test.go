package e2e

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/local/s3"
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

			// S3 copies and its answer is lost: the next attempt finds the copy there.
			again := in.reserve(t, `{"filename":"a.txt","content_type":"text/plain","size_bytes":6`+single+`}`)
			if got := again.put([]byte("hello\n")); got.status != 200 {
				t.Fatalf("uploading: %s", got)
			}
			lost := 0
			in.S3().SetFaults(func(r s3.Request) s3.Fault {
				if r.Operation != "CopyObject" || lost > 0 {
					return s3.Fault{}
				}
				lost++
				return s3.Fault{Kind: s3.LostReply}
			})
			got := route.ask(again.ID)
			in.S3().SetFaults(nil)
			if got.status != route.status || lost != 1 || in.objects(t, "files/"+again.ID+"/") != 1 {
				t.Errorf("after a lost answer: %s, want %d; %d lost, %d sealed", got, route.status, lost, in.objects(t, "files/"+again.ID+"/"))
			}

			// The file is deleted between the copy and its record: the copy must go too.
			ended := in.reserve(t, `{"filename":"a.txt","content_type":"text/plain","size_bytes":6`+single+`}`)
			if got := ended.put([]byte("hello\n")); got.status != 200 {
				t.Fatalf("uploading: %s", got)
			}
			var deleted atomic.Bool
			in.Dynamo().SetFaults(func(op string, _ []byte) dynamo.Fault {
				if op == "TransactWriteItems" && deleted.CompareAndSwap(false, true) {
					if got := in.call("DELETE", "/v1/files/"+ended.ID, ""); got.status != 204 {
						t.Errorf("deleting: %s", got)
					}
				}
				return dynamo.FaultNone
			})
			got = route.ask(ended.ID)
			in.Dynamo().SetFaults(nil)
			if got.status != 410 || got.code() != "file_deleted" || in.objects(t, "files/"+ended.ID+"/") != 0 {
				t.Errorf("deleted meanwhile: %s, %d sealed", got, in.objects(t, "files/"+ended.ID+"/"))
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

// TestExpiredReservationsMakeRoom: who meets a full account frees what has ended, before any sweep.
func TestExpiredReservationsMakeRoom(t *testing.T) {
	in := open(t, t.TempDir(), silent)
	body := func(seconds int) string {
		return fmt.Sprintf(`{"filename":"a","size_bytes":104857600,"ttl_seconds":%d}`, seconds)
	}
	var last reservation
	for range 20 {
		last = in.reserve(t, body(4))
	}
	if got := in.call("POST", "/v1/uploads", body(60)); got.status == 403 {
		eventually(t, "the end of the reservations", func() bool { return in.call("GET", "/v1/uploads/"+last.ID, "").status == 410 })
	} else if got.status != 201 { // so slow a machine that the first have ended
		t.Errorf("the account is full: %s", got)
	}
	if got := in.call("POST", "/v1/uploads", body(60)); got.status != 201 {
		t.Errorf("after their end: %s", got)
	}
}
