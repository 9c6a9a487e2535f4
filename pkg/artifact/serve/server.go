package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// Server is how a handler is reached. Addresses that other machines can reach need TLS and a password.
type Server struct {
	Listen  string // HOST:PORT
	TLSCert string // PEM file of the certificate and its chain; "" is plain HTTP
	TLSKey  string // PEM file of the key
	Auth    string // file for ReadUsers; "" is no password
}

const (
	grace          = 10 * time.Second // for responses that are being sent when the context ends
	maxHeader      = 32 << 10
	maxConnections = 512
)

// Run serves until the context ends; responses that are being sent then have 10 seconds to end. ready, if not nil,
// gets the URL once connections are accepted. problem gets what the HTTP server reports about connections.
func (s Server) Run(ctx context.Context, h http.Handler, ready func(url string), problem func(error)) error {
	if err := s.Check(); err != nil {
		return err
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(reporter(problem), "", 0),
	}
	scheme := "http"
	if s.TLSCert != "" {
		scheme = "https"
		pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
		if err != nil {
			return fmt.Errorf("read --tls-cert and --tls-key: %w", err)
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if s.Auth != "" {
		users, err := ReadUsers(s.Auth)
		if err != nil {
			return fmt.Errorf("read --auth: %w", err)
		}
		server.Handler = users.Protect(h)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return err
	}
	if a, ok := l.Addr().(*net.TCPAddr); (s.TLSCert == "" || s.Auth == "") && (!ok || !a.IP.IsLoopback()) {
		return errors.Join(fmt.Errorf("--listen %s is the address %s, not the loopback interface", s.Listen, l.Addr()),
			l.Close())
	}
	if ready != nil {
		ready(scheme + "://" + l.Addr().String() + "/")
	}
	return run(ctx, server, netutil.LimitListener(l, maxConnections))
}

// Check reports everything that is wrong with the flags: an address that others can reach needs TLS and a password.
func (s Server) Check() error {
	var problems []error
	if (s.TLSCert == "") != (s.TLSKey == "") {
		problems = append(problems, errors.New("--tls-cert and --tls-key belong together: add the other one"))
	}
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return errors.Join(append(problems, fmt.Errorf("--listen %q is not HOST:PORT: %w", s.Listen, err))...)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return errors.Join(problems...)
	}
	var lacks []string
	if s.TLSCert == "" && s.TLSKey == "" {
		lacks = append(lacks, "--tls-cert FILE and --tls-key FILE")
	}
	if s.Auth == "" {
		lacks = append(lacks, "--auth FILE")
	}
	if len(lacks) > 0 {
		problems = append(problems, fmt.Errorf("other machines can reach --listen %s: add %s, or listen on 127.0.0.1",
			s.Listen, strings.Join(lacks, ", and ")))
	}
	return errors.Join(problems...)
}

// run serves until the context ends.
func run(ctx context.Context, server *http.Server, l net.Listener) error {
	done := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			done <- server.ServeTLS(l, "", "")
			return
		}
		done <- server.Serve(l)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-done // http.ErrServerClosed
	return err
}

// reporter reports lines of the HTTP server.
type reporter func(error)

// Write implements io.Writer.
func (report reporter) Write(line []byte) (int, error) {
	if report != nil {
		report(errors.New(strings.TrimSpace(string(line))))
	}
	return len(line), nil
}
