package main

import (
	"testing"

	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	for _, path := range []string{"/v2/uploads", "/", "/v1/files/", "/v1/files/a/b/c", "/%00"} {
		for _, method := range []string{"GET", "POST", "PATCH", "OPTIONS"} {
			ev := functiontest.Event(t, "not-found", functiontest.Query("any=thing"), func(ev *httpapi.Event) {
				ev.RawPath, ev.RequestContext.HTTP.Path, ev.RequestContext.HTTP.Method = path, path, method
			})
			functiontest.Golden(t, "not-found", ev, f.Serve(t, endpoint(), ev))
		}
	}
	head := functiontest.Event(t, "not-found", func(ev *httpapi.Event) { ev.RequestContext.HTTP.Method = "HEAD" })
	if a := f.Serve(t, endpoint(), head); a.StatusCode != 404 || a.Body != "" {
		t.Errorf("HEAD: got %d %q", a.StatusCode, a.Body)
	}
}
