package artifacttest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// What cosign writes (sigstore/cosign, specs/SIGNATURE_SPEC.md).
const (
	payloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureOf = "dev.cosignproject.cosign/signature"
)

// payload is what is signed: a document of containers/image ("simple signing").
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// Key is a new key for signatures.
func Key(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

// Signature is a signature of a manifest as cosign pushes it, under the tag sha256-HEX.sig.
func Signature(t testing.TB, ref string, digest v1.Hash, key *ecdsa.PrivateKey) v1.Image {
	t.Helper()
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return AddSignature(t, image, ref, digest, key)
}

// AddSignature adds a signature to others, as cosign does.
func AddSignature(t testing.TB, image v1.Image, ref string, digest v1.Hash, key *ecdsa.PrivateKey) v1.Image {
	t.Helper()
	var p payload
	p.Critical.Identity.Reference, p.Critical.Image.Digest = ref, digest.String()
	p.Critical.Type = "cosign container image signature"
	text, err := json.Marshal(p)
	check(t, err)
	sum := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	check(t, err)
	image, err = mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(text, payloadType),
		Annotations: map[string]string{signatureOf: base64.StdEncoding.EncodeToString(signature)}})
	check(t, err)
	return image
}

// CheckSignature verifies a signature of a manifest with a public key, as cosign does: one of the image's must be
// right.
func CheckSignature(image v1.Image, digest v1.Hash, key *ecdsa.PublicKey) error {
	m, err := image.Manifest()
	if err != nil {
		return err
	}
	for _, d := range m.Layers {
		layer, err := image.LayerByDigest(d.Digest)
		if err != nil {
			return err
		}
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		signature, err := base64.StdEncoding.DecodeString(d.Annotations[signatureOf])
		if err != nil {
			return err
		}
		var p payload
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		if p.Critical.Image.Digest == digest.String() && ecdsa.VerifyASN1(key, sum[:], signature) {
			return nil
		}
	}
	return fmt.Errorf("none of %d signatures of %s is right", len(m.Layers), digest)
}

// Referrer is a manifest that names another one as its subject: an artifact of the image specification 1.1.
func Referrer(t testing.TB, to partial.Describable, kind, text string) v1.Image {
	t.Helper()
	d, err := partial.Descriptor(to)
	check(t, err)
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.MediaType(kind))
	image, err = mutate.Append(image, mutate.Addendum{Layer: static.NewLayer([]byte(text), types.MediaType(kind))})
	check(t, err)
	image, _ = mutate.Annotations(image, map[string]string{"made": "by a test", "text": text}).(v1.Image)
	image, _ = mutate.Subject(image, v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}).(v1.Image)
	return image
}

// Raw is the manifest of an image.
func Raw(t testing.TB, image partial.WithRawManifest) []byte {
	t.Helper()
	text, err := image.RawManifest()
	check(t, err)
	return bytes.Clone(text)
}

// Attach puts into a layout what a registry has attached to an image of that: a signature, and an index with a
// referrer, as kk keeps them.
func Attach(t testing.TB, at layout.Path, ref string, to partial.Describable,
	key *ecdsa.PrivateKey) (signature, referrer v1.Image) {
	t.Helper()
	digest, err := to.Digest()
	check(t, err)
	named := func(suffix string) layout.Option {
		return layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": artifact.AttachedName(ref, digest, suffix)})
	}
	signature = Signature(t, ref, digest, key)
	check(t, at.AppendImage(signature, named(".sig")))
	referrer = Referrer(t, to, "application/vnd.example.sbom", "about "+ref)
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: referrer})
	check(t, at.AppendIndex(index, named("")))
	return signature, referrer
}
