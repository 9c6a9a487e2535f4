package floors

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var floorRow = regexp.MustCompile("(?m)^\\| `(pkg/[a-z/]+)` \\| (\\d+) \\|")

// TestManualHasTheFloors compares the table of docs/architecture.md with the
// one that the rules are checked by.
func TestManualHasTheFloors(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for _, m := range floorRow.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		said[m[1]] = n
	}
	for folder, floor := range floors {
		if !strings.HasPrefix(folder, "pkg/") {
			continue
		}
		switch n, ok := said[folder]; {
		case !ok:
			t.Errorf("%s is not in the table", folder)
		case n != floor:
			t.Errorf("%s is on floor %d, and the table says %d", folder, floor, n)
		}
		delete(said, folder)
	}
	for folder := range said {
		t.Errorf("%s is in the table, and test/floors does not know it", folder)
	}
}
