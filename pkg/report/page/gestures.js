// How people move in the timeline: pointer, wheel, touch and keys.

Timeline.prototype.listen = function () {
  const { lanes, canvas } = this;
  lanes.addEventListener('scroll', () => this.draw());
  lanes.addEventListener('keydown', event => this.key(event));
  lanes.addEventListener('wheel', event => this.wheel(event, event.ctrlKey || event.metaKey), { passive: false });
  for (const strip of [canvas.map, canvas.axis]) strip.addEventListener('wheel', event => this.wheel(event, true), { passive: false });
  lanes.addEventListener('pointerleave', () => this.hover(-1));
  this.drags();
  this.selects();
  new ResizeObserver(() => this.lanes.clientWidth !== this.width && this.resize()).observe(lanes);
  addEventListener('resize', () => this.resize());
};

// wheel zooms, or pans when it goes sideways; else the page scrolls.
Timeline.prototype.wheel = function (event, zooms) {
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (!zooms && !sideways) return;
  event.preventDefault();
  const pixels = (event.deltaX || event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
  if (sideways) this.scale.pan(pixels / (this.width - this.gutter));
  else this.scale.zoom(Math.exp(event.deltaY * (event.deltaMode === 1 ? 16 : 1) * 0.004), this.under(event));
  this.draw();
};

// under is the place on the axis below the pointer.
Timeline.prototype.under = function (event) {
  return this.place(event.clientX - this.lanes.getBoundingClientRect().left);
};

// drags: one pointer pans, two zoom, and one that stays where it is chooses.
Timeline.prototype.drags = function () {
  const { lanes } = this;
  const fingers = new Map();
  let moved = false;
  let grip = 0; // the place that the pointer holds
  const ends = event => {
    fingers.delete(event.pointerId);
    lanes.classList.remove('panning');
  };
  lanes.addEventListener('pointerdown', event => {
    if (event.button || event.offsetX >= lanes.clientWidth) return;
    fingers.set(event.pointerId, event);
    moved = fingers.size > 1;
    grip = this.under(event);
  });
  lanes.addEventListener('pointermove', event => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      this.hover(this.below(event), event);
      return;
    }
    if (!moved && Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 4) return;
    if (!moved) {
      moved = true;
      lanes.setPointerCapture(event.pointerId);
      lanes.classList.add('panning');
      this.hover(-1);
    }
    if (fingers.size === 1) {
      const by = grip - this.under(event);
      this.scale.pan(by / (this.scale.to - this.scale.from));
      if (event.pointerType === 'mouse') lanes.scrollTop -= event.clientY - before.clientY;
    } else {
      this.pinch(fingers, event);
    }
    fingers.set(event.pointerId, event);
    this.draw();
  });
  lanes.addEventListener('pointerup', event => {
    if (fingers.has(event.pointerId) && !moved) this.choose(this.below(event));
    ends(event);
  });
  lanes.addEventListener('pointercancel', ends);
};

Timeline.prototype.pinch = function (fingers, event) {
  const other = [...fingers.values()].find(finger => finger.pointerId !== event.pointerId);
  const before = Math.abs(fingers.get(event.pointerId).clientX - other.clientX);
  const after = Math.abs(event.clientX - other.clientX);
  if (before > 5 && after > 5) this.scale.zoom(before / after, (this.under(event) + this.under(other)) / 2);
};

// selects: a drag over the map or the axis chooses the span that is seen.
Timeline.prototype.selects = function () {
  const { map, axis } = this.canvas;
  for (const strip of [map, axis]) {
    const placeOf = event => {
      const share = (event.clientX - strip.getBoundingClientRect().left - this.gutter) / (this.width - this.gutter);
      return strip === map ? share * this.scale.total : this.under(event);
    };
    let from = null;
    strip.addEventListener('pointerdown', event => {
      from = { place: placeOf(event), x: event.clientX };
      strip.setPointerCapture(event.pointerId);
    });
    strip.addEventListener('pointerup', event => {
      if (!from) return;
      const to = placeOf(event);
      const width = this.scale.to - this.scale.from;
      if (Math.abs(event.clientX - from.x) > 4) this.scale.show(Math.min(from.place, to), Math.max(from.place, to));
      else this.scale.show(to - width / 2, to + width / 2);
      from = null;
      this.draw();
    });
  }
};

Timeline.prototype.below = function (event) {
  const box = this.lanes.getBoundingClientRect();
  return this.at(event.clientX - box.left, event.clientY - box.top);
};

Timeline.prototype.hover = function (cell, event) {
  const tip = byId('tip');
  if (cell !== this.hovered) {
    this.hovered = cell;
    this.draw();
    tip.hidden = cell < 0;
    if (cell >= 0) {
      const task = this.run.tasks[this.run.task[cell]];
      tip.replaceChildren(el('strong', null, this.run.taskName(task)), el('span', null, this.run.hosts[this.run.host[cell]].name),
        badge(this.run.stateOf(cell)), el('span', null, span(this.run.took[cell])));
    }
  }
  if (cell >= 0) {
    const box = tip.parentElement.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth))}px`;
    tip.style.top = `${event.clientY - box.top + 18}px`;
  }
};

Timeline.prototype.key = function (event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    ArrowRight: () => event.shiftKey ? this.scale.pan(0.2) : this.along(1),
    ArrowLeft: () => event.shiftKey ? this.scale.pan(-0.2) : this.along(-1),
    ArrowDown: () => this.across(1),
    ArrowUp: () => this.across(-1),
    PageDown: () => this.across(10),
    PageUp: () => this.across(-10),
    Home: () => this.along(-Infinity),
    End: () => this.along(Infinity),
    '+': () => this.scale.zoom(0.6, this.focus()),
    '=': () => this.scale.zoom(0.6, this.focus()),
    '-': () => this.scale.zoom(1 / 0.6, this.focus()),
    0: () => this.scale.whole(),
    f: () => this.nextFailure(),
    Enter: () => this.chosen >= 0 && byId('detail').focus(),
    Escape: () => this.choose(-1),
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
  this.draw();
};

// focus is the place to zoom around: the chosen cell, else the middle.
Timeline.prototype.focus = function () {
  if (this.chosen < 0) return undefined;
  const middle = (this.scale.start[this.chosen] + this.scale.end(this.chosen)) / 2;
  return middle < this.scale.from || middle > this.scale.to ? undefined : middle;
};

// along goes to another task of the same host.
Timeline.prototype.along = function (by) {
  const host = this.chosen >= 0 ? this.run.host[this.chosen] : this.filter.rows[0];
  if (host === undefined) return;
  const row = this.scale.rows[host].filter(cell => this.filter.mask[cell]);
  if (!row.length) return;
  const at = this.chosen >= 0 ? row.indexOf(this.chosen) + by : 0;
  this.choose(row[Math.max(0, Math.min(at, row.length - 1))], true);
};

// across goes to the nearest cell of another host.
Timeline.prototype.across = function (by) {
  if (this.chosen < 0) {
    this.along(0);
    return;
  }
  const { rows } = this.filter;
  const host = rows[Math.max(0, Math.min(rows.indexOf(this.run.host[this.chosen]) + by, rows.length - 1))];
  const same = this.run.task[this.chosen];
  const place = this.scale.start[this.chosen];
  let best = -1;
  for (const cell of this.scale.rows[host]) {
    if (!this.filter.mask[cell]) continue;
    if (this.run.task[cell] === same) {
      best = cell;
      break;
    }
    if (best < 0 || Math.abs(this.scale.start[cell] - place) < Math.abs(this.scale.start[best] - place)) best = cell;
  }
  if (best >= 0) this.choose(best, true);
};

Timeline.prototype.nextFailure = function () {
  const bad = ['failed', 'unreachable', 'unfinished'];
  const failures = [...this.filter.cells()].filter(cell => bad.includes(this.run.stateOf(cell)));
  if (failures.length) this.choose(failures[(failures.indexOf(this.chosen) + 1) % failures.length], true);
};
