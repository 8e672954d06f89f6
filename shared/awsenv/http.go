package awsenv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// AttemptTimeout bounds one attempt of a call; DynamoDB and STS answer in milliseconds, S3 within a second.
const AttemptTimeout = 2 * time.Second

// newTransport returns the transport of all clients. With nil roots it trusts Amazon's authorities, then the system's.
func newTransport(roots *x509.CertPool) http.RoundTripper {
	dialer := &net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}
	tr := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   AttemptTimeout,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   16, // the widest fan-out is resolve, eight at a time
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}
	if roots == nil {
		d := &tlsDialer{dialer: dialer, roots: amazonRoots()}
		tr.DialTLSContext = d.dial
	}
	return keeping{tr}
}

// keeping sends requests so that their connections can be used again. The SDK closes a request's body as soon as the
// answer is there; its WriteTo then fails, where Read would say that there is no more. The transport asks for more after it
// has sent everything. On an instance with little CPU time the answer may come before that, and the transport would
// take the failure for that of the connection, and drop it: the next request would pay for another handshake.
type keeping struct{ next http.RoundTripper }

func (k keeping) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy: the caller's is not to be changed
		r.Body = onlyRead{r.Body}
	}
	return k.next.RoundTrip(r)
}

// onlyRead hides all other methods of a body.
type onlyRead struct{ io.ReadCloser }

// The authorities above the certificates of AWS services, as published on amazontrust.com: Amazon Root CA 1 to 4 and
// Starfield Services Root Certificate Authority - G2. Reading the whole system pool costs a cold start two
// milliseconds; these five answer nearly always, and tlsDialer falls back to the system when they don't.
//
//go:embed roots.pem
var rootsPEM []byte

func amazonRoots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(rootsPEM)
	return pool
}

func readRoots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
}

// tlsDialer opens TLS connections that the given roots vouch for or, failing that, the system's.
type tlsDialer struct {
	dialer *net.Dialer
	roots  *x509.CertPool
	system atomic.Bool // the roots did not suffice once
}

func (d *tlsDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if !d.system.Load() {
		conn, err := d.handshake(ctx, network, addr, d.roots)
		var unknown x509.UnknownAuthorityError
		if !errors.As(err, &unknown) {
			return conn, err
		}
		d.system.Store(true)
	}
	return d.handshake(ctx, network, addr, nil)
}

func (d *tlsDialer) handshake(ctx context.Context, network, addr string, roots *x509.CertPool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, AttemptTimeout)
	defer cancel()
	tlsd := tls.Dialer{NetDialer: d.dialer, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	conn, err := tlsd.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return conn, nil
}
