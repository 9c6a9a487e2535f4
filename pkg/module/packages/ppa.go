package packages

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
)

// ppa is a personal package archive of Launchpad: ppa:OWNER/NAME.
type ppa struct {
	owner, name, codename string
}

var ppaName = regexp.MustCompile(`^ppa:([A-Za-z0-9][A-Za-z0-9+.-]*)(?:/(?:ubuntu/)?([A-Za-z0-9][A-Za-z0-9+.-]*))?$`)

// parsePPA reads ppa:OWNER, ppa:OWNER/NAME and ppa:OWNER/ubuntu/NAME.
func parsePPA(repo, codename string) (ppa, error) {
	words := ppaName.FindStringSubmatch(strings.TrimSpace(repo))
	switch {
	case words == nil:
		//nolint:staticcheck // the text users know
		return ppa{}, fmt.Errorf("Invalid repository string: %s: write ppa:OWNER/NAME", repo)
	case codename == "" || strings.ContainsAny(codename, " \t\r\n#"):
		return ppa{}, fmt.Errorf("%s: %q is not the codename of a release: name one with codename, such as jammy", repo,
			codename)
	case words[2] == "":
		words[2] = "ppa"
	}
	return ppa{words[1], words[2], codename}, nil
}

// sources are the equivalent lines of the archive: the first is written, the others
// have former addresses of Launchpad.
func (p ppa) sources() []string {
	var all []string
	for _, base := range []string{"https://ppa.launchpadcontent.net", "http://ppa.launchpadcontent.net",
		"http://ppa.launchpad.net"} {
		all = append(all, fmt.Sprintf("deb %s/%s/%s/ubuntu %s main", base, p.owner, p.name, p.codename))
	}
	return all
}

// fileName is that of the file of sources, without .list.
func (p ppa) fileName() string {
	return strings.Trim(notWord.ReplaceAllString("ppa_"+p.owner+"_"+p.name+"_"+p.codename, "_"), "_")
}

// trust adds the key of the archive to those of apt, if it is missing. In check mode it
// only queries Launchpad for the key.
func (p ppa) trust(ctx context.Context, c *module.Call, insecure bool) error {
	fingerprint, err := p.fingerprint(ctx, c, insecure)
	if err != nil {
		return err
	}
	read := hostscript.New(aptKeyScript, "apt_key_read")
	a, err := c.Probe(ctx, read)
	if err != nil {
		return err
	}
	rings, err := keyrings(a)
	if err != nil || c.Check || slices.ContainsFunc(rings, func(r *keyring) bool { return r.find(fingerprint) != nil }) {
		return err
	}
	data, err := fetchOnHost(ctx, c, keyserverURL("hkp://keyserver.ubuntu.com:80", fingerprint), insecure)
	if err != nil {
		return err
	}
	keys, err := readKeys(data)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", p.owner, p.name, err)
	}
	ring := &keyring{path: "/etc/apt/trusted.gpg.d/" + p.owner + "-ubuntu-" + p.name + ".gpg", after: keys}
	key := ring.find(fingerprint)
	if key == nil || key.fingerprint != fingerprint {
		return fmt.Errorf("the key server did not return the key %s of %s/%s", fingerprint, p.owner, p.name)
	}
	ring.after = []pgpKey{*key}
	return saveRings(ctx, c, []*keyring{ring})
}

// fingerprint is that of the archive's signing key, from Launchpad.
func (p ppa) fingerprint(ctx context.Context, c *module.Call, insecure bool) (string, error) {
	data, err := fetchOnHost(ctx, c, "https://api.launchpad.net/1.0/~"+p.owner+"/+archive/"+p.name, insecure)
	if err != nil {
		return "", fmt.Errorf("failed to fetch PPA information: %w", err)
	}
	var about struct {
		Key string `json:"signing_key_fingerprint"`
	}
	if err := json.Unmarshal(data, &about); err != nil {
		return "", fmt.Errorf("read the answer of Launchpad for %s/%s: %w", p.owner, p.name, err)
	}
	id, err := parseKeyID(about.Key)
	if err != nil || len(id) < 40 {
		return "", errors.New("Launchpad has no signing key for " + p.owner + "/" + p.name +
			": nothing is published there yet")
	}
	return id, nil
}

// fetchOnHost fetches a URL from the host.
func fetchOnHost(ctx context.Context, c *module.Call, url string, insecure bool) ([]byte, error) {
	s := hostscript.New(aptKeyScript, "apt_key_fetch").Set("url", url).Flag("insecure", insecure)
	a, err := c.Probe(ctx, s)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(a.Get("key"))
}
