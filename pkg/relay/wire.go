package relay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// The control node and the program on a host exchange lines of JSON over the program's standard input and output.
// A request has an ID; its answer has the same one. The bytes of a blob follow the request "put" in frames: four
// bytes of length, most significant first, and so many bytes. The length 0 ends the blob, the largest length
// abandons it.

// Do is what a request asks for.
type Do string

// The requests.
const (
	DoStart  Do = "start"  // begin to serve
	DoList   Do = "list"   // which of Blobs are whole; others are removed
	DoFetch  Do = "fetch"  // fetch Blob from From
	DoCancel Do = "cancel" // abandon the request with the ID Of
	DoPut    Do = "put"    // store Blob, which follows
	DoUnpack Do = "unpack" // decode Blob, which is zstd, to Content
	DoRemove Do = "remove" // remove Blob
	DoPing   Do = "ping"   // answer
)

// Request is a line to the program on a host.
type Request struct {
	ID      int64   `json:"id"`
	Do      Do      `json:"do"`
	Start   *Start  `json:"start,omitempty"`
	Blobs   []Blob  `json:"blobs,omitempty"`
	Blob    *Blob   `json:"blob,omitempty"`
	Content *Blob   `json:"content,omitempty"`
	From    *Source `json:"from,omitempty"`
	Of      int64   `json:"of,omitempty"`
}

// Start is what the program on a host needs to serve. The keys are those of this run: they are in memory only.
type Start struct {
	Address string        `json:"address"` // that other hosts connect to; empty: it serves nothing
	Port    int           `json:"port"`    // 0: any free one
	Rate    int64         `json:"rate"`    // bytes per second that it serves; 0: as many as it can
	Stall   time.Duration `json:"stall"`   // how long it waits for the next byte
	Silence time.Duration `json:"silence"` // how long it lives without a line; 0: 2 minutes
	Now     time.Time     `json:"now"`     // time of the control node, for certificates: the host's clock may be wrong
	CA      []byte        `json:"ca"`      // PEM, like the others
	Cert    []byte        `json:"cert"`
	Key     []byte        `json:"key"`
}

// Quiet returns how long the program lives without a line.
func (s *Start) Quiet() time.Duration { return cmp.Or(max(0, s.Silence), 2*time.Minute) }

// Answer is a line from the program on a host.
type Answer struct {
	ID    int64  `json:"id"`
	Error string `json:"error,omitempty"`
	Fault Fault  `json:"fault,omitempty"`
	Port  int    `json:"port,omitempty"` // that it serves at
	Has   []int  `json:"has,omitempty"`  // places in Blobs of the request
}

// ProgramPrefix begins the name that the program itself has in the folder, until it runs.
const ProgramPrefix = ".kk-relay-"

// ExitBusy is the exit code of a program whose folder another run of kk uses.
const ExitBusy = 75

// Limits of what is read.
const (
	maxLine  = 1 << 20
	maxList  = 4096 // blobs in a request
	maxFrame = 1 << 20
	maxError = 1000 // bytes of a message
)

const abandoned = 1<<32 - 1

// ErrAbandoned means that the sender does not send the rest of a blob.
var ErrAbandoned = errors.New("the sender has given up")

// NewLineReader returns a reader for ReadRequest and ReadAnswer.
func NewLineReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }

// readLine reads a line without its end. A line that the input ends in is cut off, and is not returned.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("a line has more than %d bytes", maxLine)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// ReadRequest reads a request of the control node.
func ReadRequest(r *bufio.Reader) (Request, error) {
	var q Request
	line, err := readLine(r)
	if err != nil {
		return q, err
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return q, fmt.Errorf("read a request: %w", err)
	}
	return q, q.check()
}

func (q *Request) check() error {
	needs := func(what string, there bool) error {
		if there {
			return nil
		}
		return fmt.Errorf("the request %.20q has no %s", q.Do, what)
	}
	if len(q.Blobs) > maxList {
		return fmt.Errorf("a list of %d blobs: at most %d are read", len(q.Blobs), maxList)
	}
	var problems []error
	for _, b := range append([]*Blob{q.Blob, q.Content}, pointers(q.Blobs)...) {
		if b != nil {
			problems = append(problems, b.Check())
		}
	}
	switch q.Do {
	case DoList, DoCancel, DoPing:
	case DoStart:
		problems = append(problems, needs("start", q.Start != nil))
	case DoFetch:
		problems = append(problems, needs("blob", q.Blob != nil), needs("source", q.From != nil))
	case DoPut, DoRemove:
		problems = append(problems, needs("blob", q.Blob != nil))
	case DoUnpack:
		problems = append(problems, needs("blob", q.Blob != nil), needs("content", q.Content != nil))
	default:
		problems = append(problems, fmt.Errorf("there is no request %.20q", q.Do))
	}
	return errors.Join(problems...)
}

func pointers(blobs []Blob) []*Blob {
	out := make([]*Blob, len(blobs))
	for i := range blobs {
		out[i] = &blobs[i]
	}
	return out
}

// ReadAnswer reads a host's answer. What it contains is bounded and printable, but else not checked.
func ReadAnswer(r *bufio.Reader) (Answer, error) {
	var a Answer
	line, err := readLine(r)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("not an answer of kk-relay: %s", printable(string(line[:min(len(line), 200)])))
	}
	a.Error = printable(a.Error)
	switch a.Fault {
	case Unreachable, Slow, Refused, Wrong, Failing:
	default:
		a.Fault = NoFault
	}
	if a.Error != "" && a.Fault == NoFault {
		a.Fault = Failing
	}
	if a.Port < 0 || a.Port > 65535 || len(a.Has) > maxList {
		return Answer{}, errors.New("the answer has a port or a list that is none")
	}
	return a, nil
}

// printable shortens a host's text to one line.
func printable(text string) string {
	if len(text) > maxError {
		text = text[:maxError] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
}

// WriteLine writes a request or an answer.
func WriteLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// frames writes the frames of a blob.
type frames struct{ w io.Writer }

func (f frames) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.mark(uint32(len(p))); err != nil {
		return 0, err
	}
	return f.w.Write(p)
}

func (f frames) mark(n uint32) error {
	_, err := f.w.Write(binary.BigEndian.AppendUint32(nil, n))
	return err
}

// NewFrameReader returns the bytes of a blob that follows in frames, up to its end.
func NewFrameReader(r *bufio.Reader) io.Reader { return &frameReader{r: r} }

type frameReader struct {
	r    *bufio.Reader
	left int
	err  error
}

func (f *frameReader) Read(p []byte) (int, error) {
	if f.left == 0 && f.err == nil {
		f.next()
	}
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	f.err = err
	return n, err
}

func (f *frameReader) next() {
	var mark [4]byte
	if _, err := io.ReadFull(f.r, mark[:]); err != nil {
		f.err = io.ErrUnexpectedEOF
		return
	}
	switch n := binary.BigEndian.Uint32(mark[:]); {
	case n == 0:
		f.err = io.EOF
	case n == abandoned:
		f.err = ErrAbandoned
	case n > maxFrame:
		f.err = fmt.Errorf("a frame of %d bytes: at most %d are read", n, maxFrame)
	default:
		f.left = int(n)
	}
}
