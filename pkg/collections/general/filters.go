package general

import (
	"fmt"
	"hash/crc32"
	"slices"

	"golang.org/x/text/unicode/norm"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

// Library returns the filters of community.general. kk's own playbooks do not use them: they are for users who
// transform lists, dictionaries and times in templates.
func Library() expr.Library {
	return expr.Library{Filters: slices.Concat(generalFilters(), keyFilters(filters.NewPatterns()), unitFilters())}
}

// generalFilters returns the filters of community.general for lists and dictionaries.
func generalFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "from_csv", Of: "community.general", Params: "dialect fieldnames delimiter skipinitialspace strict",
			Do: filterFromCSV},
		{Names: "counter", Of: "community.general", Do: filterCounter},
		{Names: "dict_kv", Of: "community.general", Params: "key!", Do: filterDictKV},
		{Names: "groupby_as_dict", Of: "community.general", Params: "attribute!", Do: filterGroupByAsDict},
		{Names: "crc32", Of: "community.general", Do: filterCRC32},
		{Names: "random_mac", Of: "community.general", Params: "seed", Do: filterRandomMAC},
		{Names: "unicode_normalize", Of: "community.general", Params: "form", Do: filterUnicodeNormalize},
	}
}

// filterCounter counts how often each element occurs.
func filterCounter(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	var list []any
	switch v := in.(type) {
	case []any:
		list = v
	case string:
		for _, r := range v {
			list = append(list, string(r))
		}
	default:
		return nil, fmt.Errorf("counter needs a list or a text, got %s", expr.DescribeType(in))
	}
	out := value.NewDict()
	for _, v := range list {
		n, _ := out.Get(v)
		count, _ := n.(int)
		if err := filters.SetKey(out, v, count+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func filterDictKV(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	key := p.Raw("key", nil)
	out := value.NewDict()
	return out, filters.SetKey(out, key, in)
}

// filterGroupByAsDict converts a list to a dictionary whose keys are the values of one attribute. The values must
// be unique.
func filterGroupByAsDict(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, ok := in.([]any)
	if !ok {
		return nil, fmt.Errorf("groupby_as_dict needs a list, got %s", expr.DescribeType(in))
	}
	name, out := p.Raw("attribute", nil), value.NewDict()
	for i, v := range list {
		item, err := expr.AsDict(v)
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
		if err := filters.SetKey(out, key, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// filterCRC32 returns the checksum used by gzip, in hexadecimal.
func filterCRC32(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("crc32 needs a text, got %s", expr.DescribeType(in))
	}
	return fmt.Sprintf("%x", crc32.ChecksumIEEE([]byte(s))), nil
}

func filterUnicodeNormalize(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("unicode_normalize needs a text, got %s", expr.DescribeType(in))
	}
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
	name := p.Str("form", "NFC")
	form, ok := forms[name]
	if !ok {
		return nil, fmt.Errorf("%s is not a form: NFC, NFD, NFKC and NFKD are", value.Repr(name))
	}
	return form.String(s), nil
}
