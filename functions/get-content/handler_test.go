package main

import (
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "get-content", Scope: files.FilesRead,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Reader())
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

func TestNotFound(t *testing.T) {
	t.Parallel()
	suite.NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) {
		f.Ready(t, func(file *files.File) {
			file.Account, file.Actor = account, actor
			if actor == "bob" { // his alone
				file.Purpose = files.UserUpload
			}
		})
	}, "bob")
}

func head(ev *httpapi.Event) {
	ev.RouteKey = "HEAD /v1/files/{id}/content"
	ev.RequestContext.HTTP.Method, ev.RequestContext.RouteKey = "HEAD", ev.RouteKey
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	ready := func(t *testing.T, f *fakes) { f.Ready(t) }
	cases := map[string]functiontest.Case{
		"redirected":         {Setup: ready},
		"ends-with-file":     {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24*time.Hour - time.Minute) }},
		"verified-on-demand": {Setup: func(t *testing.T, f *fakes) { f.Stage(t, f.Reserve(t).ID, functiontest.PDF) }},
		"not-uploaded":       {Setup: func(t *testing.T, f *fakes) { f.Reserve(t) }},
		"claim-required":     {Setup: func(t *testing.T, f *fakes) { f.Ready(t, func(file *files.File) { file.SingleUse = true }) }},
		"upload-expired":     {Setup: func(t *testing.T, f *fakes) { f.Reserve(t); f.Clock.Advance(time.Hour) }},
		"file-rejected":      {Setup: func(t *testing.T, f *fakes) { f.Verified(t, make([]byte, len(functiontest.PDF))) }},
		"file-expired":       {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted":       {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Deleted) }},
		"file-spent":         {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Spent) }},
		"missing":            {},
	}
	all := map[string]functiontest.Case{
		"head-no-key":            functiontest.Change(head, functiontest.Header("authorization", "")),
		"head-unknown-parameter": functiontest.Change(head, functiontest.Query("colour=red")),
	}
	for name, c := range cases {
		all[name] = c
		c.Change = append(c.Change, head)
		c.After = func(t *testing.T, _ *fakes, a httpapi.Answer) {
			if a.Body != "" {
				t.Errorf("the answer to HEAD has a body: %q", a.Body)
			}
		}
		all["head-"+name] = c
	}
	suite.Run(t, all)
}

// The redirect is signed for the method of the request: S3 refuses a HEAD on what was signed for GET.
func TestSignedForItsMethod(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD"} {
		f := functiontest.New(t)
		f.Ready(t)
		signer := &recorder{Signer: f.Links}
		reader := f.Reader()
		reader.Signer = signer
		ev := functiontest.Event(t, "get-content", func(ev *httpapi.Event) { ev.RequestContext.HTTP.Method = method })
		a := f.Serve(t, endpoint(f.Auth(t, files.FilesRead), reader), ev)
		if a.StatusCode != 302 || signer.method != method {
			t.Errorf("%s: got %d, signed for %s", method, a.StatusCode, signer.method)
		}
		if signer.life > files.ContentTTL {
			t.Errorf("%s: signed for %v", method, signer.life)
		}
		if location := a.Headers["Location"]; !strings.HasPrefix(location, "https://content.test/") || strings.Contains(location, functiontest.Secret) {
			t.Errorf("%s: redirected to %s", method, location)
		}
	}
}
