// Command cmd is what the archives of Docker and Harbor have on hosts of the lab: by the name that it is started with,
// the engine, its client, or the stand-in for Harbor. Containers are the stand-in, as a service of systemd.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gopkg.in/yaml.v3"

	"kubekey/test/harbor"
)

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	switch {
	case name == "dockerd" && slices.Contains(args, "--validate"):
		return nil
	case name == "dockerd":
		return engine()
	case name == "docker" && slices.Equal(args, []string{"run", "prepare"}):
		return prepare()
	case name == "docker" && len(args) > 1 && args[0] == "compose" && args[1] == "up":
		return up()
	case name == "docker" && len(args) > 1 && args[0] == "compose" && args[1] == "down":
		_ = exec.Command("systemctl", "stop", "harbor-containers").Run() //nolint:noctx // fails where none run
		return nil
	case name == "serve":
		return serve()
	}
	return fmt.Errorf("%s %q is not in the stand-in", name, args)
}

// engine is dockerd: as the real one, it does not start without iptables.
func engine() error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return fmt.Errorf("failed to start daemon: %w", err)
	}
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET")) //nolint:noctx // a local socket
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte("READY=1")); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	return nil
}

// settings are what is read of harbor.yml.
type settings struct {
	Hostname string `yaml:"hostname"`
	HTTPS    struct {
		Port        int    `yaml:"port"`
		Certificate string `yaml:"certificate"`
		PrivateKey  string `yaml:"private_key"`
	} `yaml:"https"`
	Password string `yaml:"harbor_admin_password"`
	Data     string `yaml:"data_volume"`
	Storage  struct {
		CA string `yaml:"ca_bundle"`
	} `yaml:"storage_service"`
}

const folder = "/opt/harbor"

func read() (s settings, err error) {
	text, err := os.ReadFile(folder + "/harbor.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &s)
	}
	return s, err
}

// prepare copies the certificates to the files that the web server of Harbor reads.
func prepare() error {
	s, err := read()
	if err != nil {
		return err
	}
	own := filepath.Join(s.Data, "secret/cert")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	for from, to := range map[string]string{s.HTTPS.Certificate: "server.crt", s.HTTPS.PrivateKey: "server.key",
		s.Storage.CA: "ca.crt"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(own, to), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// up starts what does not run.
func up() error {
	if exec.Command("systemctl", "is-active", "-q", "docker").Run() != nil { //nolint:noctx // short
		return errors.New("cannot connect to the Docker daemon at unix:///run/docker.sock. Is the docker daemon running?")
	}
	if exec.Command("systemctl", "is-active", "-q", "harbor-containers").Run() == nil { //nolint:noctx // short
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	serve := filepath.Join(folder, "serve")
	if err := os.Symlink(self, serve); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	cmd := exec.Command("systemd-run", "-q", "--collect", "--unit=harbor-containers", serve) //nolint:noctx // short
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func serve() error {
	s, err := read()
	if err != nil {
		return err
	}
	own := filepath.Join(s.Data, "secret/cert")
	pair, err := tls.LoadX509KeyPair(filepath.Join(own, "server.crt"), filepath.Join(own, "server.key"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(own, "ca.crt"))
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(ca) {
		return errors.New("ca_bundle has no certificate")
	}
	host := s.Hostname
	if s.HTTPS.Port != 443 {
		host = fmt.Sprintf("%s:%d", host, s.HTTPS.Port)
	}
	h := harbor.New(strings.TrimSpace(host), "admin", s.Password)
	h.Trust = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	server := &http.Server{Addr: fmt.Sprintf(":%d", s.HTTPS.Port), Handler: h, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
	return server.ListenAndServeTLS("", "")
}
