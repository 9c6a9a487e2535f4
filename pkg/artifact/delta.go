package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A delta is a file that lacks the blobs that another one, its base, has. It has the whole manifest of
// what both make together, so signatures of that stay valid.

// deltaInfo is the text of the entry kk/delta.json.
type deltaInfo struct {
	Base   string   `json:"base"`   // digest of the manifest of the base
	Absent []string `json:"absent"` // digests of the blobs that are in the base only
}

// absent returns the digests as a set. d may be nil.
func (d *deltaInfo) absent() map[string]bool {
	if d == nil {
		return nil
	}
	set := make(map[string]bool, len(d.Absent))
	for _, digest := range d.Absent {
		set[digest] = true
	}
	return set
}

// newDelta describes the file with the manifest m that lacks what base has.
func newDelta(m, base *Manifest) (*deltaInfo, error) {
	digest, err := base.Digest()
	if err != nil {
		return nil, err
	}
	if own, err := m.Digest(); err != nil || own == digest {
		return nil, errors.Join(errors.New("the file has the manifest of its base: nothing is new"), err)
	}
	has := make(map[Blob]bool, len(base.Blobs))
	for _, b := range base.Blobs {
		has[b] = true
	}
	d := &deltaInfo{Base: digest, Absent: []string{}}
	for _, b := range m.Blobs {
		if has[b] {
			d.Absent = append(d.Absent, b.Digest)
		}
	}
	return d, nil
}

// parseDelta reads the entry kk/delta.json of the file with the manifest m.
func parseDelta(text []byte, m *Manifest, own string) (*deltaInfo, error) {
	d := &deltaInfo{}
	if err := decodeJSON(text, d); err != nil {
		return nil, fmt.Errorf("read %s: %w", deltaName, err)
	}
	if !isDigest(d.Base) || d.Base == own {
		return nil, fmt.Errorf("%s: %q is not the digest of another manifest", deltaName, d.Base)
	}
	for i, digest := range d.Absent {
		if i > 0 && digest <= d.Absent[i-1] {
			return nil, fmt.Errorf("%s: blob %s is listed twice or out of order", deltaName, digest)
		}
		if _, ok := m.find(digest); !ok {
			return nil, fmt.Errorf("%s: blob %s is not in %s", deltaName, digest, manifestName)
		}
	}
	return d, nil
}

// Base returns the digest of the manifest that a delta is based on, or "" for a whole file.
func (f *File) Base() string {
	if f.delta == nil {
		return ""
	}
	return f.delta.Base
}

// link connects each delta with its base, and brings the files into their order: a delta before its base,
// otherwise as they were.
func (s Set) link() error {
	byDigest := map[string]*File{}
	for _, f := range s {
		if known := byDigest[f.digest]; known == nil || known.delta != nil {
			byDigest[f.digest] = f
		}
	}
	var problems []error
	for _, f := range s {
		if f.delta != nil {
			problems = append(problems, f.linkTo(byDigest[f.delta.Base], s))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	depth := func(f *File) (n int) {
		for ; f.base != nil && n < len(s); n++ {
			f = f.base
		}
		return n
	}
	if i := slices.IndexFunc(s, func(f *File) bool { return depth(f) == len(s) }); i >= 0 {
		return fmt.Errorf("%s and its bases are all deltas: name the whole file too that they are based on", s[i].Path)
	}
	slices.SortStableFunc(s, func(a, b *File) int { return depth(b) - depth(a) })
	return nil
}

func (f *File) linkTo(base *File, given Set) error {
	if base == nil {
		var others []string
		for _, o := range given {
			if o != f {
				others = append(others, fmt.Sprintf("%s has the manifest %s", o.Path, o.digest))
			}
		}
		return f.noBase(others...)
	}
	for _, digest := range f.delta.Absent {
		i, _ := f.Manifest.find(digest)
		j, ok := base.Manifest.find(digest)
		if !ok || base.Manifest.Blobs[j] != f.Manifest.Blobs[i] {
			return fmt.Errorf("%s: blob %s is in neither this delta nor its base %s: make the delta again", f.Path, digest,
				base.Path)
		}
	}
	f.base = base
	return nil
}

// noBase is the error of a delta whose base is not known.
func (f *File) noBase(others ...string) error {
	text := fmt.Sprintf("%s is a delta for the file with the manifest %s: name that file too", f.Path, f.delta.Base)
	for _, o := range others {
		text += "; " + o
	}
	return errors.New(text)
}

// Delta writes the file at path that makes, with the file that has the manifest old, all of a newer one.
// What the newer file was signed with is in there too. changed is false, and nothing is written, if the
// file exists with these contents.
func Delta(ctx context.Context, old *Manifest, newer *File, path string, o Options) (changed bool, err error) {
	b, err := newer.builder()
	if err != nil {
		return false, err
	}
	o.Base = old
	return b.Write(ctx, path, o)
}

// Merge writes the whole file that a set makes. Of a base and its deltas these are the bytes that the
// newest one was made from, with its signatures; for other files see Set.Join. changed is false, and
// nothing is written, if the file exists with these contents.
func Merge(ctx context.Context, set Set, path string, o Options) (changed bool, err error) {
	b, err := set.Join()
	if err != nil {
		return false, err
	}
	return b.Write(ctx, path, o)
}
