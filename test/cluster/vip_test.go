package cluster

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// freeAddress is an address in the hosts' network that none of them has.
func (c *controller) freeAddress() string {
	address := c.lab.Hosts[0].Address
	return address[:strings.LastIndexByte(address, '.')] + ".200"
}

// holds waits until the host has the address, and fails the test if it does not get it.
func (c *controller) holds(t *testing.T, address string, number int) {
	t.Helper()
	const has = "ip -o address show | grep -w "
	for range 60 {
		if out, _ := c.lab.Exec(t.Context(), number-1, has+address); strings.Contains(out, address) {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("%s is not on %s", address, c.name(number))
}

// watchAPI asks the API server at an address ten times a second. The function that it returns stops that, and says how
// long no answer came at most, and how many came.
func watchAPI(ctx context.Context, address string) func() (longest time.Duration, answers int) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var longest time.Duration
	answers, last := 0, time.Now()
	// A connection for each question: one to a host that is off would be kept.
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if livez(ctx, client, address) {
				answers++
				longest, last = max(longest, time.Since(last)), time.Now()
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() (time.Duration, int) {
		cancel()
		<-done
		return max(longest, time.Since(last)).Round(100 * time.Millisecond), answers
	}
}

func livez(ctx context.Context, client *http.Client, address string) bool {
	url := "https://" + net.JoinHostPort(address, "6443") + "/livez"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}
