package artifact

import (
	"context"
	"errors"
	"slices"
)

// Set is an offline file, or several: a base and its deltas, or independent ones. A delta stands before
// its base, so what is newest is found first.
type Set []*File

// OpenSet opens files, and links deltas to their bases. All problems are reported.
func OpenSet(paths []string) (Set, error) {
	var s Set
	var problems []error
	for _, p := range paths {
		f, err := Open(p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s = append(s, f)
	}
	if len(problems) == 0 {
		problems = append(problems, s.link())
	}
	if err := errors.Join(problems...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes all files.
func (s Set) Close() error {
	var problems []error
	for _, f := range s {
		problems = append(problems, f.Close())
	}
	return errors.Join(problems...)
}

// Find returns the first item that matches, and the file that has it.
func (s Set) Find(matches func(Item) bool) (*File, Item, bool) {
	for _, f := range s {
		if i := slices.IndexFunc(f.Manifest.Items, matches); i >= 0 {
			return f, f.Manifest.Items[i], true
		}
	}
	return nil, Item{}, false
}

// File returns the item with this name in the catalog's cache.
func (s Set) File(name string) (*File, Item, bool) {
	return s.Find(func(i Item) bool { return i.Kind != KindImage && i.File == name })
}

// Image returns the image with this reference.
func (s Set) Image(ref string) (*File, Item, bool) {
	return s.Find(func(i Item) bool { return i.Kind == KindImage && i.Name == ref })
}

// Verify reads every byte of the files, and what they refer to in each other, once. See File.Verify.
func (s Set) Verify(ctx context.Context, progress func(done, total int64)) error {
	v := &verification{ctx: ctx, progress: progress}
	for _, f := range s {
		v.add(f, nil)
	}
	return v.run()
}
