package signature

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"kubekey/pkg/artifact"
)

// Keys is where keys to sign with are found.
type Keys struct {
	// Agent is the socket of an agent, usually $SSH_AUTH_SOCK; "" without one. Security keys work through it.
	Agent string
	// Read reads a small file.
	Read func(path string) ([]byte, error)
	// Passphrase asks for the passphrase of the encrypted key in a file.
	Passphrase func(ctx context.Context, path string) (string, error)
}

// Signer signs with one key.
type Signer struct {
	signer ssh.Signer
	agent  io.Closer // may be nil
}

// Open returns the signer for a key: that of a file with a private key; or, for a file with a public key or a
// certificate, the key in the file of the same name without .pub or -cert.pub. A key that the agent has is used
// there. For the path "" it is the only key of the agent. The signer must be closed.
func (k Keys) Open(ctx context.Context, path string) (*Signer, error) {
	if path == "" {
		return k.only(ctx)
	}
	text, err := k.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		if beside, err := k.Read(path + ".pub"); err == nil {
			public, _, _, _, _ = ssh.ParseAuthorizedKey(beside)
		}
		if s, _ := k.fromAgent(ctx, public); s != nil {
			return s, nil
		}
		s, err := k.private(ctx, path, text)
		if err != nil {
			return nil, err
		}
		return &Signer{signer: s}, nil
	}
	return k.forPublic(ctx, path, public)
}

// private decodes a private key.
func (k Keys) private(ctx context.Context, path string, text []byte) (ssh.Signer, error) {
	s, err := ssh.ParsePrivateKey(text)
	var encrypted *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return s, nil
	case !errors.As(err, &encrypted):
		// The cause is safe to show: parsers name formats and quote nothing of the key.
		return nil, fmt.Errorf("%s has no key that kk can sign with (%w): name a private key, or for a security key its "+
			"public key and load it into the agent", path, err)
	}
	passphrase, err := k.Passphrase(ctx, path)
	if err != nil {
		return nil, err
	}
	if s, err = ssh.ParsePrivateKeyWithPassphrase(text, []byte(passphrase)); err != nil {
		return nil, fmt.Errorf("%s: the passphrase is wrong", path)
	}
	return s, nil
}

// forPublic finds the private half of a public key.
func (k Keys) forPublic(ctx context.Context, path string, public ssh.PublicKey) (*Signer, error) {
	if s, err := k.fromAgent(ctx, public); s != nil || err != nil {
		return s, err
	}
	file := strings.TrimSuffix(strings.TrimSuffix(path, ".pub"), "-cert")
	text, err := k.Read(file)
	if err != nil || file == path {
		return nil, fmt.Errorf("the private key of %s is neither in the agent nor in %s: load it with `ssh-add`",
			path, file)
	}
	s, err := k.private(ctx, file, text)
	if err != nil {
		return nil, err
	}
	if !(Key{s.PublicKey()}).Is(Key{public}) {
		return nil, fmt.Errorf("%s is not the private key of %s", file, path)
	}
	s, err = withCertificate(s, public)
	return &Signer{signer: s}, err
}

// fromAgent returns the signer for a key that the agent has, or nil.
func (k Keys) fromAgent(ctx context.Context, public ssh.PublicKey) (*Signer, error) {
	if public == nil {
		return nil, nil
	}
	signers, conn, err := k.inAgent(ctx)
	if err != nil || conn == nil {
		return nil, nil // the key may be in a file
	}
	i := slices.IndexFunc(signers, func(s ssh.Signer) bool { return Key{s.PublicKey()}.Is(Key{public}) })
	if i < 0 {
		return nil, conn.Close()
	}
	s, err := withCertificate(signers[i], public)
	return &Signer{s, conn}, err
}

// withCertificate returns a signer that signs with a certificate, if public is one.
func withCertificate(s ssh.Signer, public ssh.PublicKey) (ssh.Signer, error) {
	cert, ok := public.(*ssh.Certificate)
	if _, has := s.PublicKey().(*ssh.Certificate); !ok || has {
		return s, nil
	}
	return ssh.NewCertSigner(cert, s)
}

// inAgent returns the keys of the agent, if there is one, and the connection to it.
func (k Keys) inAgent(ctx context.Context) ([]ssh.Signer, net.Conn, error) {
	if k.Agent == "" {
		return nil, nil, nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", k.Agent)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the agent: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // what waits for an answer ends
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		_ = conn.Close() // nothing is signed with it
		return nil, nil, fmt.Errorf("list the keys of the agent: %w", cmp.Or(ctx.Err(), err))
	}
	return signers, conn, nil
}

// only returns the only key of the agent.
func (k Keys) only(ctx context.Context) (*Signer, error) {
	signers, conn, err := k.inAgent(ctx)
	if err != nil {
		return nil, err
	}
	if len(signers) == 1 {
		return &Signer{signers[0], conn}, nil
	}
	if conn != nil {
		_ = conn.Close() // nothing is signed with it
	}
	if len(signers) == 0 {
		return nil, errors.New("no key to sign with: name one with --key, or load one into an agent with `ssh-add`")
	}
	var have []string
	for _, s := range signers {
		have = append(have, Key{s.PublicKey()}.Fingerprint())
	}
	return nil, fmt.Errorf("the agent has %d keys (%s): name the public key of one with --key", len(signers),
		strings.Join(have, ", "))
}

// Key returns the public key.
func (s *Signer) Key() Key { return Key{s.signer.PublicKey()} }

// Close ends the connection to the agent.
func (s *Signer) Close() error {
	if s.agent == nil {
		return nil
	}
	return s.agent.Close()
}

// Sign returns a signature of the bytes of a manifest, as ssh-keygen -Y sign writes it.
func (s *Signer) Sign(manifest []byte) ([]byte, error) {
	sig, err := sshsig.Sign(bytes.NewReader(manifest), sha512Signer{s.signer}, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, fmt.Errorf("sign with the key %s: %w", s.Key().Fingerprint(), err)
	}
	return sshsig.Armor(sig), nil
}

// sha512Signer signs with SHA-512 where a key is RSA, also with a certificate, of which the library does not know.
type sha512Signer struct{ ssh.Signer }

func (s sha512Signer) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	as, ok := s.Signer.(ssh.AlgorithmSigner)
	if ok && plain(s.PublicKey()).Type() == ssh.KeyAlgoRSA {
		return as.SignWithAlgorithm(random, data, ssh.KeyAlgoRSASHA512)
	}
	return s.Signer.Sign(random, data)
}

// SignWithAlgorithm implements ssh.AlgorithmSigner.
func (s sha512Signer) SignWithAlgorithm(random io.Reader, data []byte, _ string) (*ssh.Signature, error) {
	return s.Sign(random, data)
}

// SignFile signs an offline file: in the file, or detached in FILE.sig. changed is false if it already has a
// valid signature of this key there.
func (s *Signer) SignFile(path string, detached bool) (changed bool, err error) {
	f, err := artifact.Open(path)
	if err != nil {
		return false, err
	}
	manifest, name := f.ManifestBytes(), f.DetachedName()
	appended, next, err := f.SignaturesByPlace()
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	have := appended
	if detached {
		// Signatures of an earlier file of this name are of no use.
		have = slices.DeleteFunc(next, func(text []byte) bool {
			_, err := Check(manifest, text)
			return err != nil
		})
	}
	for _, text := range have {
		if key, err := Check(manifest, text); err == nil && key.Is(s.Key()) {
			return false, nil
		}
	}
	text, err := s.Sign(manifest)
	if err != nil {
		return false, err
	}
	if !detached {
		return artifact.AppendSignature(path, text)
	}
	return true, replace(name, append(bytes.Join(have, nil), text...))
}

// replace writes a small file under a temporary name, and renames it.
func replace(path string, text []byte) error {
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	err := os.WriteFile(part, text, 0o644)
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part) // it may not exist
	}
	return err
}
