package signature

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// token is an agent with a security key in software, which signs as PROTOCOL.u2f of OpenSSH describes.
type token struct {
	agent.Agent // of the other methods, none is called
	public      ssh.PublicKey
	flags       byte
	sign        func(message []byte) []byte
}

const application = "ssh:"

func (k *token) List() ([]*agent.Key, error) {
	return []*agent.Key{{Format: k.public.Type(), Blob: k.public.Marshal(), Comment: "security key"}}, nil
}

func (k *token) Sign(_ ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	about, content := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	rest := binary.BigEndian.AppendUint32([]byte{k.flags}, 7) // how often it has signed
	signature := k.sign(slices.Concat(about[:], rest, content[:]))
	return &ssh.Signature{Format: k.public.Type(), Blob: signature, Rest: rest}, nil
}

func publicKey(t *testing.T, fields any) ssh.PublicKey {
	t.Helper()
	key, err := ssh.ParsePublicKey(ssh.Marshal(fields))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ed25519Token(t *testing.T) *token {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &token{
		public: publicKey(t, struct {
			Type        string
			Key         []byte
			Application string
		}{ssh.KeyAlgoSKED25519, public, application}),
		sign: func(message []byte) []byte { return ed25519.Sign(private, message) },
	}
}

func ecdsaToken(t *testing.T) *token {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := private.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return &token{
		public: publicKey(t, struct {
			Type, Curve string
			Key         []byte
			Application string
		}{ssh.KeyAlgoSKECDSA256, "nistp256", public, application}),
		sign: func(message []byte) []byte {
			digest := sha256.Sum256(message)
			r, s, err := ecdsa.Sign(rand.Reader, private, digest[:])
			if err != nil {
				t.Error(err)
				return nil
			}
			return ssh.Marshal(struct{ R, S *big.Int }{r, s})
		},
	}
}

// What a security key in the agent signs, ssh-keygen and kk accept. Without a touch, ssh-keygen does.
func TestSecurityKeys(t *testing.T) {
	for name, key := range map[string]*token{"ed25519-sk": ed25519Token(t), "ecdsa-sk": ecdsaToken(t)} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.write("ada.pub", string(ssh.MarshalAuthorizedKey(key.public)))
			allowed := s.allow("ada KEY(ada)")
			k := s.keys()
			k.Agent = s.path("agent.sock")
			l, err := net.Listen("unix", k.Agent)
			s.must(err)
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_ = agent.ServeAgent(key, conn) // until the client closes the connection
					_ = conn.Close()
				}
			}()
			for touched, flags := range map[bool]byte{true: 1, false: 0} {
				key.flags = flags
				for _, named := range []string{"", "ada.pub"} {
					text := s.sign(k, named)
					s.must(s.keygenVerifies(text, "ada"))
					got, err := Verify(manifest, [][]byte{text}, allowed, time.Now())
					if touched && (err != nil || got != "ada") {
						t.Errorf("%q, %v", got, err)
					}
					if !touched && (err == nil || !strings.Contains(err.Error(), "without a touch")) {
						t.Errorf("without a touch: %q, %v", got, err)
					}
				}
			}
		})
	}
}
