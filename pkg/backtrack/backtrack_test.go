package backtrack

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
)

func TestFind(t *testing.T) {
	re, err := Compile(`(?<=a)(\w)\1`, regexp2.None, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	m, err := re.Find("abbaccadd")
	for ; err == nil && m != nil; m, err = re.Next(m) {
		found = append(found, m.String())
	}
	if got := strings.Join(found, " "); err != nil || got != "bb cc dd" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Compile(`(`, regexp2.None, time.Second); err == nil {
		t.Error("a wrong expression compiled")
	}
}

func TestLimit(t *testing.T) {
	re, err := Compile(`^(?=(a+)+$)`, regexp2.None, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := re.Find(strings.Repeat("a", 40) + "!"); err == nil {
		t.Error("a match without an end ended")
	}
}

func TestSecondChance(t *testing.T) {
	for failures, fails := range []bool{false, false, true} {
		calls := 0
		_, err := again(func() (*regexp2.Match, error) {
			if calls++; calls <= failures {
				return nil, errors.New("match timeout")
			}
			return nil, nil
		})
		if fails != (err != nil) || calls > 2 {
			t.Errorf("%d failures: %d calls, %v", failures, calls, err)
		}
	}
}
