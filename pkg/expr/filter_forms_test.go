package expr_test

import (
	"kubekey/pkg/expr"
	"testing"
)

func TestSearchWithoutMatchAsksForNoGroup(t *testing.T) {
	wantValue(t, `'text' | regex_search('x(y)', '\\1')`, expr.Names{}, "None")
	wantValue(t, `'text' | regex_search('z', '\\1')`, expr.Names{}, "None")
	wantError(t, `'text' | regex_search('x', '\\1')`, expr.Names{}, "no such group: 1")
	wantError(t, `'text' | regex_search('z', 'x')`, expr.Names{}, "Unknown argument")
}

func TestTimeAsJSON(t *testing.T) {
	wantValue(t, `'2020-01-02 03:04:05' | to_datetime | to_json`, expr.Names{}, `'"2020-01-02T03:04:05"'`)
	wantValue(t, `'2020-01-02 03:04:05' | to_datetime | string`, expr.Names{}, "'2020-01-02 03:04:05'")
}
