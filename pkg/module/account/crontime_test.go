package account

import (
	"strings"
	"testing"
)

func TestCronTimes(t *testing.T) {
	good := map[string]string{
		"minute":  "* 0 59 05 */5 1-5 1,2,3 0-59/10 */90 0~30 ~ ~5 5~",
		"hour":    "23 0-23 22-23,0-4",
		"day":     "1 31 */2",
		"month":   "1 12 jan JAN-Dec 1,feb",
		"weekday": "0 7 mon SUN mon-fri 5-7 fri-sun sun-sat 1-5/2",
	}
	bad := map[string]string{
		"minute":  "60 61 -1 */0 */x */ 1- 1-2-3 1,,2 , a * 1;2 jan 10-5 0~60 ** *-5 1.5 +5 0x1 99999999999999999999",
		"hour":    "24 22-4",
		"day":     "0 32 mon L",
		"month":   "0 13 january dec-jan foo",
		"weekday": "8 monday mon-foo foo-mon sat-mon",
	}
	for _, r := range cronTimes() {
		field := r.Args[0]
		for _, text := range strings.Fields(good[field]) {
			if err := r.Fits(text); err != nil {
				t.Errorf("%s %s: %v", field, text, err)
			}
		}
		for _, text := range strings.Fields(bad[field]) {
			if text == "*" {
				text = "* *"
			}
			err := r.Fits(text)
			if err == nil {
				t.Errorf("%s %s is accepted", field, text)
			} else if !strings.HasPrefix(err.Error(), field+": ") {
				t.Errorf("%s %s: the error does not name the field: %v", field, text, err)
			}
		}
	}
}
