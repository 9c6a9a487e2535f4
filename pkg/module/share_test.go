package module

import (
	"errors"
	"sync"
	"testing"
)

func TestShareWorksOnceForAKey(t *testing.T) {
	var s Share
	var mu sync.Mutex
	calls := 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			v, err := s.Do("k", func() (any, error) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				return calls, nil
			})
			if v != 1 || err != nil {
				t.Errorf("got %v, %v", v, err)
			}
		}()
	}
	wg.Wait()
	if calls != 1 {
		t.Errorf("the work was done %d times", calls)
	}
}

func TestShareTriesAgainWhatFailed(t *testing.T) {
	var s Share
	failed := errors.New("failed")
	if _, err := s.Do("k", func() (any, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if v, err := s.Do("k", func() (any, error) { return "ok", nil }); v != "ok" || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestShareForgetsWhenThereIsTooMuch(t *testing.T) {
	var s Share
	for i := range maxShared + 10 {
		if v, _ := s.Do(string(rune(i)), func() (any, error) { return i, nil }); v != i {
			t.Fatalf("got %v, want %d", v, i)
		}
	}
	if len(s.done) > maxShared {
		t.Errorf("%d entries are kept", len(s.done))
	}
}

func TestNoShareWorksEachTime(t *testing.T) {
	var s *Share
	for i := range 3 {
		if v, _ := s.Do("k", func() (any, error) { return i, nil }); v != i {
			t.Errorf("got %v, want %d", v, i)
		}
	}
}
