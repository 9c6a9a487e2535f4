// Elements are made from text, never from markup: what a host printed stays text.

const byId = id => document.getElementById(id);

// el makes an element: el('p.note', {title: 'x'}, 'text', child, ...).
// Properties that begin with "on" are listeners; null children are left out.
function el(kind, props, ...children) {
  const [tag, ...classes] = kind.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

const plural = (n, word) => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;

// span is a length of time, given in microseconds, for people.
function span(us) {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${(us / 1000).toPrecision(3).replace(/\.0+$|(\.\d*?)0+$/, '$1')} ms`;
  const s = us / 1e6;
  if (s < 60) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${String(Math.floor(s % 60)).padStart(2, '0')} s`;
  return `${Math.floor(m / 60)} h ${String(m % 60).padStart(2, '0')} min`;
}

const badge = (state, text) => el(`span.state.${state}`, null, text ?? state);
