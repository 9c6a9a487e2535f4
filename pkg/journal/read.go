package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// What is larger was not written by kk, and is not read.
const (
	maxSummary = 16 << 20 // bytes of run.json
	maxLine    = 64 << 20 // bytes of one event
)

// maxProblems is how many lines that cannot be read are named.
const maxProblems = 10

// Read gives the events of a run to a sink, in order; before each, moment gets
// its time (unless it is nil). What cannot be read is passed over, and
// named in what Read returns: an error for what is damaged, so that some of the
// run is not known; a warning for what a run that was killed leaves behind.
func Read(workdir, id string, sink event.Sink, moment func(time.Time)) (Run, source.Diagnostics, error) {
	run, err := Find(workdir, id)
	if err != nil {
		return Run{}, nil, err
	}
	r := newReading(filepath.Join(workdir, runsDir, run.ID, eventsFile), sink, moment)
	if err := r.all(); err != nil {
		return Run{}, nil, fmt.Errorf("show run %s: %w", run.ID, err)
	}
	return run, append(slices.Clone(run.Problems), r.problems(run)...), nil
}

// reading is what was found in a file of events.
type reading struct {
	file   *source.File // without its text
	sink   event.Sink
	moment func(time.Time)
	line   int
	bad    source.Diagnostics
	more   int             // lines that cannot be read, beyond those in bad
	began  bool            // it has the start of the run
	end    *event.RunEnded // nil without the end of the run
	cut    int             // number of a last line that is not whole, 0 without one
}

func newReading(path string, sink event.Sink, moment func(time.Time)) *reading {
	if moment == nil {
		moment = func(time.Time) {}
	}
	return &reading{file: source.NewFile(path, nil), sink: sink, moment: moment}
}

func (r *reading) at(line, col int) source.Pos { return source.Pos{File: r.file, Line: line, Col: col} }

func (r *reading) all() error {
	in, err := open(r.file.Name)
	if err != nil {
		return err
	}
	defer in.Close()
	return r.from(in)
}

// open opens a regular file: another has no end, or blocks.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is no regular file")}
	}
	return os.Open(path)
}

func (r *reading) from(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := nextLine(lines)
		if err != nil && err != io.EOF {
			return err
		}
		r.line++
		whole := err == nil
		switch {
		case long:
			r.note(0, fmt.Sprintf("it is longer than %d MiB", maxLine>>20))
		case len(bytes.TrimSpace(line)) > 0:
			r.decode(line, whole)
		}
		if !whole {
			return nil
		}
	}
}

// nextLine returns the next line without its end. Of one that is too long
// nothing is kept. The error is io.EOF for a line that has no end.
func nextLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return bytes.TrimSuffix(line, []byte("\n")), long, err
		}
	}
}

// decode passes on the event of a line.
func (r *reading) decode(line []byte, whole bool) {
	e, at, err := event.Decode(line)
	switch {
	case err != nil && !whole:
		r.cut = r.line
		return
	case err != nil:
		r.note(column(line), err.Error())
		return
	case !utf8.Valid(line):
		r.note(utf8.RuneCount(bytes.ToValidUTF8(line, nil)), "it holds bytes that are no UTF-8, which kk does not write")
	}
	switch e := e.(type) {
	case event.RunStarted:
		r.began = true
	case event.RunEnded:
		r.end = &e
	}
	r.moment(at)
	r.sink.Emit(e)
}

// column is where a line ceases to be JSON, 0 when it is JSON.
func column(line []byte) int {
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(line, new(json.RawMessage)), &syntax) {
		return 0
	}
	return utf8.RuneCount(line[:min(syntax.Offset, int64(len(line)))])
}

// note remembers a line that cannot be read.
func (r *reading) note(col int, why string) {
	if len(r.bad) == maxProblems {
		r.more++
		return
	}
	r.bad.Add(source.Errorf(r.at(r.line, col), "this line of the journal cannot be read: %s", why))
}

// problems is what is wrong with the events of a run.
func (r *reading) problems(run Run) source.Diagnostics {
	ds := slices.Clone(r.bad)
	if r.more > 0 {
		ds.Add(source.Errorf(source.Pos{File: r.file}, "%d more lines of the journal cannot be read", r.more))
	}
	whole := source.Pos{File: r.file}
	switch {
	case r.cut > 0 && !run.Finished():
		const killed = "run %s was killed while it wrote this line of its journal: it is left out"
		ds.Add(source.Warningf(r.at(r.cut, 0), killed, run.ID))
	case r.cut > 0:
		ds.Add(source.Errorf(r.at(r.cut, 0), "this line of the journal is cut off"))
	}
	if !r.began && (run.Finished() || r.line > 1) {
		ds.Add(source.Errorf(whole, "the journal has no start of the run: its first lines are missing"))
	}
	switch {
	case run.Finished() && r.end == nil:
		const ended = "the journal has no end of the run, which has ended as %s says: its last lines are missing"
		ds.Add(source.Errorf(whole, ended, runFile))
	case run.Finished() && r.end.ExitCode != run.ExitCode:
		ds.Add(source.Errorf(whole, "the run ended with exit code %d, but %s says %d", r.end.ExitCode, runFile, run.ExitCode))
	case !run.Finished() && r.end != nil:
		ds.Add(source.Warningf(whole, "the run has ended, which %s does not say", runFile))
	}
	return ds
}

// Show is Read for a sink that shows what is wrong as warnings, at the end.
func Show(workdir, id string, sink event.Sink, moment func(time.Time)) error {
	_, ds, err := Read(workdir, id, sink, moment)
	for _, d := range ds {
		sink.Emit(event.Warning{Diagnostic: d})
	}
	return err
}

// readSummary reads run.json. What is wrong with it is one of the problems of
// the run, of which only the folder's name and age are known then.
func readSummary(dir string, age time.Time) Run {
	path := filepath.Join(dir, runFile)
	text, err := readSmall(path)
	r := Run{}
	at := source.Pos{File: source.NewFile(path, nil)}
	if err == nil {
		if err = json.Unmarshal(text, &r); err != nil {
			at = placeOf(path, text, err)
		}
	}
	id := filepath.Base(dir)
	switch {
	case err != nil:
	case r.Started.IsZero():
		err = errors.New("it has no time at which the run started")
	case r.ID != id:
		err = fmt.Errorf("it is that of run %q", r.ID)
	}
	if err != nil {
		d := source.Warningf(at, "the summary of run %s cannot be read: %s; its events stand in for it", id, cause(err))
		r = Run{Started: age.UTC(), Problems: source.Diagnostics{d}}
	}
	r.ID = id
	return r
}

func readSmall(path string) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSummary+1))
	if err == nil && len(text) > maxSummary {
		err = fmt.Errorf("it is larger than %d MiB", maxSummary>>20)
	}
	return text, err
}

// placeOf is where in a file of JSON a mistake is.
func placeOf(path string, text []byte, err error) source.Pos {
	at := source.Pos{File: source.NewFile(path, nil)}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var offset int64
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 1 || offset > int64(len(text)) {
		return at
	}
	before := text[:offset]
	at.Line = 1 + bytes.Count(before, []byte("\n"))
	at.Col = max(1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]))
	return at
}

// cause leaves out the path of an error, which its place has.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// rebuilt is a run whose summary cannot be read, as its events say it was.
func rebuilt(workdir string, r Run) Run {
	if len(r.Problems) == 0 {
		return r
	}
	w := &Writer{run: r, hide: &redact.Set{}, now: func() time.Time { return r.Started }, failed: map[string]bool{}}
	err := newReading(filepath.Join(workdir, runsDir, r.ID, eventsFile), summing{w}, nil).all()
	if r.Problems.Err() != nil { // which says so
		return r
	}
	if err != nil {
		w.run.Problems.Add(source.Errorf(source.Pos{}, "the events of run %s cannot be read: %s", r.ID, err))
	}
	if !w.run.Finished() {
		w.run.Failed = slices.Sorted(maps.Keys(w.failed))
	}
	return w.run
}

// summing makes a summary of events.
type summing struct{ *Writer }

// Emit implements event.Sink.
func (s summing) Emit(e event.Event) { s.note(e) }
