package sbom

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"kubekey/pkg/artifact"
)

// Package URLs, of the purl specification: https://github.com/package-url/purl-spec

// purl joins the parts of a package URL. Names may have slashes. Qualifiers without a value are left away.
func purl(kind, name, version string, qualifiers ...string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = percent(parts[i])
	}
	out := "pkg:" + kind + "/" + strings.Join(parts, "/")
	if version != "" {
		out += "@" + percent(version)
	}
	sign := "?"
	for i := 0; i+1 < len(qualifiers); i += 2 {
		if qualifiers[i+1] != "" {
			out += sign + qualifiers[i] + "=" + percent(qualifiers[i+1])
			sign = "&"
		}
	}
	return out
}

// percent encodes everything but what a package URL may contain anywhere.
func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(".-_~:", c) >= 0:
			b.WriteByte(c)
		default:
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// modulePURL is that of a Go module.
func modulePURL(m module) string { return purl("golang", strings.ToLower(m.Path), m.Version) }

// packPURL is that of a package, "" if its distribution is not known.
func packPURL(p pack, r osRelease) string {
	if r.ID == "" {
		return ""
	}
	distro := strings.TrimSuffix(r.ID+"-"+r.Version, "-")
	return purl(p.Type, r.ID+"/"+strings.ToLower(p.Name), p.Version, "arch", p.Architecture, "distro", distro)
}

// imagePURL is that of an image, "" if its name is not one of images.
func imagePURL(i artifact.Item) string {
	r, err := name.ParseReference(i.Name)
	if err != nil {
		return ""
	}
	repository := strings.ToLower(r.Context().Name())
	return purl("oci", path.Base(repository), "sha256:"+i.SHA256, "arch", i.Architecture, "repository_url", repository,
		"tag", imageTag(i.Name))
}

// imageTag is the tag in the name of an image, "" if it has none.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	return text(strings.TrimPrefix(strings.TrimPrefix(image, artifact.Repository(image)), ":"))
}

// address returns a source if it is a URL that a document can name.
func address(source string) string {
	u, err := url.Parse(source)
	if err != nil || !strings.HasPrefix(cmp.Or(u.Scheme, "-"), "http") || u.Host == "" {
		return ""
	}
	u.User = nil // a document is public
	out := u.String()
	invalid := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"{}|\\^`", r) }
	if strings.ContainsFunc(out, invalid) {
		return "" // not valid in a document
	}
	return out
}
