// Package signature signs the manifests of offline files with SSH keys, and verifies that. The format is that of
// `ssh-keygen -Y sign` and `-Y verify` with the namespace kk-artifact
// (https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.sshsig); who may sign is in a file in the
// format of ALLOWED SIGNERS in ssh-keygen(1).
package signature

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Namespace is that of signatures of offline files. Signatures made for another purpose are not accepted.
const Namespace = "kk-artifact"

// ErrUnsigned means that a file has no signature.
var ErrUnsigned = errors.New("it is not signed: sign it with `kk artifact sign`, or use a file that is")

// Verify checks that one of the signatures is valid for the bytes of a manifest, and that its key was allowed to
// sign at a time. It returns the principal that the key is listed for. Otherwise the error has the reason for
// each signature.
func Verify(manifest []byte, signatures [][]byte, allowed *Allowed, at time.Time) (principal string, err error) {
	if len(signatures) == 0 {
		return "", ErrUnsigned
	}
	var problems []error
	for _, text := range signatures {
		key, err := Check(manifest, text)
		if err == nil {
			principal, err = allowed.find(key.public, at)
		}
		if err == nil {
			return principal, nil
		}
		problems = append(problems, err)
	}
	return "", errors.Join(problems...)
}

// Key is a public key.
type Key struct{ public ssh.PublicKey }

// Fingerprint identifies the key as ssh-keygen -l prints it: SHA256:BASE64.
func (k Key) Fingerprint() string { return ssh.FingerprintSHA256(plain(k.public)) }

// Is reports whether two keys are the same, with or without certificates.
func (k Key) Is(o Key) bool { return bytes.Equal(plain(k.public).Marshal(), plain(o.public).Marshal()) }

// Line returns the line of an allowed_signers file that lets the key sign offline files for a principal.
func (k Key) Line(principal string) string {
	return fmt.Sprintf("%s namespaces=\"%s\" %s", principal, Namespace, ssh.MarshalAuthorizedKey(plain(k.public)))
}

// plain returns the key of a certificate, or the key itself.
func plain(k ssh.PublicKey) ssh.PublicKey {
	if c, ok := k.(*ssh.Certificate); ok {
		return c.Key
	}
	return k
}

// Check checks that a signature is valid for the bytes of a manifest, and returns its key. That key can be
// anyone's.
func Check(manifest, text []byte) (Key, error) {
	s, err := sshsig.Unarmor(text)
	if err != nil {
		return Key{}, fmt.Errorf("the signature is damaged: %w", err)
	}
	key := Key{s.PublicKey}
	if s.Namespace != Namespace {
		return key, fmt.Errorf("the signature of the key %s is for the namespace %q, not for %s", key.Fingerprint(),
			s.Namespace, Namespace)
	}
	if err := strong(plain(s.PublicKey).Type(), s.Signature.Format); err != nil {
		return key, err
	}
	if err := sshsig.Verify(bytes.NewReader(manifest), s, s.PublicKey, s.HashAlgorithm, Namespace); err != nil {
		why := "it is not for this manifest, or damaged"
		if strings.HasPrefix(s.Signature.Format, "sk-") {
			why = "it is not for this manifest, damaged, or was made without a touch of the security key, which kk requires"
		}
		return key, fmt.Errorf("the signature of the key %s is wrong: %s (%w)", key.Fingerprint(), why, err)
	}
	return key, nil
}

// strong rejects signatures of RSA keys with SHA-1, which the format does not allow. The library does that for
// keys only, not for certificates.
func strong(kind, format string) error {
	if kind == ssh.KeyAlgoRSA && format != ssh.KeyAlgoRSASHA256 && format != ssh.KeyAlgoRSASHA512 {
		return fmt.Errorf("the signature has the algorithm %q, which is not accepted", format)
	}
	return nil
}
