package s3

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// unixTransport speaks HTTP to the gateway's Unix socket, one connection per
// request because the gateway closes each after its answer. It is used instead
// of http.Transport because the gateway answers a bad request before it has
// read its body: a write that fails then is no reason to give up the answer.
type unixTransport string

// RoundTrip sends r with the header it has, Content-Length included.
func (socket unixTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	conn, err := new(net.Dialer).DialContext(r.Context(), "unix", string(socket))
	if err != nil {
		return nil, fmt.Errorf("connecting to the S3 gateway: %w", err)
	}
	release := context.AfterFunc(r.Context(), func() { conn.Close() })
	head := bufio.NewWriter(conn)
	fmt.Fprintf(head, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.URL.RequestURI(), r.Host)
	r.Header.Write(head)
	io.WriteString(head, "\r\n")
	err = head.Flush()
	var answer *http.Response
	if err == nil {
		go io.Copy(conn, r.Body)
		answer, err = http.ReadResponse(bufio.NewReader(conn), r)
	}
	if err != nil {
		release()
		conn.Close()
		return nil, fmt.Errorf("asking the S3 gateway: %w", err)
	}
	answer.Body = &connBody{answer.Body, conn, release}
	return answer, nil
}

// connBody closes the connection with the body, which so is not read to its
// end when the client has gone.
type connBody struct {
	io.Reader
	conn    net.Conn
	release func() bool
}

func (b *connBody) Close() error {
	b.release()
	return b.conn.Close()
}
