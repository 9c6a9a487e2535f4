// What a result says: output, items, diffs.

function showDetails(run, d) {
  const out = [];
  const block = (name, text, kind = '') => text && out.push(el('h4', null, name), el(`pre${kind}`, { tabindex: 0, 'aria-label': name }, text));
  if (d.delegate) out.push(el('p', null, 'Delegated to ', el('strong', null, d.delegate)));
  for (const warning of d.warnings ?? []) out.push(el('p.note', null, warning));
  block('Message', d.msg);
  block('Command', d.cmd && (d.rc === undefined ? d.cmd : `${d.cmd}\n(exit code ${d.rc})`));
  block('Standard output', d.stdout);
  block('Standard error', d.stderr, '.stderr');
  for (const diff of d.diff ?? []) out.push(showDiff(diff));
  if (d.items?.length) out.push(el('h4', null, plural(d.items.length, 'item')), el('ol.items', null, ...d.items.map(item => showItem(run, item))));
  if (d.more) out.push(el('details.more', null, el('summary', null, 'Other results'), el('pre', { tabindex: 0 }, d.more)));
  return out;
}

function showItem(run, item) {
  const state = run.states[item.state];
  const title = [badge(state), el('span.label', null, item.label), el('span.took', null, span(item.took))];
  const inner = showDetails(run, item);
  if (!inner.length) return el('li', null, el('div.line', null, ...title));
  return el('li', null, el('details', { open: state === 'failed' }, el('summary', null, ...title), ...inner));
}

// showDiff colours a unified diff.
function showDiff(text) {
  const lines = text.replace(/\n$/, '').split('\n').map(line => {
    const kind = /^(---|\+\+\+) /.test(line) ? 'file' : { '+': 'added', '-': 'removed', '@': 'hunk' }[line[0]];
    return el(kind ? `span.${kind}` : 'span', null, `${line}\n`);
  });
  return el('pre.diff', { tabindex: 0, 'aria-label': 'Diff' }, ...lines);
}

// DetailPanel shows the chosen cell beside the timeline.
class DetailPanel {
  constructor(run, onClose) {
    Object.assign(this, { run, root: byId('detail') });
    this.root.addEventListener('keydown', event => {
      if (event.key === 'Escape') onClose();
    });
    this.close = el('button.close', { type: 'button', 'aria-label': 'Close the result', onclick: onClose }, '×');
  }

  async show(cell) {
    this.root.hidden = cell < 0;
    this.cell = cell;
    if (cell < 0) {
      this.root.replaceChildren();
      return;
    }
    const { run } = this;
    const task = run.tasks[run.task[cell]];
    const details = await run.details(cell);
    if (this.cell !== cell) return; // another was chosen meanwhile
    this.root.replaceChildren(
      this.close,
      el('h3', null, run.taskName(task)),
      el('p.line', null, badge(run.stateOf(cell)), el('strong', null, run.hosts[run.host[cell]].name), el('span.took', null, span(run.took[cell]))),
      el('dl', null, ...[
        ['Play', run.plays[task.play]?.name], ['Module', task.action + (task.handler ? ', as a handler' : '')],
        ['Began', `${span(run.start[cell])} into the run`], ['Written at', task.at],
      ].flatMap(([name, text]) => text ? [el('dt', null, name), el('dd', null, text)] : [])),
      ...showDetails(run, details),
    );
    this.root.scrollTop = 0;
  }
}
