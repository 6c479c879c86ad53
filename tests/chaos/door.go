package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"
)

// How a gate listens: TLS with HTTP/2 towards a controller, plain for Prometheus' side.

type connection struct{}

func makeCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "chaos"},
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority, nil
}

// The connections of a gate, which it can cut, or refuse as a server that is not there.
type gateListener struct {
	net.Listener
	gate *gate
}

func (l gateListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.gate.admit(conn) {
			return conn, err
		}
	}
}

func (g *gate) admit(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		reset(conn)
		return false
	}
	g.conns[conn] = true
	return true
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

func reset(conn net.Conn) {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Every connection is cut; while it is closed there are no new ones.
func (g *gate) cutAll(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	for conn := range g.conns {
		reset(conn)
	}
	clear(g.conns)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// One request is cut, or its whole connection with all others on it. Does not return.
func (g *gate) cut(r *http.Request) {
	if conn, is := r.Context().Value(connection{}).(net.Conn); is && g.chance(0.5) {
		reset(conn)
	}
	panic(http.ErrAbortHandler)
}

// Returns the address, and how to end it.
func (g *gate) listen(certificate *tls.Certificate) (string, func(), error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: g, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connection{}, c)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				g.forget(c)
			}
		}}
	address := listener.Addr().String()
	if certificate == nil {
		go func() { _ = server.Serve(gateListener{listener, g}) }()
	} else {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
		go func() { _ = server.ServeTLS(gateListener{listener, g}, "", "") }()
	}
	return address, func() { _ = server.Close() }, nil
}

func (g *gate) forget(conn net.Conn) {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
}
