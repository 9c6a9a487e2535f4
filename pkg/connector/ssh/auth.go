package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// login is the authentication methods for one host, and what to report about them when
// none is accepted.
type login struct {
	methods []ssh.AuthMethod
	offered []string // "key ~/.ssh/id_ed25519", "password", ...
	skipped []string // what was not offered, with the reason
	agent   net.Conn // to be closed after the login; may be nil
	files   source.Tree
}

func (l *login) close() {
	if l.agent != nil {
		l.agent.Close()
	}
}

// newLogin collects the authentication methods. Keys come first, named ones before those of
// an agent, because servers allow only a few attempts.
func (s *Shared) newLogin(ctx context.Context, t *target) (*login, error) {
	l := &login{files: source.Tree{}.WithContext(ctx).Raw()}
	signers, err := l.keys(t, s.opened)
	if err != nil {
		return nil, err
	}
	signers = append(signers, l.agentKeys(t, signers)...)
	if len(signers) > 0 {
		l.methods = append(l.methods, ssh.PublicKeys(signers...))
	}
	if !t.Password.IsZero() {
		l.methods = append(l.methods, ssh.Password(t.Password.Reveal()), ssh.KeyboardInteractive(answer(t.Password)))
		l.offered = append(l.offered, "password")
	}
	return l, nil
}

// answer answers every hidden question with the password, once.
func answer(password redact.Secret) ssh.KeyboardInteractiveChallenge {
	asked := false
	return func(_, _ string, questions []string, echos []bool) ([]string, error) {
		if asked && len(questions) > 0 {
			return nil, errors.New("the password was not accepted")
		}
		answers := make([]string, len(questions))
		for i := range questions {
			if !echos[i] {
				answers[i], asked = password.Reveal(), true
			}
		}
		return answers, nil
	}
}

func (l *login) keys(t *target, open opener) ([]ssh.Signer, error) {
	var signers []ssh.Signer
	if !t.PrivateKey.IsZero() {
		s, err := parseKey([]byte(t.PrivateKey.Reveal()), t.Passphrase, open)
		if err != nil {
			return nil, fmt.Errorf("the given private key: %w", err)
		}
		l.offered = append(l.offered, "the given private key")
		signers = append(signers, s)
	}
	for _, file := range t.PrivateKeyFiles {
		s, err := l.readKey(file, t.Passphrase, open)
		switch {
		case err == nil:
			l.offered = append(l.offered, "key "+file)
			signers = append(signers, s...)
		case t.givenKeys && !errors.Is(err, errEncrypted):
			return nil, fmt.Errorf("private key %s: %w", file, err)
		case !errors.Is(err, fs.ErrNotExist):
			// The agent may still have an encrypted key.
			l.skipped = append(l.skipped, fmt.Sprintf("key %s: %v", file, err))
		}
	}
	return signers, nil
}

// readKey returns the signers of a key file: with its certificate, if it has one, first.
func (l *login) readKey(file string, passphrase redact.Secret, open opener) ([]ssh.Signer, error) {
	text, err := l.files.Read(file, source.MaxSecret)
	if err != nil {
		return nil, err
	}
	s, err := parseKey(text, passphrase, open)
	if err != nil {
		return nil, err
	}
	certText, err := l.files.Read(file+"-cert.pub", source.MaxSecret)
	if err != nil {
		return []ssh.Signer{s}, nil
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(certText)
	if err != nil {
		return nil, fmt.Errorf("read %s-cert.pub: %w", file, err)
	}
	cert, ok := public.(*ssh.Certificate)
	if !ok {
		return nil, fmt.Errorf("%s-cert.pub is not a certificate", file)
	}
	withCert, err := ssh.NewCertSigner(cert, s)
	if err != nil {
		return nil, fmt.Errorf("certificate %s-cert.pub: %w", file, err)
	}
	return []ssh.Signer{withCert, s}, nil
}

var errEncrypted = errors.New("it is encrypted and no passphrase is given: " +
	"give the passphrase, or load the key into an agent")

func parseKey(text []byte, passphrase redact.Secret, open opener) (ssh.Signer, error) {
	s, err := ssh.ParsePrivateKey(text)
	var encrypted *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return s, nil
	case !errors.As(err, &encrypted):
		// The cause is safe to show: parsers name formats and quote nothing of the key.
		return nil, fmt.Errorf("not a private key: %w", err)
	case passphrase.IsZero():
		return nil, errEncrypted
	}
	return open(text, passphrase)
}

// opener decrypts an encrypted key.
type opener func(text []byte, passphrase redact.Secret) (ssh.Signer, error)

// opened decrypts an encrypted key once for all hosts: a passphrase is slow to try by
// design, and with a hundred hosts that would use up the time to connect.
func (s *Shared) opened(text []byte, passphrase redact.Secret) (ssh.Signer, error) {
	id := sha256.Sum256(append([]byte(passphrase.Reveal()+"\x00"), text...))
	s.mu.Lock()
	open, ok := s.keys[id]
	if !ok {
		open = sync.OnceValues(func() (ssh.Signer, error) {
			signer, err := ssh.ParsePrivateKeyWithPassphrase(text, []byte(passphrase.Reveal()))
			if err != nil {
				return nil, errors.New("the passphrase is wrong")
			}
			return signer, nil
		})
		s.keys[id] = open
	}
	s.mu.Unlock()
	return open()
}

// agentKeys returns the agent's keys that are not in have. With IdentitiesOnly they must
// match a key file or its .pub.
func (l *login) agentKeys(t *target, have []ssh.Signer) []ssh.Signer {
	if t.AgentSocket == "" || t.AgentSocket == "none" {
		return nil
	}
	conn, err := net.Dial("unix", t.AgentSocket)
	if err != nil {
		l.skipped = append(l.skipped, fmt.Sprintf("agent: %v", err))
		return nil
	}
	l.agent = conn
	all, err := agent.NewClient(conn).Signers()
	if err != nil {
		l.skipped = append(l.skipped, fmt.Sprintf("agent: %v", err))
		return nil
	}
	var use []ssh.Signer
	for _, s := range all {
		if !holds(have, s) && (!t.identitiesOnly || l.namedBy(t.PrivateKeyFiles, s.PublicKey())) {
			use = append(use, s)
		}
	}
	l.offered = append(l.offered, fmt.Sprintf("%d more keys of the agent", len(use)))
	return use
}

func holds(signers []ssh.Signer, s ssh.Signer) bool {
	for _, h := range signers {
		if bytes.Equal(h.PublicKey().Marshal(), s.PublicKey().Marshal()) {
			return true
		}
	}
	return false
}

func (l *login) namedBy(files []string, key ssh.PublicKey) bool {
	for _, f := range files {
		text, err := l.files.Read(strings.TrimSuffix(f, ".pub")+".pub", source.MaxSecret)
		if err != nil {
			continue
		}
		public, _, _, _, err := ssh.ParseAuthorizedKey(text)
		if err == nil && bytes.Equal(public.Marshal(), key.Marshal()) {
			return true
		}
	}
	return false
}

// refusal explains a login that the host refused.
func (l *login) refusal(t *target) string {
	if len(l.offered) == 0 {
		text := fmt.Sprintf("cannot log in to %s as %s: no private key, agent or password is available: give one of them",
			t.name(), t.User)
		return text + l.notes()
	}
	return fmt.Sprintf("cannot log in to %s as %s: the host refused %s: "+
		"check the user, and that its authorized_keys has the key",
		t.name(), t.User, strings.Join(l.offered, ", ")) + l.notes()
}

func (l *login) notes() string {
	if len(l.skipped) == 0 {
		return ""
	}
	return " (not tried: " + strings.Join(l.skipped, "; ") + ")"
}
