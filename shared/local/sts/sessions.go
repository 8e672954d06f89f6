package sts

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What can be wrong with a pair of credentials.
var (
	ErrUnknownKey   = errors.New("no such access key")
	ErrInvalidToken = errors.New("the session token does not belong to the access key")
	ErrExpiredToken = errors.New("the session has expired")
)

// Session is temporary credentials and what they stand for.
type Session struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	RoleARN         string
	Name            string // RoleSessionName
	Expires         time.Time
}

// Sessions issues temporary credentials and recognises them again. It keeps no
// list: the token carries the session, sealed with a key, and the access key
// and its secret are derived from the token. So sessions, and with them the
// URLs they signed, outlive a restart as long as the key does.
type Sessions struct {
	key []byte
	now func() time.Time
}

// OpenSessions uses the key kept in the file at path, making one when the file
// does not exist. now is the clock that decides about expiry; nil is the
// system's.
func OpenSessions(path string, now func() time.Time) (*Sessions, error) {
	if now == nil {
		now = time.Now
	}
	key, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		key = make([]byte, keyBytes)
		rand.Read(key)
		err = create(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of local sessions: %w", err)
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("the key of local sessions in %s is damaged; delete the file, the URLs signed so far end with it", path)
	}
	return &Sessions{key, now}, nil
}

const keyBytes = 32

// create writes a file that is complete or absent.
func create(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	aside := path + ".new"
	if err := os.WriteFile(aside, data, 0o600); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

// claims is what a token says.
type claims struct {
	Role    string `json:"role"`
	Name    string `json:"name"`
	Expires int64  `json:"exp"` // Unix seconds
	Nonce   string `json:"nonce"`
}

// Issue makes credentials for a role that end after d, in whole seconds.
func (s *Sessions) Issue(roleARN, name string, d time.Duration) Session {
	c := claims{roleARN, name, s.now().Add(d).Unix(), rand.Text()}
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return s.session(c, base64.StdEncoding.EncodeToString(append(s.mac("token", payload), payload...)))
}

// Find returns the session a pair of access key and token belongs to. Its
// errors are ErrUnknownKey, ErrInvalidToken and ErrExpiredToken.
func (s *Sessions) Find(accessKeyID, sessionToken string) (Session, error) {
	if !strings.HasPrefix(accessKeyID, keyPrefix) {
		return Session{}, ErrUnknownKey
	}
	sealed, err := base64.StdEncoding.DecodeString(sessionToken)
	if err != nil || len(sealed) <= sha256.Size {
		return Session{}, ErrInvalidToken
	}
	mac, payload := sealed[:sha256.Size], sealed[sha256.Size:]
	var c claims
	if !hmac.Equal(mac, s.mac("token", payload)) || json.Unmarshal(payload, &c) != nil {
		return Session{}, ErrInvalidToken
	}
	session := s.session(c, sessionToken)
	if !hmac.Equal([]byte(session.AccessKeyID), []byte(accessKeyID)) {
		return Session{}, ErrInvalidToken
	}
	if !s.now().Before(session.Expires) {
		return Session{}, ErrExpiredToken
	}
	return session, nil
}

// keyPrefix marks temporary access keys, as on AWS.
const keyPrefix = "ASIA"

func (s *Sessions) session(c claims, token string) Session {
	id := base32.StdEncoding.EncodeToString(s.mac("id", []byte(token)))
	secret := base64.StdEncoding.EncodeToString(s.mac("secret", []byte(token)))
	return Session{
		AccessKeyID:     keyPrefix + id[:16],
		SecretAccessKey: secret[:40],
		SessionToken:    token,
		RoleARN:         c.Role,
		Name:            c.Name,
		Expires:         time.Unix(c.Expires, 0).UTC(),
	}
}

func (s *Sessions) mac(purpose string, data []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(purpose + "\x00"))
	m.Write(data)
	return m.Sum(nil)
}
