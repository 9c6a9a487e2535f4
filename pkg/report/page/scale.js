// A scale maps what is on the x axis, times or tasks, to pixels.

class Scale {
  constructor(run) {
    this.run = run;
    this.use('time');
  }

  // use chooses the axis: 'time', or 'task', where all tasks are equally wide.
  use(kind) {
    const { run } = this;
    this.kind = kind;
    this.total = kind === 'time' ? run.end : Math.max(run.tasks.length, 1);
    this.least = kind === 'time' ? 200 : 2; // microseconds, or tasks
    this.start = kind === 'time' ? run.start : Float64Array.from(run.task);
    this.rows = kind === 'time' ? run.rows
      : run.rows.map(row => [...row].sort((a, b) => run.task[a] - run.task[b] || run.start[a] - run.start[b]));
    this.whole();
  }

  whole() { this.show(0, this.total); }

  // show sets the span that is seen, within the bounds.
  show(from, to) {
    const width = Math.min(Math.max(to - from, Math.min(this.least, this.total)), this.total);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - width / 2, 0), this.total - width);
    this.to = this.from + width;
  }

  // zoom makes the span factor times as long around a place of it.
  zoom(factor, around = (this.from + this.to) / 2) {
    const to = around + (this.to - around) * factor;
    this.show(around - (around - this.from) * factor, to);
  }

  pan(share) {
    const by = share * (this.to - this.from);
    const room = Math.min(Math.max(by, -this.from), this.total - this.to);
    this.show(this.from + room, this.to + room);
  }

  // reveal moves the span so that a cell is seen.
  reveal(cell) {
    const start = this.start[cell];
    const end = this.end(cell);
    const width = Math.max(this.to - this.from, Math.min(end - start, this.total));
    if (start < this.from) this.show(start - width * 0.1, start + width * 0.9);
    else if (end > this.to) this.show(end - width * 0.9, end + width * 0.1);
  }

  end(cell) { return this.start[cell] + (this.kind === 'time' ? this.run.took[cell] : 1); }

  // ticks are [place, label] of marks, about count of them.
  ticks(count) {
    const step = this.kind === 'time' ? timeStep((this.to - this.from) / count) : Math.max(1, round125((this.to - this.from) / count));
    const marks = [];
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      marks.push([at, this.kind === 'time' ? tickLabel(at, step) : `${at + 1}`]);
    }
    return marks;
  }
}

function round125(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(n => n * power).find(step => step >= least);
}

function timeStep(least) {
  const steps = [1e6, 2e6, 5e6, 10e6, 15e6, 30e6, 60e6, 120e6, 300e6, 600e6, 900e6, 1800e6, 3600e6];
  if (least <= 0.5e6) return round125(least);
  return steps.find(step => step >= least) ?? Math.ceil(least / 3600e6) * 3600e6;
}

function tickLabel(at, step) {
  if (at === 0) return '0';
  if (step < 1000) return `${(at / 1000).toFixed(1)} ms`;
  if (step < 1e6 && at < 1e6) return `${Math.round(at / 1000)} ms`;
  const digits = step < 1e4 ? 3 : step < 1e5 ? 2 : step < 1e6 ? 1 : 0;
  const s = at / 1e6;
  if (s < 60) return `${s.toFixed(digits)} s`;
  const rest = (s % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, '0');
  const m = Math.floor(s / 60);
  return m < 60 ? `${m}:${rest}` : `${Math.floor(m / 60)}:${String(m % 60).padStart(2, '0')}:${rest}`;
}
