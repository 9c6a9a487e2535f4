package resume

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"kubekey/pkg/source"
)

// Digest returns a digest of a file's content up to the end of a task. For a handler it covers only the handler's own
// lines, because handlers run in a different order than they are written. The task consists of all lines that are
// indented like its first key, or deeper.
func Digest(at source.Pos, handler, header bool) string {
	if !at.IsValid() {
		return ""
	}
	lines := strings.SplitAfter(string(at.File.Text), "\n")
	start := min(at.Line-1, len(lines))
	end := min(start+1, len(lines))
	for ; !header && end < len(lines); end++ {
		line := strings.TrimRight(lines[end], " \r\n")
		if indent := len(line) - len(strings.TrimLeft(line, " ")); line != "" && indent < at.Col-1 {
			break
		}
	}
	if !handler {
		start = 0
	}
	sum := sha256.Sum256([]byte(strings.TrimRight(strings.Join(lines[start:end], ""), " \r\n")))
	return hex.EncodeToString(sum[:8])
}
