// The run: columns of cells, and the parts that hold the details.

async function unpack(script) {
  if (script.dataset.encoding !== 'gzip') return visible(JSON.parse(script.textContent));
  const packed = Uint8Array.from(atob(script.textContent), c => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return visible(await new Response(plain).json());
}

// What draws nothing is shown as an escape, as on a terminal: it could turn text round, or make one name
// look like another.
const unseen = /(?![\n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/gu;

function escaped(char) {
  const code = char.codePointAt(0);
  if (char === '\r') return '\\r';
  const [kind, digits] = code < 0x80 ? ['x', 2] : code < 0x10000 ? ['u', 4] : ['U', 8];
  return `\\${kind}${code.toString(16).padStart(digits, '0')}`;
}

// visible is data with its texts so; columns of numbers are left alone.
function visible(data) {
  if (typeof data === 'string') return data.replace(unseen, escaped);
  if (Array.isArray(data)) return typeof data[0] === 'number' ? data : data.map(visible);
  if (data === null || typeof data !== 'object') return data;
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, visible(value)]));
}

class Run {
  constructor(doc, parts) {
    this.info = doc.run;
    this.plays = doc.plays ?? [];
    this.tasks = doc.tasks ?? [];
    this.hosts = doc.hosts ?? [];
    this.states = doc.states;
    this.warnings = doc.warnings ?? [];
    this.path = doc.path ?? []; // the critical path: its steps, in order of time
    this.parts = parts;
    this.read = [];
    this.chunk = doc.chunk;
    this.readCells(doc.cells);
  }

  static async load() {
    const parts = [...document.querySelectorAll('script.details')];
    return new Run(await unpack(document.querySelector('script.run')), parts);
  }

  readCells(cells) {
    this.size = cells.host?.length ?? 0;
    this.host = Uint32Array.from(cells.host ?? []);
    this.task = Uint32Array.from(cells.task ?? []);
    this.state = Uint8Array.from(cells.state ?? []);
    this.took = Float64Array.from(cells.took ?? []);
    this.detail = Int32Array.from(cells.detail ?? []);
    this.start = new Float64Array(this.size);
    let at = 0;
    let end = this.info.took;
    for (let i = 0; i < this.size; i++) {
      at += cells.start[i];
      this.start[i] = at;
      end = Math.max(end, at + this.took[i]);
    }
    this.end = Math.max(end, 1);
    this.rows = this.hosts.map(() => []); // cells of each host, by start
    for (let i = 0; i < this.size; i++) this.rows[this.host[i]].push(i);
    for (const row of this.rows) row.sort((a, b) => this.start[a] - this.start[b] || this.task[a] - this.task[b]);
  }

  stateOf(cell) { return this.states[this.state[cell]]; }

  // taskName is the name of a task with its role, as the run showed it.
  taskName(task) { return (task.role ? `${task.role} : ` : '') + task.name; }

  // details reads the details of a cell; {} for one that has none.
  async details(cell) {
    const n = this.detail[cell];
    if (n < 0) return {};
    const part = Math.floor(n / this.chunk);
    this.read[part] ??= unpack(this.parts[part]);
    return (await this.read[part])[n % this.chunk];
  }

  // groups joins cells of one task that have one state and one detail: hosts
  // that answered alike.
  groups(cells) {
    const found = new Map();
    for (const cell of cells) {
      const key = `${this.task[cell]} ${this.state[cell]} ${this.detail[cell]}`;
      const group = found.get(key);
      if (group) group.push(cell);
      else found.set(key, [cell]);
    }
    return [...found.values()];
  }
}

// Filter chooses cells by what a person typed.
class Filter {
  constructor(run) {
    this.run = run;
    this.host = '';
    this.task = '';
    this.role = '';
    this.states = new Set(run.states);
    this.apply();
  }

  // apply works out which cells match, and the hosts that have some.
  apply() {
    const { run } = this;
    const hosts = run.hosts.map(host => matches(host.name, this.host));
    const tasks = run.tasks.map(task => matches(run.taskName(task), this.task) &&
      (this.role === '' || (task.role ?? '') === this.role || this.role === '-' && !task.role));
    const states = run.states.map(state => this.states.has(state));
    this.mask = new Uint8Array(run.size);
    this.count = 0;
    const busy = new Uint8Array(run.hosts.length);
    for (let i = 0; i < run.size; i++) {
      if (!hosts[run.host[i]] || !tasks[run.task[i]] || !states[run.state[i]]) continue;
      this.mask[i] = 1;
      this.count++;
      busy[run.host[i]] = 1;
    }
    const whole = this.count === run.size;
    this.rows = run.hosts.map((_, i) => i).filter(i => busy[i] || whole && hosts[i]);
  }

  *cells() {
    for (let i = 0; i < this.run.size; i++) if (this.mask[i]) yield i;
  }
}

// matches tells whether a name has a text in it; "*" stands for any text.
function matches(name, wanted) {
  const words = wanted.toLowerCase().trim();
  if (words === '') return true;
  if (!words.includes('*')) return name.toLowerCase().includes(words);
  const pattern = words.split('*').map(part => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&')).join('.*');
  return new RegExp(`^${pattern}$`, 'is').test(name);
}
