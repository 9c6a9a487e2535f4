package artifact

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// builder returns a builder that has everything that the file has, with its signatures.
func (f *File) builder() (*Builder, error) {
	b := NewBuilder("", Covers{}, nil)
	b.manifest = *f.Manifest
	b.manifest.Documents, b.manifest.Items, b.manifest.Blobs = slices.Clone(f.Manifest.Documents),
		slices.Clone(f.Manifest.Items), slices.Clone(f.Manifest.Blobs)
	for _, blob := range f.Manifest.Blobs {
		b.sources[blob.Digest] = f.Blob
	}
	for _, d := range f.Manifest.Documents {
		text, err := f.Document(d.Name)
		if err != nil {
			return nil, err
		}
		b.documents[d.Name] = text
	}
	var err error
	b.signatures, err = f.appended()
	return b, err
}

// tips returns the files that are the base of no other.
func (s Set) tips() Set {
	var tips Set
	for _, f := range s {
		if !slices.ContainsFunc(s, func(o *File) bool { return o.base != nil && o.base.digest == f.digest }) &&
			!slices.ContainsFunc(tips, func(o *File) bool { return o.digest == f.digest }) {
			tips = append(tips, f)
		}
	}
	return tips
}

// Join returns a builder of what the files of a set make together. For a base and its deltas that is the
// newest file. Files that are independent of each other, such as one for each architecture, are joined:
// the result is the file that one export for all of them would have made, but for documents such as
// SBOMs, which describe a part only and are not in it, and for signatures. Items and catalogs that
// contradict each other are errors. The set must be open until the builder is no longer used.
func (s Set) Join() (*Builder, error) {
	tips := s.tips()
	if len(tips) == 1 {
		return tips[0].builder()
	}
	b := NewBuilder("", Covers{}, nil)
	j := joiner{b: b, items: map[string]int{}, from: map[string]string{}}
	for _, f := range tips {
		j.add(f)
	}
	return b, errors.Join(j.problems...)
}

// joiner puts several files into one builder.
type joiner struct {
	b        *Builder
	items    map[string]int    // key of an item → its number
	from     map[string]string // key of an item, name of a catalog file → the file that it came from
	problems []error
}

func (j *joiner) add(f *File) {
	m := &j.b.manifest
	for i, list := range m.Covers.lists() {
		*list = append(*list, *f.Manifest.Covers.lists()[i]...)
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	j.catalog(f)
	sizes := sizesOf(m.Blobs, f.Manifest.Blobs)
	for _, item := range f.Manifest.Items {
		n, known := j.items[item.key()]
		if !known {
			j.items[item.key()], j.from[item.key()] = len(m.Items), f.Path
			m.Items = append(m.Items, item)
			continue
		}
		joined, ok := m.Items[n].join(item, sizes)
		if !ok {
			j.problems = append(j.problems, fmt.Errorf("%s has sha256 %s in %s and %s in %s: export both together", item,
				m.Items[n].SHA256, j.from[item.key()], item.SHA256, f.Path))
		}
		m.Items[n] = joined
	}
	for _, blob := range f.Manifest.Blobs {
		if _, known := j.b.sources[blob.Digest]; !known {
			m.Blobs = append(m.Blobs, blob)
			j.b.sources[blob.Digest] = f.Blob
		}
	}
}

func (j *joiner) catalog(f *File) {
	m := &j.b.manifest
	for _, d := range f.Manifest.Catalog {
		i := slices.IndexFunc(m.Catalog, func(o Document) bool { return o.Name == d.Name })
		switch {
		case i < 0:
			m.Catalog = append(m.Catalog, d)
			j.from["catalog "+d.Name] = f.Path
		case m.Catalog[i].Text != d.Text:
			j.problems = append(j.problems, fmt.Errorf("%s and %s were made with different catalogs (%s): export both "+
				"together", j.from["catalog "+d.Name], f.Path, d.Name))
		}
	}
}

func sizesOf(lists ...[]Blob) map[string]int64 {
	sizes := map[string]int64{}
	for _, list := range lists {
		for _, b := range list {
			sizes[b.Digest] = b.Size
		}
	}
	return sizes
}

// join returns the item that is in two files. Images with the same index join their platforms.
func (i Item) join(o Item, sizes map[string]int64) (Item, bool) {
	platforms, blobs := slices.Concat(i.Platforms, o.Platforms), slices.Concat(i.Blobs, o.Blobs)
	if i.Kind == KindImage {
		i.Platforms, i.Blobs, i.Size = o.Platforms, o.Blobs, o.Size
	}
	if !reflect.DeepEqual(i, o) {
		return o, false
	}
	if i.Kind != KindImage {
		return i, true
	}
	slices.Sort(platforms)
	slices.Sort(blobs)
	i.Platforms, i.Blobs, i.Size = slices.Compact(platforms), slices.Compact(blobs), 0
	for _, d := range i.Blobs {
		i.Size += sizes[d]
	}
	return i, true
}
