package objects_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/names"
	"claimcheck.dev/claimcheck/shared/objects"
)

const (
	id     = "f_0123456789abcdefghijklmnop"
	bucket = "claimcheck-bucket-1a2b3c"
	token  = "IQoJb3JpZ2luX2VjEHQaCWV1LXdlc3QtMSJ/+/=="
	hexSum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	b64Sum = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
)

var now = time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.UTC)

func provider(end time.Time) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{
			AccessKeyID: "ASIAEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG", SessionToken: token,
			CanExpire: !end.IsZero(), Expires: end,
		}, nil
	})
}

func signer(change func(*objects.SignerOptions)) *objects.Signer {
	o := objects.SignerOptions{Bucket: bucket, Region: "eu-west-1", Credentials: provider(now.Add(time.Hour))}
	if change != nil {
		change(&o)
	}
	return objects.NewSigner(o)
}

func reserved() files.File {
	return files.File{ID: id, State: files.Reserved, Filename: "contract.pdf", ContentType: "application/pdf", Size: 8340112}
}

func ready() files.File {
	f := reserved()
	f.State, f.SHA256, f.Sealed = files.Ready, hexSum, "files/"+id+"/9b2cf535f27731c974343645a3985328"
	return f
}

func parse(t *testing.T, raw string) (*url.URL, url.Values) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	return u, q
}

func TestSignUploadHeaders(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		change  func(*files.File)
		headers map[string]string
		signed  string
	}{
		{"a size", func(*files.File) {},
			map[string]string{"Content-Type": "application/pdf", "Content-Length": "8340112", "If-None-Match": "*"},
			"content-length;content-type;host;if-none-match"},
		{"no size", func(f *files.File) { f.Size = files.SizeUnknown },
			map[string]string{"Content-Type": "application/pdf", "If-None-Match": "*"},
			"content-type;host;if-none-match"},
		{"a digest", func(f *files.File) { f.SHA256 = hexSum },
			map[string]string{"Content-Type": "application/pdf", "Content-Length": "8340112", "If-None-Match": "*", "X-Amz-Checksum-Sha256": b64Sum},
			"content-length;content-type;host;if-none-match;x-amz-checksum-sha256"},
		{"a parameter", func(f *files.File) { f.ContentType = "text/plain; charset=utf-8" },
			map[string]string{"Content-Type": "text/plain; charset=utf-8", "Content-Length": "8340112", "If-None-Match": "*"},
			"content-length;content-type;host;if-none-match"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := reserved()
			tt.change(&f)
			got, err := signer(nil).SignUpload(t.Context(), f, now, now.Add(15*time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if got.Method != "PUT" || !maps.Equal(got.Headers, tt.headers) {
				t.Errorf("%s with %v, want PUT with %v", got.Method, got.Headers, tt.headers)
			}
			u, q := parse(t, got.URL)
			if u.Scheme != "https" || u.Host != bucket+".s3.eu-west-1.amazonaws.com" || u.Path != "/staging/"+id {
				t.Errorf("signed for %s://%s%s", u.Scheme, u.Host, u.Path)
			}
			if q.Get("X-Amz-SignedHeaders") != tt.signed {
				t.Errorf("signed headers %s, want %s", q.Get("X-Amz-SignedHeaders"), tt.signed)
			}
			if !slices.Equal(q["X-Amz-Security-Token"], []string{token}) || strings.Count(strings.ToLower(got.URL), "security-token") != 1 {
				t.Errorf("session token %q, want it once", q["X-Amz-Security-Token"])
			}
			if strings.Contains(strings.ToLower(u.RawQuery), "checksum=") || strings.Contains(strings.ToLower(u.RawQuery), "checksum-sha256=") {
				t.Error("the checksum is a query parameter, which S3 ignores")
			}
		})
	}
}

func TestSignUploadRefuses(t *testing.T) {
	t.Parallel()
	f := reserved()
	f.Size = 0
	if _, err := signer(nil).SignUpload(t.Context(), f, now, now.Add(time.Minute)); !errors.Is(err, files.ErrEmptyFile) {
		t.Errorf("size 0: %v", err)
	}
	f = reserved()
	f.SHA256 = hexSum[1:]
	if got, err := signer(nil).SignUpload(t.Context(), f, now, now.Add(time.Minute)); err == nil {
		t.Errorf("a broken digest was signed: %v", got.Headers)
	}
	f = reserved()
	f.ID = "../files/" + id
	if got, err := signer(nil).SignUpload(t.Context(), f, now, now.Add(time.Minute)); err == nil {
		t.Errorf("a path was signed: %s", got.URL)
	}
}

func TestSignLink(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD"} {
		f := ready()
		f.Filename = "Capture d’écran; à 100%.pdf"
		f.ContentType = "text/plain; charset=utf-8"
		s := signer(func(o *objects.SignerOptions) { o.ContentDomain = "files.example.com:8443" })
		got, err := s.SignLink(t.Context(), f, method, now, now.Add(5*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := signer(nil).SignLink(t.Context(), f, method, now, now.Add(5*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		u, q := parse(t, got.URL)
		if got.Method != method || len(got.Headers) != 0 || u.Scheme != "https" || u.Host != "files.example.com:8443" || u.Path != "/"+f.Sealed {
			t.Errorf("%s %s://%s%s with %v", got.Method, u.Scheme, u.Host, u.Path, got.Headers)
		}
		if swapped := strings.Replace(plain.URL, bucket+".s3.eu-west-1.amazonaws.com", "files.example.com:8443", 1); swapped != got.URL {
			t.Errorf("the content domain changes more than the host:\n%s\n%s", plain.URL, got.URL)
		}
		for name, want := range map[string]string{
			"response-content-type":        "text/plain; charset=utf-8",
			"response-content-disposition": names.Disposition(f.Filename),
			"response-cache-control":       "private, no-store",
			"X-Amz-SignedHeaders":          "host",
			"X-Amz-Security-Token":         token,
			"X-Amz-Expires":                "300",
		} {
			if !slices.Equal(q[name], []string{want}) {
				t.Errorf("%s = %q, want %q", name, q[name], want)
			}
		}
	}
	get, _ := signer(nil).SignLink(t.Context(), ready(), "GET", now, now.Add(time.Minute))
	head, _ := signer(nil).SignLink(t.Context(), ready(), "HEAD", now, now.Add(time.Minute))
	if get.URL == head.URL {
		t.Error("GET and HEAD have one signature")
	}
}

func TestSignLinkRefuses(t *testing.T) {
	t.Parallel()
	s := signer(nil)
	for _, sealed := range []string{"", "staging/" + id, "files/" + id, "files/" + id + "/../x", "files/" + id + "/a?b"} {
		f := ready()
		f.Sealed = sealed
		if _, err := s.SignLink(t.Context(), f, "GET", now, now.Add(time.Minute)); err == nil {
			t.Errorf("%q was linked", sealed)
		}
	}
	if _, err := s.SignLink(t.Context(), ready(), "DELETE", now, now.Add(time.Minute)); err == nil {
		t.Error("a DELETE was signed")
	}
}

func TestExpiryIsHonest(t *testing.T) {
	t.Parallel()
	second := now.Truncate(time.Second)
	tests := []struct {
		name    string
		until   time.Time
		session time.Time // end of the credentials, zero for never
		expires time.Time
		err     error // of an upload
	}{
		{"whole seconds", second.Add(900 * time.Second), second.Add(time.Hour), second.Add(900 * time.Second), nil},
		{"rounded down", now.Add(900 * time.Second), second.Add(time.Hour), second.Add(900 * time.Second), nil},
		{"never later than asked", second.Add(1999 * time.Millisecond), second.Add(time.Hour), second.Add(time.Second), nil},
		{"the session ends first", now.Add(900 * time.Second), second.Add(600*time.Second + 700*time.Millisecond), second.Add(600 * time.Second), nil},
		{"keys without an end", now.Add(900 * time.Second), time.Time{}, second.Add(900 * time.Second), nil},
		{"S3's own limit", now.AddDate(1, 0, 0), time.Time{}, second.AddDate(0, 0, 7), nil},
		{"nothing left", now, second.Add(time.Hour), time.Time{}, files.ErrUploadExpired},
		{"less than a second left", second.Add(999 * time.Millisecond), second.Add(time.Hour), time.Time{}, files.ErrUploadExpired},
		{"passed", now.Add(-time.Minute), second.Add(time.Hour), time.Time{}, files.ErrUploadExpired},
		{"the session has ended", now.Add(900 * time.Second), now.Add(-time.Minute), time.Time{}, files.ErrTryAgain},
		{"both have ended", now.Add(-time.Second), now.Add(-time.Minute), time.Time{}, files.ErrUploadExpired},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := signer(func(o *objects.SignerOptions) { o.Credentials = provider(tt.session) })
			up, err := s.SignUpload(t.Context(), reserved(), now, tt.until)
			checkExpiry(t, up, err, tt.expires, tt.err)
			linkErr := tt.err
			if errors.Is(linkErr, files.ErrUploadExpired) {
				linkErr = files.ErrFileExpired
			}
			link, err := s.SignLink(t.Context(), ready(), "GET", now, tt.until)
			checkExpiry(t, link, err, tt.expires, linkErr)
		})
	}
}

func checkExpiry(t *testing.T, got files.SignedRequest, err error, expires time.Time, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
	if want != nil {
		return
	}
	_, q := parse(t, got.URL)
	date, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	life, err := time.ParseDuration(q.Get("X-Amz-Expires") + "s")
	if err != nil {
		t.Fatal(err)
	}
	if !got.ExpiresAt.Equal(expires) || !date.Add(life).Equal(expires) {
		t.Errorf("says %v, signed until %v, want %v", got.ExpiresAt, date.Add(life), expires)
	}
}

func TestCredentialErrorsPassThrough(t *testing.T) {
	t.Parallel()
	cause := errors.New("no session")
	s := signer(func(o *objects.SignerOptions) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, cause })
	})
	if _, err := s.SignUpload(t.Context(), reserved(), now, now.Add(time.Minute)); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}

// reference presigns with the S3 client, at a fixed time and without the x-id parameter that it adds for its own logs.
type reference struct{ signer *v4.Signer }

func (r reference) PresignHTTP(ctx context.Context, creds aws.Credentials, req *http.Request, hash, service, region string, _ time.Time, opts ...func(*v4.SignerOptions)) (string, http.Header, error) {
	q := req.URL.Query()
	q.Del("x-id")
	req.URL.RawQuery = q.Encode()
	return r.signer.PresignHTTP(ctx, creds, req, hash, service, region, now, opts...)
}

// TestSameAsTheS3Client: for the same input the S3 client of the SDK makes the same URL, in every partition and for an
// endpoint of one's own.
func TestSameAsTheS3Client(t *testing.T) {
	t.Parallel()
	places := []struct{ bucket, region, endpoint string }{
		{bucket, "us-east-1", ""},
		{bucket, "eu-west-1", ""},
		{bucket, "us-gov-west-1", ""},
		{bucket, "cn-north-1", ""},
		{bucket, "eusc-de-east-1", ""},
		{bucket, "us-iso-east-1", ""},
		{bucket, "us-isob-east-1", ""},
		{bucket, "us-isof-south-1", ""},
		{bucket, "eu-isoe-west-1", ""},
		{"with.dots", "eu-west-1", ""},
		{bucket, "us-east-1", "http://127.0.0.1:4566"},
	}
	for _, p := range places {
		t.Run(p.bucket+p.region+p.endpoint, func(t *testing.T) {
			t.Parallel()
			client := s3.New(s3.Options{
				Region: p.region, Credentials: provider(time.Time{}), UsePathStyle: p.endpoint != "",
				RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
				ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
			}, func(o *s3.Options) {
				if p.endpoint != "" {
					o.BaseEndpoint = &p.endpoint
				}
			})
			theirs := s3.NewPresignClient(client, func(o *s3.PresignOptions) {
				o.Expires = 15 * time.Minute
				o.Presigner = reference{v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })}
			})
			ours := signer(func(o *objects.SignerOptions) { o.Bucket, o.Region, o.Endpoint = p.bucket, p.region, p.endpoint })

			f := reserved()
			f.SHA256 = hexSum
			f.ContentType = "text/plain;  charset=utf-8"
			want, err := theirs.PresignPutObject(t.Context(), &s3.PutObjectInput{
				Bucket: &p.bucket, Key: aws.String("staging/" + f.ID), ContentType: &f.ContentType,
				ContentLength: &f.Size, IfNoneMatch: aws.String("*"), ChecksumSHA256: aws.String(b64Sum),
			})
			compare(t, want, err, func() (files.SignedRequest, error) {
				return ours.SignUpload(t.Context(), f, now, now.Add(15*time.Minute))
			})

			f = ready()
			f.Filename = "a b+c&d=é%41.pdf"
			get := &s3.GetObjectInput{
				Bucket: &p.bucket, Key: &f.Sealed, ResponseContentType: &f.ContentType,
				ResponseContentDisposition: aws.String(names.Disposition(f.Filename)), ResponseCacheControl: aws.String("private, no-store"),
			}
			want, err = theirs.PresignGetObject(t.Context(), get)
			compare(t, want, err, func() (files.SignedRequest, error) {
				return ours.SignLink(t.Context(), f, "GET", now, now.Add(15*time.Minute))
			})
			want, err = theirs.PresignHeadObject(t.Context(), &s3.HeadObjectInput{
				Bucket: get.Bucket, Key: get.Key, ResponseContentType: get.ResponseContentType,
				ResponseContentDisposition: get.ResponseContentDisposition, ResponseCacheControl: get.ResponseCacheControl,
			})
			compare(t, want, err, func() (files.SignedRequest, error) {
				return ours.SignLink(t.Context(), f, "HEAD", now, now.Add(15*time.Minute))
			})
		})
	}
}

func compare(t *testing.T, want *v4.PresignedHTTPRequest, err error, sign func() (files.SignedRequest, error)) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	got, err := sign()
	if err != nil {
		t.Fatal(err)
	}
	headers := http.Header{}
	for k, v := range got.Headers {
		headers.Set(k, v)
	}
	want.SignedHeader.Del("Host")
	if got.Method != want.Method || got.URL != want.URL || !maps.EqualFunc(headers, want.SignedHeader, slices.Equal) {
		t.Errorf("ours   %s %s %v\ntheirs %s %s %v", got.Method, got.URL, headers, want.Method, want.URL, want.SignedHeader)
	}
}
