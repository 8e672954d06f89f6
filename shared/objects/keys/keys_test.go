package keys_test

import (
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/objects/keys"
)

const id = "f_0123456789abcdefghijklmnop"

func TestParseStaging(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key, id string
		ok      bool
	}{
		{keys.Staging(id), id, true},
		{"staging/no file id/at all", "no file id/at all", true},
		{"staging/", "", false},
		{"staging", "", false},
		{"files/" + id, "", false},
		{"/staging/" + id, "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		got, ok := keys.ParseStaging(tt.key)
		if ok != tt.ok || ok && got != tt.id {
			t.Errorf("ParseStaging(%q) = %q, %v", tt.key, got, ok)
		}
	}
}

func TestSealed(t *testing.T) {
	t.Parallel()
	tests := []struct{ version, key string }{
		{`"9b2cf535f27731c974343645a3985328"`, "files/" + id + "/9b2cf535f27731c974343645a3985328"},
		{"9b2cf535f27731c974343645a3985328", "files/" + id + "/9b2cf535f27731c974343645a3985328"},
		{`"9b2cf535f27731c974343645a3985328-12"`, "files/" + id + "/9b2cf535f27731c974343645a3985328-12"},
		{`""`, ""},
		{`W/"9b2c"`, ""},
		{"../9b2c", ""},
		{"a b", ""},
		{"a%2f", ""},
		{strings.Repeat("a", 129), ""},
	}
	for _, tt := range tests {
		got, err := keys.Sealed(id, tt.version)
		if got != tt.key || (err == nil) != (tt.key != "") {
			t.Errorf("Sealed(%q) = %q, %v, want %q", tt.version, got, err, tt.key)
		}
		if tt.key != "" && !keys.IsSealed(got) {
			t.Errorf("IsSealed(%q) is false", got)
		}
	}
	for _, key := range []string{"", "files/", "files/a", "files//b", "files/a/b/c", "files/a/", keys.Staging(id), "x/files/a/b"} {
		if keys.IsSealed(key) {
			t.Errorf("IsSealed(%q) is true", key)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]struct {
		id         string
		staged, ok bool
	}{
		"staging/" + id:           {id, true, true},
		"staging/a b":             {"a b", true, true},
		"files/" + id + "/9b2c":   {id, false, true},
		"files/" + id:             {"", false, true},
		"files/" + id + "/9b2c/x": {"", false, true},
		"files/a b/c":             {"", false, true},
		"staging/":                {},
		"files/":                  {},
		"files":                   {},
		"":                        {},
		"logs/files/x":            {},
		"/files/x":                {},
	} {
		got, staged, ok := keys.Parse(key)
		if got != want.id || staged != want.staged || ok != want.ok {
			t.Errorf("Parse(%q) = %q, %v, %v", key, got, staged, ok)
		}
	}
}

func TestSealedPrefix(t *testing.T) {
	t.Parallel()
	got, err := keys.SealedPrefix(id)
	key, _ := keys.Sealed(id, "9b2c")
	if err != nil || got+"9b2c" != key {
		t.Errorf("SealedPrefix(%q) = %q, %v", id, got, err)
	}
	for _, bad := range []string{"", "a/", "..", "a b"} {
		if got, err := keys.SealedPrefix(bad); err == nil {
			t.Errorf("SealedPrefix(%q) = %q", bad, got)
		}
	}
}
