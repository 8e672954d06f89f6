package awsenv

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fingerprints are the SHA-256 of the certificates as amazontrust.com lists them.
var fingerprints = map[string]string{
	"Amazon Root CA 1": "8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e",
	"Amazon Root CA 2": "1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",
	"Amazon Root CA 3": "18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",
	"Amazon Root CA 4": "e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",
	"Starfield Services Root Certificate Authority - G2": "568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5",
}

func TestAmazonRoots(t *testing.T) {
	t.Parallel()
	seen := 0
	for rest := rootsPEM; ; seen++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(cert.Raw)
		if want := fingerprints[cert.Subject.CommonName]; hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is %x, want %s", cert.Subject.CommonName, sum, want)
		}
		if left := time.Until(cert.NotAfter); left < 365*24*time.Hour {
			t.Errorf("%s ends in %v", cert.Subject.CommonName, left)
		}
	}
	if seen != len(fingerprints) {
		t.Errorf("%d roots, want %d", seen, len(fingerprints))
	}
}

// TestRootsFallBack: a server that Amazon doesn't vouch for is left to the system, which doesn't either; that must be
// the last word, and the next connection must not ask Amazon's roots again.
func TestRootsFallBack(t *testing.T) {
	t.Parallel()
	srv := quietTLSServer(t)
	d := &tlsDialer{dialer: &net.Dialer{}, roots: x509.NewCertPool()}
	if conn, err := d.dial(t.Context(), "tcp", srv.Listener.Addr().String()); err == nil {
		conn.Close()
		t.Fatal("an unknown authority was trusted")
	}
	if !d.system.Load() {
		t.Error("the dialer did not turn to the system's roots")
	}

	known := x509.NewCertPool()
	known.AddCert(srv.Certificate())
	d = &tlsDialer{dialer: &net.Dialer{}, roots: known}
	conn, err := d.dial(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if d.system.Load() {
		t.Error("the dialer turned to the system's roots without need")
	}
}

// quietTLSServer doesn't log that its clients distrust it.
func quietTLSServer(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestCABundle(t *testing.T) {
	t.Parallel()
	srv := quietTLSServer(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(path, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	vars := []string{"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}
	for _, tt := range []struct {
		name string
		vars []string
		ok   bool
	}{{"with", append([]string{"AWS_CA_BUNDLE=" + path}, vars...), true}, {"without", vars, false}} {
		env, err := Parse(tt.vars)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := env.HTTPClient(AttemptTimeout).Get(srv.URL)
		if (err == nil) != tt.ok {
			t.Errorf("%s the bundle: %v", tt.name, err)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
}

func TestPauseGrowsToItsBound(t *testing.T) {
	t.Parallel()
	for attempt, bound := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: longPause, 60: longPause} {
		for range 200 {
			d, err := pause(attempt, nil)
			if err != nil || d < 0 || d >= bound {
				t.Fatalf("pause(%d) = %v, %v", attempt, d, err)
			}
		}
	}
}

// hurried is the body of a request as the SDK makes it, once the answer has overtaken the end of sending it.
type hurried struct{ io.Reader }

func (hurried) WriteTo(io.Writer) (int64, error) { return 0, io.EOF }
func (hurried) Close() error                     { return nil }

// TestConnectionOutlivesHurry: a request whose body was closed early leaves its connection to the next one.
func TestConnectionOutlivesHurry(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	env, err := Parse([]string{"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, hurried{strings.NewReader("body")})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 4
		resp, err := env.HTTPClient(AttemptTimeout).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "body" {
			t.Fatalf("%q, %v", body, err)
		}
		resp.Body.Close()
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}
