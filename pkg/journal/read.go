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

// Larger files were not written by kk, and are not read.
const (
	maxSummary = 16 << 20 // bytes of run.json
	maxLine    = 64 << 20 // bytes of one event
)

// maxProblems is how many unreadable lines are reported individually.
const maxProblems = 10

// Read passes the events of a run to a sink, in order; before each, moment is called with its
// time (unless moment is nil). Lines that cannot be read are skipped and reported in the
// diagnostics: as an error if the file is damaged, so that a part of the run is unknown; as a
// warning for what a killed run leaves behind.
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

// reading is the result of reading a file of events.
type reading struct {
	file   *source.File // without its text
	sink   event.Sink
	moment func(time.Time)
	line   int
	bad    source.Diagnostics
	more   int             // unreadable lines, beyond those in bad
	began  bool            // the start of the run was read
	end    *event.RunEnded // nil if the end of the run is missing
	cut    int             // number of an incomplete last line, 0 if there is none
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

// open opens a regular file: others have no end, or block.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
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

// nextLine returns the next line without its end. The content of an overlong line is discarded.
// The error is io.EOF for a line without an end.
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

// decode passes on the event in a line.
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
		r.note(utf8.RuneCount(bytes.ToValidUTF8(line, nil)), "it contains invalid UTF-8, which kk does not write")
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

// column is where a line stops being JSON, 0 if all of it is.
func column(line []byte) int {
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(line, new(json.RawMessage)), &syntax) {
		return 0
	}
	return utf8.RuneCount(line[:min(syntax.Offset, int64(len(line)))])
}

// note records a line that cannot be read.
func (r *reading) note(col int, why string) {
	if len(r.bad) == maxProblems {
		r.more++
		return
	}
	r.bad.Add(source.Errorf(r.at(r.line, col), "this line of the journal cannot be read: %s", why))
}

// problems returns the problems of the events of a run.
func (r *reading) problems(run Run) source.Diagnostics {
	ds := slices.Clone(r.bad)
	if r.more > 0 {
		ds.Add(source.Errorf(source.Pos{File: r.file}, "%d more lines of the journal cannot be read", r.more))
	}
	whole := source.Pos{File: r.file}
	switch {
	case r.cut > 0 && !run.Finished():
		const killed = "run %s was killed while it wrote this line of its journal: the line is skipped"
		ds.Add(source.Warningf(r.at(r.cut, 0), killed, run.ID))
	case r.cut > 0:
		ds.Add(source.Errorf(r.at(r.cut, 0), "this line of the journal is truncated"))
	}
	if !r.began && (run.Finished() || r.line > 1) {
		ds.Add(source.Errorf(whole, "the first lines of the journal, with the start of the run, are missing"))
	}
	switch {
	case run.Finished() && r.end == nil:
		const ended = "the last lines of the journal are missing: %s has the end of the run"
		ds.Add(source.Errorf(whole, ended, runFile))
	case run.Finished() && r.end.ExitCode != run.ExitCode:
		ds.Add(source.Errorf(whole, "the run ended with exit code %d, but %s has %d", r.end.ExitCode, runFile, run.ExitCode))
	case !run.Finished() && r.end != nil:
		ds.Add(source.Warningf(whole, "the run has ended, but %s does not have its end", runFile))
	}
	return ds
}

// Show is Read for a sink that shows the problems as warnings, at the end.
func Show(workdir, id string, sink event.Sink, moment func(time.Time)) error {
	_, ds, err := Read(workdir, id, sink, moment)
	for _, d := range ds {
		sink.Emit(event.Warning{Diagnostic: d})
	}
	return err
}

// readSummary reads run.json. If it is damaged, that is one of the run's problems, and only the
// folder's name and age are known.
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
		err = errors.New("the start time of the run is missing")
	case r.ID != id:
		err = fmt.Errorf("it belongs to run %q", r.ID)
	}
	if err != nil {
		d := source.Warningf(at, "the summary of run %s cannot be read: %s; its events are used instead", id, cause(err))
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

// placeOf is the position of a mistake in a JSON file.
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

// cause omits the path of an error, because its position has it.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// rebuilt computes the summary of a run from its events.
func rebuilt(workdir string, r Run) Run {
	if len(r.Problems) == 0 {
		return r
	}
	w := &Writer{run: r, hide: &redact.Set{}, now: func() time.Time { return r.Started }, failed: map[string]bool{}}
	err := newReading(filepath.Join(workdir, runsDir, r.ID, eventsFile), summing{w}, nil).all()
	if r.Problems.Err() != nil { // already reported
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

// summing computes a summary from events.
type summing struct{ *Writer }

// Emit implements event.Sink.
func (s summing) Emit(e event.Event) { s.note(e) }
