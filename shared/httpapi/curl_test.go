package httpapi

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// nasty are names that mean something to a shell, to curl or to both.
var nasty = []string{
	`acme-msa-2026.pdf`, `'; rm -rf ~ #`, `a[1-2].txt`, `{a,b}.txt`, `-`, `@x`, `--upload-file`, `-o`, `.`,
	`$(touch pwned)`, "`touch pwned`", `$HOME`, `${IFS}`, `a;b`, `a&b`, `a|b`, `a>b`, `a<b`, `!!`, `~`, `*`, `?`, `#`,
	`'`, `''`, `'\''`, `"`, `\`, `\\`, `\n`, `a b  c`, ` leading`, `trailing `, `%s%n%00`, `=`, `a=b`, "tab\there",
	`don't (final)*.md`, `rapport-été.md`, `Capture d’écran à 18.28.png`, `合同.pdf`, `😀🏴‍☠️.txt`, "\u202e.txt", strings.Repeat("'", 60),
}

// fakeCurl puts a program on a PATH of its own that prints its name and its arguments, each ended by NUL.
func fakeCurl(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\0' curl \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "curl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runLine runs a command line in a real shell in an empty folder, which must be empty afterwards, and returns what its
// one command got.
func runLine(t *testing.T, path, line string) []string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + path, "HOME=" + dir}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%s\n%v %s", line, err, stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Fatalf("%s\nleft %v behind, %v", line, left, err)
	}
	return strings.Split(strings.TrimSuffix(stdout.String(), "\x00"), "\x00")
}

func TestCurlLineSurvivesTheShell(t *testing.T) {
	t.Parallel()
	path := fakeCurl(t)
	for i, name := range nasty {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			up := files.SignedRequest{
				Method: "PUT", URL: "https://b.s3.test/staging/f_1?X-Amz-Expires=900&X-Amz-Signature='$(id)'",
				Headers:   map[string]string{"Content-Type": "text/plain; charset=\"utf-8\"; x='" + strings.ReplaceAll(name, "\t", " "), "Content-Length": "5", "If-None-Match": "*", "X-Amz-Checksum-Sha256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
				ExpiresAt: time.Unix(0, 0),
			}
			want := []string{
				"curl", "--fail-with-body", "--globoff", "-X", "PUT", "-T", "./" + name,
				"-H", "Content-Type: " + up.Headers["Content-Type"], "-H", "If-None-Match: *", "-H", "X-Amz-Checksum-Sha256: " + up.Headers["X-Amz-Checksum-Sha256"], up.URL,
			}
			o := NewUploadObject("claim://", files.Reservation{File: files.File{Filename: name, State: files.Reserved}, Upload: &up}, 1, time.Unix(0, 0))
			if got := runLine(t, path, *o.Curl); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if strings.ContainsAny(*o.Curl, "\n\r") {
				t.Errorf("more than one line: %q", *o.Curl)
			}
		})
	}
}

// The real curl has to see the name as a file of this folder too, whatever it looks like.
func TestCurlTakesTheFileOfThatName(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl isn't installed")
	}
	for i, name := range nasty {
		if name == "." {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte("the bytes of "+name), 0o600); err != nil {
				t.Fatal(err)
			}
			target := filepath.Join(t.TempDir(), "uploaded")
			line := curlLine(name, files.SignedRequest{Method: "PUT", URL: "file://" + target, Headers: map[string]string{"If-None-Match": "*"}})
			cmd := exec.Command("/bin/sh", "-c", line)
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + filepath.Dir(curl), "HOME=" + dir}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s\n%v\n%s", line, err, out)
			}
			if got, err := os.ReadFile(target); err != nil || string(got) != "the bytes of "+name {
				t.Errorf("uploaded %q, %v", got, err)
			}
		})
	}
}
