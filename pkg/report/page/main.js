// Everything is put together here.

function stateButtons(run, filter, changed) {
  const counts = run.states.map(() => 0);
  for (const state of run.state) counts[state]++;
  run.states.forEach((state, i) => {
    if (!counts[i]) return;
    const button = el(`button.chip.${state}`, { type: 'button', 'aria-pressed': 'true' }, el('span.swatch'), `${state} `, el('b', null, counts[i].toLocaleString('en')));
    button.addEventListener('click', () => {
      filter.states[filter.states.has(state) ? 'delete' : 'add'](state);
      button.setAttribute('aria-pressed', filter.states.has(state));
      changed();
    });
    byId('states').append(button);
  });
}

function roleChoices(run) {
  const roles = [...new Set(run.tasks.map(task => task.role ?? ''))].filter(role => role).sort();
  byId('filter-role').append(el('option', { value: '' }, 'all'), ...roles.map(role => el('option', { value: role }, role)), el('option', { value: '-' }, '(none)'));
  byId('filter-role').closest('label').hidden = !roles.length;
}

function watchFilter(run, filter, changed) {
  let waiting = 0;
  for (const name of ['host', 'task', 'role']) {
    byId(`filter-${name}`).addEventListener('input', event => {
      filter[name] = event.target.value;
      clearTimeout(waiting);
      waiting = setTimeout(changed, run.size > 20000 ? 120 : 0);
    });
  }
  byId('filter').addEventListener('submit', event => event.preventDefault());
  byId('filter').addEventListener('reset', () => {
    Object.assign(filter, { host: '', task: '', role: '', states: new Set(run.states) });
    for (const chip of byId('states').children) chip.setAttribute('aria-pressed', 'true');
    changed();
  });
}

// themeSwitch begins with what the system prefers.
function themeSwitch(repaint) {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : system.matches;
  const show = () => {
    byId('theme').textContent = isDark() ? 'Light' : 'Dark';
    byId('theme').setAttribute('aria-label', `Switch to ${isDark() ? 'light' : 'dark'} colours`);
    repaint();
  };
  byId('theme').addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    show();
  });
  system.addEventListener('change', show);
  show();
}

function timelineButtons(timeline) {
  const zoom = (id, change) => byId(id).addEventListener('click', () => {
    change();
    timeline.draw();
  });
  zoom('zoom-in', () => timeline.scale.zoom(0.6, timeline.focus()));
  zoom('zoom-out', () => timeline.scale.zoom(1 / 0.6, timeline.focus()));
  zoom('zoom-all', () => timeline.scale.whole());
  byId('path').addEventListener('click', () => {
    timeline.showsPath = !timeline.showsPath;
    byId('path').setAttribute('aria-pressed', timeline.showsPath);
    timeline.draw();
  });
  for (const kind of ['time', 'task']) {
    zoom(`axis-${kind}`, () => {
      timeline.scale.use(kind);
      timeline.drawMap();
      for (const other of ['time', 'task']) byId(`axis-${other}`).setAttribute('aria-pressed', other === kind);
    });
  }
}

// forPrint opens what is folded, a little while at most, and closes it again.
function forPrint() {
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details.card:not([open])')];
    for (const card of opened) card.open = true;
  });
  addEventListener('afterprint', () => {
    for (const card of opened) card.open = false;
  });
}

async function main() {
  const run = await Run.load();
  const filter = new Filter(run);
  showOverview(run);
  const panel = new DetailPanel(run, () => {
    timeline.choose(-1);
    byId('lanes').focus();
  });
  const timeline = new Timeline(run, filter, cell => panel.show(cell));
  const choose = cell => {
    if (!filter.mask[cell]) byId('filter').reset();
    timeline.choose(cell);
    byId('stage').scrollIntoView({ block: 'start' });
    byId('lanes').focus({ preventScroll: true });
  };
  showCritical(run, choose);
  showFailures(run, choose);
  showChanges(run, choose);
  showSlowest(run, choose);
  showHosts(run);
  const results = new ResultTable(run, filter, choose);
  const count = () => {
    byId('count').textContent = `${filter.count.toLocaleString('en')} of ${plural(run.size, 'result')}, ${plural(filter.rows.length, 'host')}`;
  };
  const changed = () => {
    filter.apply();
    timeline.filtered();
    results.update();
    count();
  };
  stateButtons(run, filter, changed);
  roleChoices(run);
  watchFilter(run, filter, changed);
  timelineButtons(timeline);
  themeSwitch(() => timeline.paint());
  forPrint();
  count();
  timeline.resize();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.body.dataset.ready = Math.round(performance.now()); // milliseconds after the page was asked for
  }));
}

main();
