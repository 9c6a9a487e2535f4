package expr

import (
	"fmt"
	"hash/crc32"

	"golang.org/x/text/unicode/norm"

	"kubekey/pkg/value"
)

// generalFilters are those of community.general on lists and dictionaries.
func generalFilters() []filterSpec {
	return []filterSpec{
		{names: "counter", of: "community.general", do: filterCounter},
		{names: "dict_kv", of: "community.general", params: "key!", do: filterDictKV},
		{names: "groupby_as_dict", of: "community.general", params: "attribute!", do: filterGroupByAsDict},
		{names: "crc32", of: "community.general", do: filterCRC32},
		{names: "random_mac", of: "community.general", params: "seed", do: filterRandomMAC},
		{names: "unicode_normalize", of: "community.general", params: "form", do: filterUnicodeNormalize},
	}
}

// filterCounter says how often each element is there.
func filterCounter(_ *Call, in any, _ *bound) (any, error) {
	var list []any
	switch v := in.(type) {
	case []any:
		list = v
	case string:
		for _, r := range v {
			list = append(list, string(r))
		}
	default:
		return nil, fmt.Errorf("counter needs a list or a text, got %s", aType(in))
	}
	out := value.NewDict()
	for _, v := range list {
		n, _ := out.Get(v)
		count, _ := n.(int)
		if err := setKey(out, v, count+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func filterDictKV(_ *Call, in any, p *bound) (any, error) {
	key := p.raw("key", nil)
	out := value.NewDict()
	return out, setKey(out, key, in)
}

// filterGroupByAsDict makes a dictionary of dictionaries, by what each has
// under a name; no two may have the same.
func filterGroupByAsDict(_ *Call, in any, p *bound) (any, error) {
	list, ok := in.([]any)
	if !ok {
		return nil, fmt.Errorf("groupby_as_dict needs a list, got %s", aType(in))
	}
	name, out := p.raw("attribute", nil), value.NewDict()
	for i, v := range list {
		item, err := asDict(v)
		if err != nil {
			return nil, fmt.Errorf("groupby_as_dict needs a list of dictionaries; item %d: %w", i, err)
		}
		key, there := item.Get(name)
		if !there {
			return nil, fmt.Errorf("item %d of the list has no %s", i, value.Repr(name))
		}
		if out.Has(key) {
			return nil, fmt.Errorf("two items of the list have %s as their %s", value.Repr(key), value.Repr(name))
		}
		if err := setKey(out, key, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// filterCRC32 is the checksum that gzip has, in hexadecimal.
func filterCRC32(_ *Call, in any, _ *bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("crc32 needs a text, got %s", aType(in))
	}
	return fmt.Sprintf("%x", crc32.ChecksumIEEE([]byte(s))), nil
}

func filterUnicodeNormalize(_ *Call, in any, p *bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("unicode_normalize needs a text, got %s", aType(in))
	}
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
	name := p.str("form", "NFC")
	form, ok := forms[name]
	if !ok {
		return nil, fmt.Errorf("%s is not a form: NFC, NFD, NFKC and NFKD are", value.Repr(name))
	}
	return form.String(s), nil
}
