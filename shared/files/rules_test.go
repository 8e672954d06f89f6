package files_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// TestDraftFields: what is wrong with a request is reported by field, all at once.
func TestDraftFields(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint(i)] = ""
	}
	for _, c := range []struct {
		name   string
		change func(*files.Draft)
		bad    []string
	}{
		{"nothing wrong", func(*files.Draft) {}, nil},
		{"no name", func(d *files.Draft) { d.Filename = "" }, []string{"filename"}},
		{"control character in the name", func(d *files.Draft) { d.Filename = "a\r\nb" }, []string{"filename"}},
		{"no type", func(d *files.Draft) { d.ContentType = "" }, nil},
		{"parameters in the type", func(d *files.Draft) { d.ContentType = "text/plain; charset=utf-8" }, nil},
		{"bad type", func(d *files.Draft) { d.ContentType = "pdf" }, []string{"content_type"}},
		{"two lines of type", func(d *files.Draft) { d.ContentType = "text/plain\r\nX: y" }, []string{"content_type"}},
		{"short digest", func(d *files.Draft) { d.SHA256 = strings.Repeat("a", 63) }, []string{"sha256"}},
		{"one second", func(d *files.Draft) { d.TTLSeconds = size(1) }, nil},
		{"no time", func(d *files.Draft) { d.TTLSeconds = size(0) }, []string{"ttl_seconds"}},
		{"negative time", func(d *files.Draft) { d.TTLSeconds = size(-1) }, []string{"ttl_seconds"}},
		{"a day", func(d *files.Draft) { d.TTLSeconds = size(86400) }, nil},
		{"a second more than a day", func(d *files.Draft) { d.TTLSeconds = size(86401) }, []string{"ttl_seconds"}},
		{"time that overflows", func(d *files.Draft) { d.TTLSeconds = size(1 << 62) }, []string{"ttl_seconds"}},
		{"negative size", func(d *files.Draft) { d.Size = size(-1) }, []string{"size_bytes"}},
		{"16 metadata keys", func(d *files.Draft) { delete(many, "16"); d.Metadata = maps.Clone(many); many["16"] = "" }, nil},
		{"17 metadata keys", func(d *files.Draft) { d.Metadata = many }, []string{"metadata"}},
		{"2048 bytes of metadata", func(d *files.Draft) { d.Metadata = map[string]string{"k": strings.Repeat("v", 2047)} }, nil},
		{"2049 bytes of metadata", func(d *files.Draft) { d.Metadata = map[string]string{"k": strings.Repeat("v", 2048)} }, []string{"metadata"}},
		{"empty metadata key", func(d *files.Draft) { d.Metadata = map[string]string{"": "v"} }, []string{"metadata"}},
		{"metadata that isn't text", func(d *files.Draft) { d.Metadata = map[string]string{"k": "\xff"} }, []string{"metadata"}},
		{"several", func(d *files.Draft) { d.Filename, d.ContentType, d.Size, d.TTLSeconds = "..", "?", size(-5), size(0) },
			[]string{"filename", "content_type", "ttl_seconds", "size_bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.uploads.Reserve(w.ctx, alice, draft(pdf, c.change), nil)
			if c.bad == nil {
				wantErr(t, err, nil)
				return
			}
			var got []string
			for _, f := range as[*files.ValidationError](t, err).Fields {
				if f.Message == "" {
					t.Errorf("nothing is said about %s", f.Field)
				}
				got = append(got, f.Field)
			}
			if !slices.Equal(got, c.bad) {
				t.Errorf("bad fields %v, want %v", got, c.bad)
			}
			w.wantNothing()
		})
	}
}

func TestDraftSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reserve := func(n *int64) error {
		_, err := w.uploads.Reserve(w.ctx, alice, files.Draft{Filename: "a", Size: n}, nil)
		return err
	}
	wantErr(t, reserve(size(0)), files.ErrEmptyFile)
	for _, n := range []int64{1001, 9e15, 1<<63 - 1} {
		if e := as[*files.TooLargeError](t, reserve(size(n))); e.Max != 1000 || e.Detail == "" {
			t.Errorf("%d bytes: %+v", n, e)
		}
	}
	w.wantNothing()
	wantErr(t, reserve(size(1000)), nil)
	wantErr(t, reserve(size(1)), nil)
}

// TestLives: which times a reservation gets.
func TestLives(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		ttl               *int64
		single            bool
		uploadBy, expires time.Duration
	}{
		{"default", nil, false, time.Hour, 24 * time.Hour},
		{"single use", nil, true, time.Hour, 2 * time.Hour},
		{"long single use", size(80000), true, time.Hour, 80000 * time.Second},
		{"short", size(90), false, 90 * time.Second, 90 * time.Second},
		{"as long as an upload may take", size(3600), false, time.Hour, time.Hour},
	} {
		w := newWorld(t)
		w.clock.Set(filestest.Now.Add(987 * time.Millisecond))
		r, err := w.uploads.Reserve(w.ctx, alice, draft(pdf, func(d *files.Draft) { d.TTLSeconds, d.SingleUse = c.ttl, c.single }), nil)
		wantErr(t, err, nil)
		f := r.File
		if !f.CreatedAt.Equal(filestest.Now) || f.UploadBy.Sub(f.CreatedAt) != c.uploadBy || f.ExpiresAt.Sub(f.CreatedAt) != c.expires {
			t.Errorf("%s: created %v, upload by %v, expires %v", c.name, f.CreatedAt, f.UploadBy, f.ExpiresAt)
		}
		if f.SingleUse != c.single || f.Purpose != files.Upload || f.State != files.Reserved || f.Account != "acme" || f.Actor != "alice" {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestStatesByTheClock: one second before a deadline, at it and after it.
func TestStatesByTheClock(t *testing.T) {
	t.Parallel()
	reserved := filestest.NewFile()
	ready, claimed := reserved, reserved
	ready.State, ready.VerifiedAt = files.Ready, filestest.Now
	claimed.State, claimed.VerifiedAt, claimed.SingleUse = files.Claimed, filestest.Now, true
	claimed.Claim = files.Claim{ID: "c_1", LeaseUntil: filestest.Now.Add(5 * time.Minute)}
	ended := func(s files.State) files.File {
		f := ready
		f.State, f.EndedAt = s, filestest.Now.Add(time.Minute)
		return f
	}
	for _, c := range []struct {
		name string
		file files.File
		at   time.Duration
		want files.State
		gone error
	}{
		{"reserved", reserved, time.Hour - time.Second, files.Reserved, nil},
		{"reserved", reserved, time.Hour - 1, files.Reserved, nil},
		{"reserved", reserved, time.Hour, files.Expired, files.ErrUploadExpired},
		{"reserved", reserved, 25 * time.Hour, files.Expired, files.ErrUploadExpired},
		{"ready", ready, 24*time.Hour - time.Second, files.Ready, nil},
		{"ready", ready, 24 * time.Hour, files.Expired, files.ErrFileExpired},
		{"ready", ready, 24*time.Hour + time.Second, files.Expired, files.ErrFileExpired},
		{"claimed", claimed, 5*time.Minute - time.Second, files.Claimed, nil},
		{"claimed", claimed, 5 * time.Minute, files.Ready, nil},
		{"claimed", claimed, 24 * time.Hour, files.Expired, files.ErrFileExpired},
		{"spent", ended(files.Spent), 25 * time.Hour, files.Spent, files.ErrFileSpent},
		{"deleted", ended(files.Deleted), 0, files.Deleted, files.ErrFileDeleted},
		{"expired", ended(files.Expired), 0, files.Expired, files.ErrFileExpired},
	} {
		now := filestest.Now.Add(c.at)
		if got := c.file.At(now); got != c.want {
			t.Errorf("%s after %v is %s, want %s", c.name, c.at, got, c.want)
		}
		if got := c.file.Gone(now); got != c.gone {
			t.Errorf("%s after %v: %v, want %v", c.name, c.at, got, c.gone)
		}
	}
	rejected := ended(files.Rejected)
	rejected.Reason = &files.Reason{Code: files.CodeTypeMismatch}
	if e := as[*files.RejectedError](t, rejected.Gone(filestest.Now)); e.File.Reason.Code != files.CodeTypeMismatch {
		t.Errorf("the rejection carries %+v", e.File.Reason)
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	caller := func(account, actor string, scopes ...files.Scope) files.Caller {
		return files.Caller{Account: account, Actor: actor, Scopes: scopes}
	}
	file := func(p files.Purpose) files.File {
		return filestest.NewFile(func(f *files.File) { f.Purpose = p })
	}
	all := files.Capabilities{Visible: true, Download: true, Claim: true, Preview: true, Delete: true, Upload: true}
	for _, c := range []struct {
		name   string
		caller files.Caller
		file   files.File
		want   files.Capabilities
	}{
		{"creator with all scopes", caller("acme", "alice", files.Scopes...), file(files.Upload), all},
		{"creator, read only", caller("acme", "alice", files.FilesRead), file(files.Upload), files.Capabilities{Visible: true, Download: true, Preview: true}},
		{"creator, write only", caller("acme", "alice", files.FilesWrite), file(files.Upload), files.Capabilities{Visible: true, Claim: true, Delete: true, Upload: true}},
		{"creator without scopes", caller("acme", "alice"), file(files.Upload), files.Capabilities{Visible: true}},
		{"colleague", caller("acme", "bob", files.FilesRead, files.FilesWrite), file(files.Upload), files.Capabilities{Visible: true, Download: true, Claim: true, Preview: true}},
		{"colleague who may delete", caller("acme", "bob", files.FilesDelete), file(files.Upload), files.Capabilities{Visible: true, Delete: true}},
		{"same name in another account", caller("other", "alice", files.Scopes...), file(files.Upload), files.Capabilities{}},
		{"creator of a run's upload", caller("acme", "alice", files.Scopes...), file(files.UserUpload), all},
		{"colleague at a run's upload", caller("acme", "bob", files.Scopes...), file(files.UserUpload), files.Capabilities{}},
		{"another account at a run's upload", caller("other", "alice", files.Scopes...), file(files.UserUpload), files.Capabilities{}},
		{"creator of an output", caller("acme", "alice", files.Scopes...), file(files.AgentOutput), files.Capabilities{}},
		{"creator of a fixture", caller("acme", "alice", files.Scopes...), file(files.Fixture), files.Capabilities{}},
		{"no purpose at all", caller("acme", "alice", files.Scopes...), file(""), files.Capabilities{}},
	} {
		if got := files.CapabilitiesOf(c.caller, c.file); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestStateLists(t *testing.T) {
	t.Parallel()
	for _, s := range files.States {
		if s.Live() != slices.Contains(files.LiveStates, s) {
			t.Errorf("%s: Live() is %v", s, s.Live())
		}
	}
}

func TestParseSHA256(t *testing.T) {
	t.Parallel()
	raw := make([]byte, 32)
	for i := range raw {
		raw[i] = byte(200 + 7*i)
	}
	want := hex.EncodeToString(raw)
	std, url := base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw)
	if !strings.ContainsAny(std, "+/") {
		t.Fatal("the digest does not tell the two alphabets apart")
	}
	for _, s := range []string{want, strings.ToUpper(want), std, strings.TrimRight(std, "="), url, strings.TrimRight(url, "=")} {
		if got, ok := files.ParseSHA256(s); !ok || got != want {
			t.Errorf("%q: %q, %v", s, got, ok)
		}
	}
	for _, s := range []string{
		"", want[1:], want + "0", "g" + want[1:], " " + want[1:], std + "=", std[1:], "=" + std[1:], std[:42] + "==",
		std[:20] + "\n" + std[20:43], std[:42] + "\n=", strings.Replace(std, "=", "-", 1), std[:21] + "-" + std[22:], std[:42] + "b", "sha256:" + want,
	} {
		if got, ok := files.ParseSHA256(s); ok {
			t.Errorf("%q is %q, want none", s, got)
		}
	}
}

func FuzzParseSHA256(f *testing.F) {
	f.Add(strings.Repeat("ab", 32))
	f.Add(strings.Repeat("A", 43) + "=")
	f.Add(strings.Repeat("_", 42) + "8")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := files.ParseSHA256(s)
		if !ok {
			if got != "" && len(s) != 64 {
				t.Errorf("%q: %q without success", s, got)
			}
			return
		}
		raw, err := hex.DecodeString(got)
		if err != nil || len(raw) != 32 || got != strings.ToLower(got) {
			t.Fatalf("%q became %q", s, got)
		}
		// One digest has one text in each notation; s must be one of them.
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			if e.EncodeToString(raw) == s {
				return
			}
		}
		if strings.ToLower(s) != got {
			t.Errorf("%q is no notation of %q", s, got)
		}
	})
}

func TestIDs(t *testing.T) {
	t.Parallel()
	seen, letters := map[string]bool{}, map[rune]bool{}
	for range 2000 {
		id := files.NewID()
		if seen[id] || !files.ValidID(id) || len(id) != 28 {
			t.Fatalf("%q is not a fresh id", id)
		}
		seen[id] = true
		for _, r := range id[2:] {
			letters[r] = true
		}
	}
	if len(letters) != 36 {
		t.Errorf("ids are made of %d characters, want 36", len(letters))
	}
	good := files.NewID()
	for _, id := range []string{"", "f_", good[1:], good + "a", good[:27], "F" + good[1:], good[:27] + "A", good[:27] + "é", good[:27] + "\n", "g_" + good[2:]} {
		if files.ValidID(id) {
			t.Errorf("%q is taken for an id", id)
		}
	}
	for _, h := range []string{good, "claim://" + good + " ", " claim://" + good, "claim:" + good, "claim://", "Claim://" + good} {
		if _, ok := files.ParseHandle("claim://", h); ok {
			t.Errorf("%q is taken for a handle", h)
		}
	}
	if id, ok := files.ParseHandle("claim://", "claim://"+good); !ok || id != good {
		t.Errorf("the handle of %q gives %q, %v", good, id, ok)
	}
}

func FuzzParseHandle(f *testing.F) {
	f.Add("claim://", "claim://f_abcdefghijklmnopqrstuvwxyz")
	f.Add("", "f_abcdefghijklmnopqrstuvwxyz")
	f.Add("x", "")
	f.Fuzz(func(t *testing.T, prefix, handle string) {
		if id, ok := files.ParseHandle(prefix, handle); ok && (prefix+id != handle || !files.ValidID(id)) {
			t.Errorf("%q with prefix %q gave %q", handle, prefix, id)
		}
	})
}
