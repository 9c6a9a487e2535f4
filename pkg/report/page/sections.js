// The sections around the timeline.

function showOverview(run) {
  const { info } = run;
  byId('run-id').textContent = info.id;
  byId('title').textContent = (info.playbooks ?? []).map(path => path.split('/').pop()).join(', ') || 'Run';
  const [state, text] = outcome(info);
  byId('badge').append(badge(state, text), ...info.check ? [badge('skipped', 'check mode: nothing was changed')] : []);
  const rows = [
    ['Began', el('time', { datetime: info.started }, new Date(info.started).toLocaleString())],
    ['Took', info.finished ? span(info.took) : `${span(info.took)}, then it was cut off`],
    ['By', info.user],
    ['Size', `${plural(run.hosts.length, 'host')}, ${plural(run.tasks.length, 'task')}, ${plural(run.size, 'result')}`],
    ['Exit code', info.finished && `${info.exit}`],
    ['Error', info.error],
    ['Command', info.command && el('code', null, info.command)],
    ['Playbooks', !info.command && el('code', null, (info.playbooks ?? []).join(' '))],
  ];
  byId('facts').append(...rows.filter(([, shown]) => shown).map(([name, shown]) => el('div', null, el('dt', null, name), el('dd', null, shown))));
  byId('warnings').append(...[...new Set(run.warnings)].slice(0, 20).map(text => el('p.note', null, text)));
  byId('footer').textContent = `kk ${info.version ?? ''} · run ${info.id} · this page needs no network`;
}

function outcome(info) {
  if (!info.finished) return ['unfinished', 'cut off'];
  if (info.exit === 0) return ['ok', 'succeeded'];
  if (info.exit === 99) return ['unfinished', 'interrupted'];
  return ['failed', info.exit === 4 ? 'host unreachable' : 'failed'];
}

// list fills a section with what make returns, a page at a time.
function list(section, entries, make, none, size = 20) {
  if (!entries.length) {
    section.append(el('p.none', null, none));
    return;
  }
  const box = el('div.list');
  const button = el('button', { type: 'button' });
  let shown = 0;
  const more = () => {
    const next = entries.slice(shown, shown + size);
    box.append(...next.map((entry, i) => make(entry, shown + i)));
    shown += next.length;
    button.hidden = shown >= entries.length;
    button.textContent = `Show ${Math.min(size, entries.length - shown)} more of ${(entries.length - shown).toLocaleString('en')}`;
  };
  button.addEventListener('click', more);
  more();
  section.append(box, button);
}

// groupCard shows hosts that answered a task alike.
function groupCard(run, cells, open, choose) {
  const task = run.tasks[run.task[cells[0]]];
  const names = cells.map(cell => run.hosts[run.host[cell]].name);
  const few = names.slice(0, 6).join(', ') + (names.length > 6 ? ` and ${names.length - 6} more` : '');
  const card = el('details.card', null, el('summary', null,
    badge(run.stateOf(cells[0])), el('strong', null, run.taskName(task)), el('span.hosts', { title: names.slice(0, 200).join(', ') }, few)));
  const fill = async () => {
    if (card.dataset.filled) return;
    card.dataset.filled = 'yes';
    const shown = showDetails(run, await run.details(cells[0]));
    card.append(el('div.inner', null,
      el('p.line', null, el('span.took', null, `${task.action} · ${task.at}`),
        el('button.link', { type: 'button', onclick: () => choose(cells[0]) }, 'show in the timeline')),
      ...shown.length ? shown : [el('p.none', null, 'It said nothing more.')]));
  };
  card.addEventListener('toggle', () => card.open && fill());
  card.fill = fill;
  if (open) card.open = true;
  return card;
}

// stepName describes a step of the critical path.
function stepName(run, step) {
  if (!step.cells) return 'no task: kk worked, or waited for an answer';
  if (step.brief) return plural(step.brief, 'short task');
  return run.taskName(run.tasks[run.task[step.cells.at(-1)]]) + (step.job ? ' (in the background)' : '');
}

// showCritical lists what determined how long the run took.
function showCritical(run, choose) {
  if (!run.path.length) {
    byId('critical').append(el('p.none', null, 'No task ran.'));
    return;
  }
  byId('critical').append(el('p.hint', null, 'Each step waited for the one before it. Only what makes one of them shorter makes the run shorter.'));
  const longest = Math.max(1, ...run.path.map(step => step.to - step.from));
  pagedTable(byId('critical'), 'Steps that determined how long the run took, in order of time', ['Step', 'Host', 'Began', 'Took', 'Of the run', 'Of the longest'], run.path, 40, step => {
    const cell = step.cells?.at(-1);
    const many = !step.brief && step.cells?.length > 1 ? ` (${plural(step.cells.length, 'host')} one after the other)` : '';
    return [
      cell === undefined || step.brief ? stepName(run, step) : el('button.link', { type: 'button', onclick: () => choose(cell) }, stepName(run, step)),
      cell === undefined || step.brief ? '' : run.hosts[run.host[cell]].name + many,
      span(step.from), span(step.to - step.from), `${(100 * (step.to - step.from) / Math.max(run.info.took, 1)).toFixed(1)} %`,
      el('meter', { min: 0, max: longest, value: step.to - step.from, 'aria-label': 'of the longest' }),
    ];
  });
}

function showFailures(run, choose) {
  const wanted = ['failed', 'unreachable', 'unfinished', 'rescued', 'ignored'];
  const cells = [...run.state.keys()].filter(cell => wanted.includes(run.stateOf(cell)));
  const groups = run.groups(cells).sort((a, b) => wanted.indexOf(run.stateOf(a[0])) - wanted.indexOf(run.stateOf(b[0])) || a[0] - b[0]);
  list(byId('failures'), groups, (group, i) => groupCard(run, group, i < 3, choose), 'Nothing failed.');
}

function showChanges(run, choose) {
  const groups = run.groups([...run.state.keys()].filter(cell => run.stateOf(cell) === 'changed'));
  if (groups.length && !run.info.diff) byId('changes').append(el('p.hint', null, 'What changed in files is kept for runs with --diff.'));
  list(byId('changes'), groups, (group, i) => groupCard(run, group, i < 3, choose), 'Nothing changed.');
}

function showSlowest(run, choose) {
  const tasks = run.tasks.map(() => null);
  for (let i = 0; i < run.size; i++) {
    const end = run.start[i] + run.took[i];
    const t = tasks[run.task[i]] ??= { task: run.task[i], from: run.start[i], to: end, slowest: i, hosts: 0 };
    t.from = Math.min(t.from, run.start[i]);
    t.to = Math.max(t.to, end);
    t.hosts++;
    if (run.took[i] > run.took[t.slowest]) t.slowest = i;
  }
  const slow = tasks.filter(t => t).sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 10);
  if (!slow.length) {
    byId('slowest').append(el('p.none', null, 'No task ran.'));
    return;
  }
  const longest = Math.max(1, slow[0].to - slow[0].from);
  byId('slowest').append(table('Tasks that took longest, from their first host to their last', ['Task', 'Took', 'Of the longest', 'Slowest host'], slow.map(t => [
    el('button.link', { type: 'button', onclick: () => choose(t.slowest) }, run.taskName(run.tasks[t.task])),
    span(t.to - t.from),
    el('meter', { min: 0, max: longest, value: t.to - t.from, 'aria-label': 'of the longest' }),
    `${run.hosts[run.host[t.slowest]].name}, ${span(run.took[t.slowest])}${t.hosts > 1 ? ` (of ${plural(t.hosts, 'host')})` : ''}`,
  ])));
}

const recapNames = ['ok', 'changed', 'unreachable', 'failed', 'skipped', 'rescued', 'ignored'];

function showHosts(run) {
  const recap = host => host.recap ?? recapNames.map(() => 0);
  const gravity = host => recap(host)[2] + recap(host)[3];
  const hosts = [...run.hosts].sort((a, b) => gravity(b) - gravity(a));
  const rows = hosts.map(host => [host.name, ...recap(host).map((n, i) => n ? el(`span.n.${recapNames[i]}`, null, `${n}`) : el('span.zero', null, '0'))]);
  pagedTable(byId('hosts'), 'Recap of each host, those that failed first', ['Host', ...recapNames], rows, 50);
}

// ResultTable is the timeline for those who do not see it.
class ResultTable {
  constructor(run, filter, choose) {
    Object.assign(this, { run, filter, choose, body: el('div') });
    byId('results').append(el('p.hint', null, 'The results that the filter lets through, in order of time.'), this.body);
    this.update();
  }

  update() {
    const { run } = this;
    const cells = [...this.filter.cells()];
    this.body.replaceChildren();
    pagedTable(this.body, 'Results', ['Host', 'Task', 'State', 'Began', 'Took'], cells, 50, cell => [
      run.hosts[run.host[cell]].name,
      el('button.link', { type: 'button', onclick: () => this.choose(cell) }, run.taskName(run.tasks[run.task[cell]])),
      badge(run.stateOf(cell)), span(run.start[cell]), span(run.took[cell]),
    ]);
  }
}

function row(cells) {
  return el('tr', null, ...cells.map((cell, i) => i ? el('td', null, cell) : el('th', { scope: 'row' }, cell)));
}

function table(caption, heads, rows) {
  return el('div.scroll', { tabindex: 0, role: 'region', 'aria-label': caption }, el('table', null,
    el('caption', null, caption),
    el('thead', null, el('tr', null, ...heads.map(head => el('th', { scope: 'col' }, head)))),
    el('tbody', null, ...rows.map(row))));
}

// pagedTable adds rows to a table when they are asked for.
function pagedTable(parent, caption, heads, entries, size, make = entry => entry) {
  if (!entries.length) {
    parent.append(el('p.none', null, 'None.'));
    return;
  }
  const shown = table(caption, heads, []);
  parent.append(shown);
  const body = shown.querySelector('tbody');
  const button = el('button', { type: 'button' });
  const more = () => {
    const at = body.children.length;
    body.append(...entries.slice(at, at + size).map(entry => row(make(entry))));
    const left = entries.length - body.children.length;
    button.hidden = left === 0;
    button.textContent = `Show ${Math.min(size, left)} more of ${left.toLocaleString('en')}`;
  };
  button.addEventListener('click', more);
  more();
  parent.append(button);
}
