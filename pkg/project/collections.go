package project

import (
	"path"
	"slices"
	"strings"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
)

// collectionsFolder is the directory in each collection path that contains the collections, as NAMESPACE/NAME.
const collectionsFolder = "ansible_collections"

// collectionRoots returns the directories that are searched for collections: the one next to the playbook, and the
// configured ones. A configured directory can itself be named ansible_collections.
func (l *Linker) collectionRoots(playDir string) []string {
	var out []string
	for _, dir := range append([]string{playDir + "/collections"}, l.CollectionPaths...) {
		if path.Base(dir) != collectionsFolder {
			dir = source.Join(dir, collectionsFolder)
		}
		out = append(out, dir)
	}
	return out
}

// collectionDir returns the directory of a collection (NAMESPACE.NAME).
func (l *Linker) collectionDir(name, playDir string) (string, bool) {
	for _, root := range l.collectionRoots(playDir) {
		if p := source.Join(root, strings.Replace(name, ".", "/", 1)); l.Tree.IsDir(p) {
			return p, true
		}
	}
	return "", false
}

// splitFull splits a full name: NAMESPACE.NAME.rest is rest in the collection NAMESPACE.NAME.
func splitFull(name string) (collection, rest string, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) < 3 || slices.ContainsFunc(parts, func(p string) bool { return !playbook.IsIdentifier(p) }) {
		return "", "", false
	}
	return parts[0] + "." + parts[1], strings.Join(parts[2:], "."), true
}

// collectionRole finds a role of a collection, either by its full name or by its plain name in the collections of the
// place. In a full name, the parts after the third are names of subdirectories.
func (l *Linker) collectionRole(name string, where place) (dir, collection string, ok bool) {
	within, plain := where.collections(), name
	if collection, rest, full := splitFull(name); full {
		within, plain = []string{collection}, strings.ReplaceAll(rest, ".", "/")
	}
	for _, c := range within {
		base, ok := l.collectionDir(c, where.play.Dir)
		if p := source.Join(base, "roles/"+plain); ok && l.Tree.IsDir(p) {
			return p, c, true
		}
	}
	return "", "", false
}

// collections returns the collections that are searched for plain role names. In a role these are its own collection
// and those of its meta file, elsewhere those of the keyword.
func (p place) collections() []string {
	if p.role != nil {
		return p.role.collections
	}
	return p.attrs.Collections
}

// collectionPlaybook returns the file of a playbook that import_playbook specifies by its full name.
func (l *Linker) collectionPlaybook(name, playDir string) (string, bool) {
	collection, rest, ok := splitFull(name)
	if !ok {
		return "", false
	}
	dir, ok := l.collectionDir(collection, playDir)
	if !ok {
		return "", false
	}
	return l.mainFile(dir+"/playbooks", strings.ReplaceAll(rest, ".", "/"))
}

// collectionNames returns the collections of a keyword. A collection on disk can contain roles. For any other, only
// kk's own modules are available.
func (l *Linker) collectionNames(values []playbook.Value, playDir string, ds *source.Diagnostics) []string {
	var out []string
	for _, v := range values {
		name := v.Text()
		out = append(out, name)
		if _, onDisk := l.collectionDir(name, playDir); onDisk || l.Modules.HasCollection(name) ||
			l.Engine.Env().HasCollection(name) {
			continue
		}
		ds.Add(source.Warningf(v.At(), "kk has no modules of the collection %q", name).
			WithHelp("`kk doc` lists the modules that there are, under their plain names"))
	}
	return out
}
