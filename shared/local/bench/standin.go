package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// standIns are servers that answer at once with what every program needs to hear, over TLS and HTTP/1.1 as AWS does,
// each at an address of its own so that each needs a connection of its own.
type standIns struct {
	DynamoDB, STS, S3 string // URLs
	// CA is a file with the authority of the servers, AWS one with those that the functions carry too, Everything one
	// with the system's instead.
	CA, AWS, Everything string
	// Authorities is how many the system has; 0 when none were found.
	Authorities int

	servers []*http.Server
	object  []byte
	digest  string // of the object

	mu     sync.Mutex
	counts map[string]int
	conns  map[net.Conn]bool // open
	pause  time.Duration     // before DynamoDB's answers
	life   time.Duration     // of a session
}

// keySecret is the secret of every key: the stand-in knows all keys, each under its own id.
const keySecret = "benchbenchbenchbenchbenchbenchbenchbench"

// bearer is the Authorization of the key number n.
func bearer(n int) string { return fmt.Sprintf("Bearer ck_%016d_%s", n, keySecret) }

// serveStandIns starts the servers and writes their authorities into dir. S3 serves object at any path.
func serveStandIns(root, dir string, object []byte) (*standIns, error) {
	s := &standIns{counts: map[string]int{}, conns: map[net.Conn]bool{}, object: object, digest: digestOf(object), life: time.Hour}
	ca, certificate, err := authority()
	if err != nil {
		return nil, err
	}
	if err := s.writeAuthorities(root, dir, ca); err != nil {
		return nil, err
	}
	for _, server := range []struct {
		url     *string
		handler http.HandlerFunc
	}{{&s.DynamoDB, s.dynamoDB}, {&s.STS, s.sts}, {&s.S3, s.s3}} {
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		})
		if err != nil {
			s.close()
			return nil, fmt.Errorf("starting the stand-ins: %w", err)
		}
		*server.url = "https://" + listener.Addr().String()
		// Programs are killed when they have been measured, so broken connections are no news.
		h := &http.Server{Handler: server.handler, ErrorLog: log.New(io.Discard, "", 0), ConnState: s.connection}
		s.servers = append(s.servers, h)
		go h.Serve(listener)
	}
	return s, nil
}

func (s *standIns) close() {
	for _, h := range s.servers {
		h.Close()
	}
}

// authority makes a certificate authority, in PEM, and a certificate for 127.0.0.1 with an intermediate between them:
// RSA 2048 as those of AWS's services, with a P-256 key of the server's own, which costs the stand-in the least.
func authority() (ca []byte, _ tls.Certificate, _ error) {
	now := time.Now()
	var chain [][]byte
	var parent *x509.Certificate
	var parentKey crypto.Signer
	for i, name := range []string{"Bench Root", "Bench Intermediate", "127.0.0.1"} {
		var key crypto.Signer
		var err error
		if name == "127.0.0.1" {
			key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		} else {
			key, err = rsa.GenerateKey(rand.Reader, 2048)
		}
		if err != nil {
			return nil, tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 1), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour),
			BasicConstraintsValid: true, IsCA: i < 2, KeyUsage: x509.KeyUsageCertSign,
		}
		if !c.IsCA {
			c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		}
		if parent == nil {
			parent, parentKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
		if err != nil {
			return nil, tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
		}
		if parent, err = x509.ParseCertificate(der); err != nil {
			return nil, tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
		}
		parentKey = key
		chain = append([][]byte{der}, chain...)
	}
	root := chain[len(chain)-1]
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	return ca, tls.Certificate{Certificate: chain[:2], PrivateKey: parentKey}, nil
}

// systemAuthorities are where Linux distributions keep theirs, as Go looks for them.
var systemAuthorities = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

func (s *standIns) writeAuthorities(root, dir string, ca []byte) error {
	carried, err := os.ReadFile(filepath.Join(root, "shared", "awsenv", "roots.pem"))
	if err != nil {
		return fmt.Errorf("reading the authorities that functions carry: %w", err)
	}
	everything := ca
	for _, path := range systemAuthorities {
		if text, err := os.ReadFile(path); err == nil {
			s.Authorities = strings.Count(string(text), "BEGIN CERTIFICATE")
			everything = append(append([]byte{}, text...), ca...)
			break
		}
	}
	s.CA, s.AWS, s.Everything = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "aws.pem"), filepath.Join(dir, "everything.pem")
	if err := errors.Join(
		os.WriteFile(s.CA, ca, 0o644), os.WriteFile(s.AWS, append(carried, ca...), 0o644), os.WriteFile(s.Everything, everything, 0o644),
	); err != nil {
		return fmt.Errorf("writing the authorities of the stand-ins: %w", err)
	}
	return nil
}

func (s *standIns) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// connection keeps account of connections.
func (s *standIns) connection(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.counts["connections"]++
		s.conns[c] = true
	case http.StateClosed:
		delete(s.conns, c)
	}
}

// hangUp closes every connection, as a server does with those that were idle for long.
func (s *standIns) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

func (s *standIns) setPause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = d
}

// setLife sets how long sessions last that are granted from now on.
func (s *standIns) setLife(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = d
}

// taken returns what was asked of the stand-ins since the last call, by operation. The operations on rows of a
// transaction count as Put, Update and so on.
func (s *standIns) taken() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	s.counts = map[string]int{}
	return counts
}

// dynamoDB knows every key and every file, as one whose bytes have just been sent, no other row, and agrees to every
// transaction.
func (s *standIns) dynamoDB(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Key           map[string]map[string]string
		TransactItems []map[string]json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, `{"__type":"com.amazon.coral.service#SerializationException"}`, http.StatusBadRequest)
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.count(operation)
	s.mu.Lock()
	pause := s.pause
	s.mu.Unlock()
	if pause > 0 {
		time.Sleep(pause)
	}
	body := []byte("{}")
	switch operation {
	case "GetItem":
		switch pk := request.Key["pk"]["S"]; {
		case strings.HasPrefix(pk, "key#"):
			body = keyRow(pk)
		case strings.HasPrefix(pk, "f_"):
			body = s.fileRow(pk)
		}
	case "TransactWriteItems":
		for _, row := range request.TransactItems {
			for kind := range row {
				s.count(kind)
			}
		}
	default:
		http.Error(w, `{"__type":"com.amazonaws.dynamodb.v20120810#UnknownOperationException"}`, http.StatusBadRequest)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", rand.Text())
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.Write(body)
}

// value is an attribute's, as DynamoDB writes it: its type and itself.
type value map[string]any

func keyRow(pk string) []byte {
	hash := sha256.Sum256([]byte(keySecret))
	return row(map[string]value{
		"pk": {"S": pk}, "sk": {"S": "key"}, "account": {"S": "acme"}, "actor": {"S": "ada"},
		"scopes":      {"L": []value{{"S": "files:read"}, {"S": "files:write"}}},
		"secret_hash": {"B": hash[:]}, "created_at": {"N": "1767225600"}, "write": {"S": "0123456789abcdefghijklmnop"},
		"list_pk": {"S": "keys#acme"}, "list_sk": {"S": "001767225600#" + strings.TrimPrefix(pk, "key#")},
	})
}

func row(item map[string]value) []byte {
	body, err := json.Marshal(map[string]any{"Item": item})
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return body
}

const sessionAnswer = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><AssumedRoleUser>` +
	`<AssumedRoleId>AROAEXAMPLE:bench</AssumedRoleId><Arn>arn:aws:sts::000000000000:assumed-role/presign/bench</Arn></AssumedRoleUser>` +
	`<Credentials><AccessKeyId>ASIABENCHSESSION0000</AccessKeyId><SecretAccessKey>sessionsecretsessionsecretsessionsecret0</SecretAccessKey>` +
	`<SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult>` +
	`<ResponseMetadata><RequestId>00000000-0000-4000-8000-000000000000</RequestId></ResponseMetadata></AssumeRoleResponse>`

// sessionToken is as long as those of STS.
var sessionToken = strings.Repeat("IQoJb3JpZ2luX2Vj", 60)

func (s *standIns) sts(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "AssumeRole" {
		http.Error(w, "<ErrorResponse><Error><Code>InvalidAction</Code></Error></ErrorResponse>", http.StatusBadRequest)
		return
	}
	s.count("AssumeRole")
	s.mu.Lock()
	end := time.Now().Add(s.life)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, sessionAnswer, sessionToken, end.UTC().Format(time.RFC3339))
}
