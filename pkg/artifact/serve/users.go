package serve

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"
)

// Users are those who may read. Passwords are not kept, only digests with a key of this process.
type Users struct {
	key    []byte
	hashes map[string][]byte // bcrypt, by user
	turns  chan struct{}     // one element for each bcrypt that is computed: it takes a core for a while

	mu   sync.Mutex
	sums [][]byte // of users with their passwords
}

// maxUsers is the size of a file of users that is read.
const maxUsers = 1 << 20

// ReadUsers reads a file with a line USER:PASSWORD for each user, as plain text or as `htpasswd -B` writes it; lines
// that begin with # are comments. Nobody else may have permissions for the file. All problems are reported.
func ReadUsers(path string) (*Users, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has the mode %04o, so others can read or change the passwords: chmod 600 %s", path,
			info.Mode().Perm(), path)
	}
	if !info.Mode().IsRegular() || info.Size() > maxUsers {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxUsers)
	}
	u := &Users{key: make([]byte, sha256.Size), hashes: map[string][]byte{}, turns: make(chan struct{}, 2)}
	_, _ = rand.Read(u.key) // never fails
	var problems []error
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		name, password, _ := strings.Cut(line, ":")
		err := u.add(name, password)
		if seen[name] {
			err = errors.New("this user has a line already")
		}
		seen[name] = true
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", path, n, err))
		}
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", path, err))
	}
	if len(seen) == 0 && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s has no users: add a line USER:PASSWORD", path))
	}
	return u, errors.Join(problems...)
}

// foreign are the beginnings of hashes that are not read.
var foreign = []string{"$apr1$", "$1$", "$5$", "$6$", "{SHA}", "$argon2", "$y$"}

func (u *Users) add(name, password string) error {
	if name == "" || password == "" {
		return errors.New("write USER:PASSWORD")
	}
	for _, start := range foreign {
		if strings.HasPrefix(password, start) {
			return fmt.Errorf("hashes that begin with %s are not supported: make one with htpasswd -B", start)
		}
	}
	if !strings.HasPrefix(password, "$2") {
		u.sums = append(u.sums, u.sum(name, password))
		return nil
	}
	if _, err := bcrypt.Cost([]byte(password)); err != nil {
		return errors.New("this is not a bcrypt hash: make one with htpasswd -B")
	}
	u.hashes[name] = []byte(password)
	return nil
}

// sum is a digest that only this process can compute.
func (u *Users) sum(name, password string) []byte {
	h := hmac.New(sha256.New, u.key)
	fmt.Fprintf(h, "%d:%s:%s", len(name), name, password)
	return h.Sum(nil)
}

// allow reports whether a user has this password. Its time does not depend on which users exist.
func (u *Users) allow(ctx context.Context, name, password string) bool {
	sum := u.sum(name, password)
	if u.known(sum) {
		return true
	}
	if len(u.hashes) == 0 {
		return false
	}
	hash, exists := u.hashes[name]
	if !exists {
		for _, hash = range u.hashes {
			break // compared with, so that it takes as long
		}
	}
	select {
	case u.turns <- struct{}{}:
		defer func() { <-u.turns }()
	case <-ctx.Done():
		return false
	}
	if err := bcrypt.CompareHashAndPassword(hash, []byte(password)); err != nil || !exists {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sums = append(u.sums, sum) // bcrypt for each request would take longer than most files
	return true
}

func (u *Users) known(sum []byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	found := 0
	for _, s := range u.sums {
		found |= subtle.ConstantTimeCompare(s, sum)
	}
	return found == 1
}

// Protect returns a handler that requires a user and a password: basic authentication.
func (u *Users) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, ok := r.BasicAuth()
		if ok && u.allow(r.Context(), name, password) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="kk", charset="UTF-8"`)
		fail(w, r, isRegistry(r), http.StatusUnauthorized, "UNAUTHORIZED", "a user and a password are required")
	})
}
