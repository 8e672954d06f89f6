package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSmoke: every fact that `make smoke` asks for holds on the local stack, but for what only the cloud has.
func TestSmoke(t *testing.T) {
	r := stackFor(t, "")
	smoke := filepath.Join(t.TempDir(), "smoke")
	if out, err := exec.Command("go", "build", "-o", smoke, "../smoke").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	key, err := r.mint("smoke", "smoke", "-role", "owner")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(smoke, "-url", r.url, "-revoke")
	cmd.Env = append(os.Environ(), "KEY="+key)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 not held, 3 not checked") {
		t.Errorf("%v\n%s", err, out)
	}
}
