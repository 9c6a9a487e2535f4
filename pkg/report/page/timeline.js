// The timeline: rows of hosts, drawn on a canvas as far as they are seen.

const drawOrder = ['skipped', 'ok', 'changed', 'unfinished', 'rescued', 'ignored', 'unreachable', 'failed']; // the last is on top

class Timeline {
  constructor(run, filter, onChoose) {
    Object.assign(this, { run, filter, onChoose, chosen: -1, hovered: -1, showsPath: true });
    this.scale = new Scale(run);
    this.lanes = byId('lanes');
    this.canvas = { map: byId('map'), axis: byId('axis'), cells: byId('cells') };
    this.order = drawOrder.map(name => run.states.indexOf(name));
    this.listen();
    this.paint();
    this.resize();
  }

  // paint takes the colours from the style sheet.
  paint() {
    const probe = el('span', { hidden: true });
    document.body.append(probe);
    const color = name => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    this.color = { states: this.run.states.map(color) };
    for (const name of ['ink', 'quiet', 'line', 'surface', 'stripe', 'accent', 'onstate', 'critical']) this.color[name] = color(name);
    probe.remove();
    this.draw();
  }

  // resize fits the canvases to the page.
  resize() {
    const rows = this.filter.rows.length;
    const room = Math.max(240, innerHeight * 0.55);
    this.rowHeight = Math.round(Math.min(26, Math.max(8, room / Math.max(rows, 1))));
    this.bold = this.rowHeight >= 13;
    this.height = Math.min(rows * this.rowHeight, Math.round(room / this.rowHeight) * this.rowHeight) || this.rowHeight;
    byId('tall').style.height = `${Math.max(rows * this.rowHeight, this.rowHeight)}px`;
    this.lanes.style.height = `${this.height}px`;
    this.width = this.lanes.clientWidth;
    this.gutter = this.labelWidth();
    this.fit(this.canvas.map, 34);
    this.fit(this.canvas.axis, 38);
    this.fit(this.canvas.cells, this.height);
    this.drawMap();
    this.draw();
  }

  fit(canvas, height) {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${height}px`;
    canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  labelWidth() {
    const pen = this.canvas.cells.getContext('2d');
    pen.font = this.font();
    let widest = 0;
    for (const host of this.run.hosts.slice(0, 500)) widest = Math.max(widest, pen.measureText(host.name).width);
    return Math.round(Math.min(widest + 18, this.width * 0.25, 240));
  }

  font(size = Math.min(12, this.rowHeight)) { return `${size}px ui-sans-serif, system-ui, sans-serif`; }

  x(place) { return this.gutter + (place - this.scale.from) / (this.scale.to - this.scale.from) * (this.width - this.gutter); }

  place(x) { return this.scale.from + (x - this.gutter) / (this.width - this.gutter) * (this.scale.to - this.scale.from); }

  // draw asks for one drawing in the next frame.
  draw() {
    if (this.asked || !this.width) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.drawCells();
      this.drawAxis();
      this.drawWindow();
      this.report();
    });
  }

  drawCells() {
    const pen = this.canvas.cells.getContext('2d');
    const top = this.lanes.scrollTop;
    pen.clearRect(0, 0, this.width, this.height);
    const first = Math.floor(top / this.rowHeight);
    const last = Math.min(this.filter.rows.length, Math.ceil((top + this.height) / this.rowHeight));
    const boxes = this.run.states.map(() => []);
    for (let row = first; row < last; row++) {
      const y = row * this.rowHeight - top;
      if (row % 2) this.fillBox(pen, this.color.stripe, 0, y, this.width, this.rowHeight);
      this.collect(this.filter.rows[row], y, boxes);
    }
    for (const state of this.order) {
      pen.fillStyle = this.color.states[state];
      for (const [x, y, width, height] of boxes[state]) pen.fillRect(x, y, width, height);
    }
    this.drawNames(pen, boxes);
    if (this.showsPath) this.drawPath(pen, top);
    this.drawLabels(pen, first, last, top);
    this.outline(pen, this.hovered, this.color.quiet, 1);
    this.outline(pen, this.chosen, this.color.accent, 2);
  }

  fillBox(pen, color, x, y, width, height) {
    pen.fillStyle = color;
    pen.fillRect(x, y, width, height);
  }

  // collect gathers the boxes of a row. Of cells that fall on one pixel and
  // have one state, the first is drawn.
  collect(host, y, boxes) {
    const { run, scale, filter } = this;
    const row = scale.rows[host];
    const inset = this.rowHeight >= 13 ? 2 : this.rowHeight >= 6 ? 1 : 0;
    const reached = run.states.map(() => -1);
    for (let i = this.firstOf(row, scale.from); i < row.length; i++) {
      const cell = row[i];
      if (scale.start[cell] > scale.to) break;
      if (!filter.mask[cell]) continue;
      const end = this.x(scale.end(cell));
      if (end < this.gutter) continue;
      const x = Math.max(this.x(scale.start[cell]), this.gutter);
      const state = run.state[cell];
      if (end - x < 1 && Math.floor(x) <= reached[state]) continue;
      reached[state] = Math.floor(x);
      const width = Math.max(end - x, 1.5);
      boxes[state].push([x, y + inset, width > 5 ? width - 1 : width, this.rowHeight - 2 * inset, cell]);
    }
  }

  // firstOf finds where in a row the cells begin that may reach a place.
  firstOf(row, place) {
    let low = 0;
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.scale.start[row[middle]] < place) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  // drawNames writes the names of tasks into cells that have room.
  drawNames(pen, boxes) {
    if (this.rowHeight < 16) return;
    pen.font = this.font(11);
    pen.textBaseline = 'middle';
    pen.fillStyle = this.color.onstate;
    for (const box of boxes.flat()) {
      const [x, y, width, height, cell] = box;
      if (width < 46) continue;
      pen.fillText(clip(pen, this.run.tasks[this.run.task[cell]].name, width - 10), x + 5, y + height / 2 + 0.5);
    }
  }

  // drawPath marks the cells of the critical path, and joins each with the one that waited for it.
  drawPath(pen, top) {
    const { run, scale } = this;
    const rowOf = this.rowOfHost();
    pen.strokeStyle = this.color.critical;
    pen.fillStyle = this.color.critical;
    pen.lineWidth = 1;
    const thick = this.rowHeight >= 13 ? 3 : 2;
    let before = null;
    for (const step of run.path) {
      for (const cell of step.cells ?? []) {
        const row = rowOf[run.host[cell]];
        if (row < 0) {
          before = null;
          continue;
        }
        const [from, to] = step.job && scale.kind === 'time' ? [step.from, step.to] : [scale.start[cell], scale.end(cell)];
        const y = (row + 1) * this.rowHeight - top - thick;
        const x = Math.max(this.x(from), this.gutter);
        const end = Math.min(this.x(to), this.width);
        if (end >= this.gutter && x <= this.width) this.fillBox(pen, this.color.critical, x, y, Math.max(end - x, 1.5), thick);
        if (before !== null && x > this.gutter && x < this.width && before !== y) {
          pen.beginPath();
          pen.moveTo(x + 0.5, before);
          pen.lineTo(x + 0.5, y);
          pen.stroke();
        }
        before = y;
      }
    }
  }

  // rowOfHost is the row of each host, -1 for one that the filter hides.
  rowOfHost() {
    const out = new Int32Array(this.run.hosts.length).fill(-1);
    this.filter.rows.forEach((host, row) => {
      out[host] = row;
    });
    return out;
  }

  drawLabels(pen, first, last, top) {
    this.fillBox(pen, this.color.surface, 0, 0, this.gutter - 6, this.height);
    pen.font = this.font();
    pen.textBaseline = 'middle';
    pen.fillStyle = this.color.ink;
    const every = Math.max(1, Math.ceil(12 / this.rowHeight));
    for (let row = first; row < last; row++) {
      if (row % every) continue;
      const name = clip(pen, this.run.hosts[this.filter.rows[row]].name, this.gutter - 14);
      pen.fillText(name, 2, row * this.rowHeight - top + this.rowHeight / 2);
    }
  }

  box(cell) {
    const row = this.filter.rows.indexOf(this.run.host[cell]);
    if (row < 0 || !this.filter.mask[cell]) return null;
    const x = Math.max(this.x(this.scale.start[cell]), this.gutter);
    const end = this.x(this.scale.end(cell));
    return end < this.gutter || x > this.width ? null : { x, y: row * this.rowHeight - this.lanes.scrollTop, width: Math.max(end - x, 3) };
  }

  outline(pen, cell, color, width) {
    const box = cell < 0 ? null : this.box(cell);
    if (!box) return;
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.strokeRect(box.x - 0.5, box.y + 0.5, box.width, this.rowHeight - 1);
  }

  // drawAxis writes the plays, and below them the times or numbers of tasks.
  drawAxis() {
    const pen = this.canvas.axis.getContext('2d');
    pen.clearRect(0, 0, this.width, 38);
    pen.font = this.font(11);
    pen.textBaseline = 'middle';
    const { plays, tasks } = this.run;
    plays.forEach((play, i) => {
      const byTime = this.scale.kind === 'time';
      const next = plays[i + 1];
      const from = byTime ? play.start : tasks.findIndex(task => task.play >= i);
      const to = byTime ? next?.start ?? this.scale.total : tasks.findLastIndex(task => task.play <= i) + 1;
      const x = Math.max(this.x(from), this.gutter);
      const end = Math.min(this.x(to), this.width);
      if (from < 0 || end - x < 2) return;
      this.fillBox(pen, this.color.line, x, 4, 1, 14);
      pen.fillStyle = this.color.ink;
      if (end - x > 30) pen.fillText(clip(pen, play.name, end - x - 8), x + 5, 11);
    });
    for (const [place, label] of this.scale.ticks(Math.max(2, (this.width - this.gutter) / 90))) {
      const x = this.x(place);
      this.fillBox(pen, this.color.line, x, 22, 1, 16);
      pen.fillStyle = this.color.quiet;
      if (x + 40 < this.width || place === this.scale.from) pen.fillText(label, x + 4, 29);
    }
    this.fillBox(pen, this.color.line, this.gutter, 37, this.width, 1);
  }

  // drawMap counts the states over the whole run, into a picture that is kept.
  drawMap() {
    const { run, scale, filter } = this;
    const columns = Math.max(1, Math.floor((this.width - this.gutter) / 2));
    const counts = run.states.map(() => new Float32Array(columns));
    for (const cell of filter.cells()) {
      const from = Math.floor(scale.start[cell] / scale.total * columns);
      const to = Math.min(columns - 1, Math.floor(scale.end(cell) / scale.total * columns - 1e-9));
      for (let c = Math.min(from, columns - 1); c <= Math.max(to, Math.min(from, columns - 1)); c++) counts[run.state[cell]][c]++;
    }
    let most = 1;
    for (let c = 0; c < columns; c++) most = Math.max(most, counts.reduce((sum, state) => sum + state[c], 0));
    this.picture = { columns, counts, most };
  }

  drawWindow() {
    const pen = this.canvas.map.getContext('2d');
    const { columns, counts, most } = this.picture;
    pen.clearRect(0, 0, this.width, 34);
    const step = (this.width - this.gutter) / columns;
    for (let c = 0; c < columns; c++) {
      let y = 32;
      for (const state of this.order) {
        if (!counts[state][c]) continue;
        const height = Math.max(counts[state][c] / most * 28, 1.5); // one failure of many is seen
        this.fillBox(pen, this.color.states[state], this.gutter + c * step, y - height, step, height);
        y -= height;
      }
    }
    const share = place => this.gutter + place / this.scale.total * (this.width - this.gutter);
    const [from, to] = [share(this.scale.from), share(this.scale.to)];
    pen.globalAlpha = 0.72;
    this.fillBox(pen, this.color.surface, this.gutter, 0, from - this.gutter, 34);
    this.fillBox(pen, this.color.surface, to, 0, this.width - to, 34);
    pen.globalAlpha = 1;
    pen.strokeStyle = this.color.accent;
    pen.lineWidth = 1;
    pen.strokeRect(from + 0.5, 0.5, Math.max(to - from - 1, 2), 33);
  }

  // report says, for readers of the screen and for tests, what is seen.
  report() {
    const { scale } = this;
    this.lanes.dataset.from = scale.from;
    this.lanes.dataset.to = scale.to;
    byId('range').textContent = scale.kind === 'time'
      ? `The timeline shows ${span(scale.from)} to ${span(scale.to)}.`
      : `The timeline shows tasks ${Math.floor(scale.from) + 1} to ${Math.ceil(scale.to)}.`;
  }

  // at finds the cell below a point, of several the one that is drawn on top.
  at(x, y) {
    const host = this.filter.rows[Math.floor((y + this.lanes.scrollTop) / this.rowHeight)];
    if (host === undefined || x < this.gutter) return -1;
    const near = 3 * (this.scale.to - this.scale.from) / (this.width - this.gutter);
    const [from, to] = [this.place(x) - near, this.place(x) + near];
    const row = this.scale.rows[host];
    let best = -1;
    for (let i = this.firstOf(row, from); i < row.length && this.scale.start[row[i]] <= to; i++) {
      const cell = row[i];
      if (!this.filter.mask[cell] || this.scale.end(cell) < from) continue;
      if (best < 0 || this.rank(cell, this.place(x)) >= this.rank(best, this.place(x))) best = cell;
    }
    return best;
  }

  // rank prefers a cell that holds the place, then the graver state.
  rank(cell, place) {
    const holds = this.scale.start[cell] <= place && place <= this.scale.end(cell);
    return (holds ? 10 : 0) + this.order.indexOf(this.run.state[cell]);
  }

  choose(cell, byKey) {
    this.chosen = cell;
    if (cell >= 0) {
      this.scale.reveal(cell);
      const top = this.filter.rows.indexOf(this.run.host[cell]) * this.rowHeight;
      if (top < this.lanes.scrollTop) this.lanes.scrollTop = top;
      else if (top + this.rowHeight > this.lanes.scrollTop + this.height) this.lanes.scrollTop = top + this.rowHeight - this.height;
    }
    this.draw();
    this.onChoose(cell, byKey);
  }

  // filtered follows a change of the filter.
  filtered() {
    if (this.chosen >= 0 && !this.filter.mask[this.chosen]) this.choose(-1);
    this.resize();
  }
}

// clip cuts a text to a width in pixels.
function clip(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : '';
}
