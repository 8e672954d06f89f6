package s3

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v3"
)

// exchange ties a request in the host to the same request in the gateway, and
// carries what the gateway does not hand to its backend.
type exchange struct {
	presigned            bool      // the signature is in the query
	signed               time.Time // X-Amz-Date of a presigned request
	ifMatch, ifNoneMatch string

	once   sync.Once
	opened chan struct{} // closed by proceed
}

func newExchange(r *http.Request) *exchange {
	x := &exchange{
		presigned:   presigned(r),
		ifMatch:     r.Header.Get("If-Match"),
		ifNoneMatch: r.Header.Get("If-None-Match"),
		opened:      make(chan struct{}),
	}
	// A date that does not parse has failed the signature check.
	x.signed, _ = time.Parse("20060102T150405Z", r.URL.Query().Get("X-Amz-Date"))
	return x
}

// conditions returns the conditional headers, nil where there is none.
func (x *exchange) conditions() (ifMatch, ifNoneMatch *string) {
	if x.ifMatch != "" {
		etag := unquote(x.ifMatch)
		ifMatch = &etag
	}
	if x.ifNoneMatch != "" {
		etag := unquote(x.ifNoneMatch)
		ifNoneMatch = &etag
	}
	return ifMatch, ifNoneMatch
}

// proceed says that the request is accepted and its body is wanted.
func (x *exchange) proceed() { x.once.Do(func() { close(x.opened) }) }

func (x *exchange) proceeded() bool {
	select {
	case <-x.opened:
		return true
	default:
		return false
	}
}

// exchangeHeader names the exchange between host and gateway.
const exchangeHeader = "X-Claimcheck-Exchange"

type exchangeKey struct{}

// exchanges are the requests under way, by the value of exchangeHeader.
type exchanges struct{ m sync.Map }

// middleware gives the backend its exchange. A request that did not come
// through the host has none and is refused.
func (e *exchanges) middleware(c fiber.Ctx) error {
	v, ok := e.m.Load(c.Get(exchangeHeader))
	if !ok {
		return c.SendStatus(http.StatusForbidden)
	}
	x := v.(*exchange)
	c.Locals(exchangeKey{}, x)
	err := c.Next()
	if !x.proceeded() {
		// The host has kept the rest of the body back. The gateway would wait
		// for it before it answers.
		c.Request().ResetBody()
	}
	return err
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// heldBack is how much of an upload the gateway gets before the backend has
// accepted it: more than the 8 KiB it reads ahead.
const heldBack = 32 << 10

// gate holds an upload back until the exchange proceeds: what is refused is not
// sent through.
type gate struct {
	body    io.ReadCloser
	free    int
	x       *exchange
	refused chan struct{}
}

func (g *gate) Read(p []byte) (int, error) {
	if g.free > 0 {
		n, err := g.body.Read(p[:min(len(p), g.free)])
		g.free -= n
		return n, err
	}
	select {
	case <-g.x.opened:
		return g.body.Read(p)
	case <-g.refused:
		return 0, io.ErrClosedPipe
	}
}

// Close leaves the body open: what the gateway did not take, the host may
// still have to read.
func (g *gate) Close() error { return nil }
