package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kubekey/pkg/value"
)

// hashed reports whether append_hash applies to the object.
func (o object) hashed() bool { return o.kind() == "ConfigMap" || o.kind() == "Secret" }

// digest is what append_hash adds to the name of a ConfigMap or Secret: ten
// characters of the SHA-256 of its data, kind, name and, of a Secret, its type,
// as JSON in the order of their names. The letters are such that no word
// comes out: this is kubectl's way, and Ansible's.
func (o object) digest(nameKey string) (string, error) {
	keys := []string{"data", "kind", nameKey}
	if o.kind() == "Secret" {
		keys = append(keys, "type")
	}
	var parts []string
	for _, key := range keys {
		v, there := o.Get(key)
		switch {
		case key == nameKey:
			v = o.text("metadata", nameKey)
		case !there:
			v = ""
		}
		text, err := value.JSON(v, value.JSONOptions{Compact: true, ASCII: true, SortKeys: true})
		if err != nil {
			return "", fmt.Errorf("%s: %w", o, err)
		}
		parts = append(parts, `"`+key+`":`+text)
	}
	sum := sha256.Sum256([]byte("{" + strings.Join(parts, ",") + "}"))
	return strings.NewReplacer("0", "g", "1", "h", "3", "k", "a", "m", "e",
		"t").Replace(hex.EncodeToString(sum[:])[:10]), nil
}

// appendHash appends a hash of the content to the name of the object.
func (o object) appendHash() error {
	if !o.hashed() {
		return nil
	}
	meta, ok := o.at("metadata").(*value.Dict)
	if !ok {
		return nil
	}
	nameKey := "name"
	if o.name() == "" {
		nameKey = "generateName"
	}
	if o.text("metadata", nameKey) == "" {
		return nil
	}
	hash, err := o.digest(nameKey)
	meta.Set(nameKey, o.text("metadata", nameKey)+"-"+hash)
	return err
}
