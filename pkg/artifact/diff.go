package artifact

import (
	"reflect"
	"slices"
	"strings"
)

// Difference is what distinguishes two files.
type Difference struct {
	Added   []Item   `json:"added"`
	Removed []Item   `json:"removed"`
	Changed []Change `json:"changed"`
	Bytes   int64    `json:"bytes"` // size of the blobs that a delta has
}

// Change is an item in another version, or with other contents.
type Change struct {
	Old Item `json:"old"`
	New Item `json:"new"`
}

// Diff compares the manifests of two files. Items of both lists are in their order.
func Diff(from, to *Manifest) Difference {
	d := Difference{Added: []Item{}, Removed: []Item{}, Changed: []Change{}}
	was, is := bySubject(without(from.Items, to.Items)), bySubject(without(to.Items, from.Items))
	for _, item := range without(to.Items, from.Items) {
		subject := item.subject()
		if n := len(is[subject]) - len(was[subject]); n > 0 { // the oldest of several versions have none before
			d.Added = append(d.Added, item)
		} else {
			d.Changed = append(d.Changed, Change{was[subject][0], item})
			was[subject] = was[subject][1:]
		}
		is[subject] = is[subject][1:]
	}
	for _, item := range from.Items {
		subject := item.subject()
		if len(was[subject]) > 0 && reflect.DeepEqual(was[subject][0], item) {
			d.Removed = append(d.Removed, item)
			was[subject] = was[subject][1:]
		}
	}
	has := make(map[Blob]bool, len(from.Blobs))
	for _, b := range from.Blobs {
		has[b] = true
	}
	for _, b := range to.Blobs {
		if !has[b] {
			d.Bytes += b.Size
		}
	}
	return d
}

// without returns the items of a list that are not the same in another one.
func without(list, other []Item) []Item {
	same := make(map[string]Item, len(other))
	for _, i := range other {
		same[i.key()] = i
	}
	return slices.DeleteFunc(slices.Clone(list), func(i Item) bool {
		o, ok := same[i.key()]
		return ok && reflect.DeepEqual(i, o)
	})
}

func bySubject(items []Item) map[string][]Item {
	lists := map[string][]Item{}
	for _, i := range items {
		lists[i.subject()] = append(lists[i.subject()], i)
	}
	return lists
}

// subject is what the versions of an item have in common.
func (i Item) subject() string {
	name := i.Name
	if i.Kind == KindImage {
		name = Repository(name)
	}
	if i.IsAttached() {
		_, suffix := AttachedTo(i.Name)
		name += ":" + suffix
	}
	return strings.Join([]string{string(i.Kind), name, i.Architecture, i.Distribution}, "\x00")
}

// Repository returns the reference of an image without tag and digest.
func Repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndexByte(ref, ':'); colon > strings.LastIndexByte(ref, '/') {
		return ref[:colon]
	}
	return ref
}
