// Package functiontest gives the tests of functions/ what they share: the domain over fakes, the sample events of
// events/, and golden files for the answers.
//
//	fakes := functiontest.New(t)
//	e := endpoint(fakes.Auth(files.FilesRead), fakes.Reader())
//	fakes.Ready(t, functiontest.PDF)
//	functiontest.Golden(t, "created", functiontest.Event(t, "create-link"), fakes.Serve(t, e, event))
//
// Everything that an answer could vary with (ids, times, signatures) comes from here and is the same each time, so
// answers are compared byte for byte. `go test ./functions/... -update` writes the golden files anew.
package functiontest

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/objects"
	"claimcheck.dev/claimcheck/shared/sniff"
)

// What the sample events name.
const (
	FileID  = "f_7x2k9q4m1c8v5b3n6z0a2s4d1f"
	ClaimID = "c_7x2k9q4m1c8v5b3n6z0a2s4d1f0123456789abcdefghijklmnop"
	KeyID   = "4h8n1t6w3y9r5p2e"
	Secret  = "ujzde8gxd6ncf10epf91dhodzdoc9is0j8ht9lgm"
	Prefix  = "claim://"
	MetaKey = "dev.claimcheck/files"
)

// PDF is a body that passes for application/pdf.
var PDF = []byte("%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n")

// Limits are those of the template's defaults.
var Limits = files.Limits{
	MaxFileBytes:         104857600,
	AccountMaxLiveBytes:  2147483648,
	ActorMaxReservations: 50,
	FileTTL:              24 * time.Hour,
	SingleUseTTL:         time.Hour,
	ReservationTTL:       time.Hour,
}

const urlTTL = 15 * time.Minute

// Fakes is what the domain's types run on. Every operation of all of them goes through Faults.
type Fakes struct {
	Clock   *filestest.Clock
	Faults  *filestest.Faults
	Records *filestest.Records
	Keys    *filestest.Keys
	Store   *filestest.Store
	Links   *filestest.Signer
}

// New returns empty fakes at filestest's fixed moment.
func New(t testing.TB) *Fakes {
	t.Helper()
	f := &Fakes{Clock: filestest.NewClock(), Faults: &filestest.Faults{}, Records: filestest.NewRecords(), Keys: filestest.NewKeys(), Links: &filestest.Signer{}}
	f.Store = filestest.NewStore(f.Clock)
	f.Records.Hook, f.Keys.Hook, f.Store.Hook, f.Links.Hook = f.Faults.Hook, f.Faults.Hook, f.Faults.Hook, f.Faults.Hook
	return f
}

// Auth knows the key of the sample events, one of acme's ada, with the given scopes.
func (f *Fakes) Auth(t testing.TB, scopes ...files.Scope) *access.Authenticator {
	t.Helper()
	f.AddKey(t, KeyID, "acme", "ada", scopes...)
	return &access.Authenticator{Keys: f.Keys, Now: f.Clock.Now}
}

// AddKey stores a key whose secret is Secret.
func (f *Fakes) AddKey(t testing.TB, id, account, actor string, scopes ...files.Scope) {
	t.Helper()
	hash := sha256.Sum256([]byte(Secret))
	k := access.Key{ID: id, Account: account, Actor: actor, Scopes: scopes, SecretHash: hash[:], CreatedAt: f.Clock.Now().Add(-time.Hour)}
	if err := f.Keys.PutKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
}

// newID gives the id of the sample events to the first file and other fixed ids to the next ones.
func newID() func() string {
	n := -1
	return func() string {
		n++
		if n == 0 {
			return FileID
		}
		return FileID[:len(FileID)-2] + string([]byte{'a' + byte(n/26), 'a' + byte(n%26)})
	}
}

// uploadSigner is the real one, with keys of nobody.
func uploadSigner() *objects.Signer {
	return objects.NewSigner(objects.SignerOptions{
		Bucket:      "claimcheck-dev-123456789012-eu-west-1",
		Region:      "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider("ASIAEXAMPLE", "secret", "session-token"),
	})
}

// Uploads reserves files.
func (f *Fakes) Uploads() *files.Uploads {
	return &files.Uploads{Records: f.Records, Signer: uploadSigner(), Limits: Limits, URLTTL: urlTTL, Now: f.Clock.Now, NewID: newID()}
}

// Renewer shows reservations.
func (f *Fakes) Renewer() *files.Renewer {
	return &files.Renewer{Records: f.Records, Signer: uploadSigner(), URLTTL: urlTTL, Now: f.Clock.Now}
}

// Verifier verifies what was staged, under the real type policy.
func (f *Fakes) Verifier() *files.Verifier {
	return &files.Verifier{Records: f.Records, Stage: f.Store, CheckType: sniff.Policy, MaxFileBytes: Limits.MaxFileBytes, Now: f.Clock.Now}
}

// Completer finishes uploads.
func (f *Fakes) Completer() *files.Completer {
	return &files.Completer{Verifier: f.Verifier(), Now: f.Clock.Now}
}

// Inline stores small bodies, of at most 4 MiB.
func (f *Fakes) Inline() *files.Inline {
	limits := Limits
	limits.MaxFileBytes = 4194304
	return &files.Inline{Records: f.Records, Objects: f.Store, CheckType: sniff.Policy, Limits: limits, Now: f.Clock.Now, NewID: newID()}
}

// Reader links files.
func (f *Fakes) Reader() *files.Reader {
	return &files.Reader{Verifier: f.Verifier(), Signer: f.Links, LinkTTL: urlTTL, Now: f.Clock.Now}
}

// Claimer lends single-use files.
func (f *Fakes) Claimer() *files.Claimer {
	return &files.Claimer{
		Records: f.Records, Verifier: f.Verifier(), Signer: f.Links, Lease: 5 * time.Minute, LinkTTL: urlTTL, Now: f.Clock.Now,
		Random: func(n int) string { return ClaimID[len(ClaimID)-n:] },
	}
}

// Claims ends and extends leases.
func (f *Fakes) Claims() *files.Claims {
	return &files.Claims{Records: f.Records, Cleaner: f.cleaner(), Lease: 5 * time.Minute, Now: f.Clock.Now}
}

// Deleter deletes files.
func (f *Fakes) Deleter() *files.Deleter {
	return &files.Deleter{Records: f.Records, Cleaner: f.cleaner(), Now: f.Clock.Now}
}

func (f *Fakes) cleaner() files.Cleaner { return files.Cleaner{Bytes: f.Store} }

// Reserve stores a reservation of acme's ada for a PDF, the file of the sample events unless changed.
func (f *Fakes) Reserve(t testing.TB, change ...func(*files.File)) files.File {
	t.Helper()
	now := f.Clock.Now()
	file := files.File{
		ID: FileID, Account: "acme", Actor: "ada", State: files.Reserved, Purpose: files.Upload,
		Filename: "acme-msa-2026.pdf", ContentType: "application/pdf", Size: int64(len(PDF)), Charged: int64(len(PDF)), Counted: true,
		Metadata:  map[string]string{"matter": "M-1024"},
		CreatedAt: now, UploadBy: now.Add(Limits.ReservationTTL), ExpiresAt: now.Add(Limits.FileTTL),
	}
	for _, c := range change {
		c(&file)
	}
	got, _, err := f.Records.Create(t.Context(), file, filestest.Roomy, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Stage puts bytes where a client's upload puts them.
func (f *Fakes) Stage(t testing.TB, id string, body []byte) {
	t.Helper()
	if err := f.Store.Put(t.Context(), id, body); err != nil {
		t.Fatal(err)
	}
}

// Verified reserves a file, uploads body and verifies it: it is ready, or rejected.
func (f *Fakes) Verified(t testing.TB, body []byte, change ...func(*files.File)) files.File {
	t.Helper()
	file := f.Reserve(t, change...)
	f.Stage(t, file.ID, body)
	file, err := f.Verifier().Verify(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Ready is Verified for PDF.
func (f *Fakes) Ready(t testing.TB, change ...func(*files.File)) files.File {
	t.Helper()
	return f.Verified(t, PDF, change...)
}

// SingleUse makes a file one that is read through a claim.
func SingleUse(f *files.File) { f.SingleUse = true }

// Lend makes a single-use file ready and claims it for an actor of its account: the claim of the sample events.
func (f *Fakes) Lend(t testing.TB, actor, holder string, change ...func(*files.File)) files.File {
	t.Helper()
	file := f.Ready(t, append(change, SingleUse)...)
	caller := files.Caller{Account: file.Account, Actor: actor, Scopes: files.Scopes}
	lent, err := f.Claimer().Claim(t.Context(), caller, file.ID, holder, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lent.File
}

// End brings a file to one of the final states.
func (f *Fakes) End(t testing.TB, file files.File, state files.State) {
	t.Helper()
	if _, err := f.Records.End(context.Background(), file, files.Ending{State: state, At: f.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
}
