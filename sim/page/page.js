// The time line of a bundle (sim/report/time_line.h) on a canvas: pan, zoom, tell, count.
'use strict';
(async () => {
  const source = document.getElementById('line-data');
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const canvas = document.getElementById('line-canvas');
  const box = document.getElementById('line-rows');
  const told = document.getElementById('line-told');
  const kernels = document.getElementById('line-kernels');
  const ROW = 22, BAR = 17, NAMES = 130, AXIS = 22;

  // Colours are those of the charts: the style sheet of the SVGs is the only place that has them.
  const probe = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const rectangle = probe.appendChild(document.createElementNS(probe.namespaceURI, 'rect'));
  probe.setAttribute('aria-hidden', true);
  probe.setAttribute('width', 0);
  probe.setAttribute('height', 0);
  document.body.append(probe);
  const colours = () => {
    const of = style => {
      rectangle.setAttribute('class', style.replaceAll(' ', '_'));
      const fill = getComputedStyle(rectangle).fill;
      return fill === 'none' ? '#999' : fill;
    };
    return data.names.map(name => of(name.style));
  };
  let palette = colours();
  const page = () => getComputedStyle(document.body);

  async function unpacked(level) {
    const bytes = Uint8Array.from(atob(level.data), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const packed = new Uint8Array(await new Response(stream).arrayBuffer());
    let at = 0;
    const next = () => {
      let number = 0, unit = 1, byte;
      do {
        byte = packed[at++];
        number += (byte & 127) * unit;
        unit *= 128;
      } while (byte > 127);
      return number;
    };
    const n = level.count;
    const start = new Float64Array(n), end = new Float64Array(n);
    const name = new Uint32Array(n), number = new Uint32Array(n);
    for (let i = 0; i < n; ++i) start[i] = next();
    for (let i = 0, now = 0; i < n; ++i) {
      start[i] += now;
      now = end[i] = start[i] + next();
    }
    for (let i = 0; i < n; ++i) name[i] = next();
    for (let i = 0; i < n; ++i) number[i] = next();
    return {level: level.level, n, start, end, name, number};
  }

  const tracks = await Promise.all(data.tracks.map(async track => ({
    of: track.class, stream: track.stream, main: track.levels.length > 1 || track.class === null,
    levels: await Promise.all(track.levels.map(unpacked)),
  })));
  let last = 1;
  for (const track of tracks)
    for (const level of track.levels) if (level.n) last = Math.max(last, level.end[level.n - 1]);

  const open = new Set([tracks.find(track => track.of !== null)?.of]);
  let rows = [], from = 0, to = last, selected = 0;
  const arrange = () => {
    rows = tracks.filter(track => track.main || open.has(track.of));
    selected = Math.min(selected, rows.length - 1);
    const needed = `${rows.length * ROW + AXIS + 4}px`;
    spacer.style.height = needed;
    box.style.height = needed;  // the style sheet says how high it may become
  };
  const spacer = document.createElement('div');
  box.append(spacer);

  // The first span that ends after `time`.
  const first = (level, time) => {
    let low = 0, high = level.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (level.end[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  };

  // The finest level that has at most two spans a pixel in view, else the coarsest.
  const chosen = (track, width) => {
    for (let i = track.levels.length - 1; i > 0; --i) {
      const level = track.levels[i];
      if (first(level, to) - first(level, from) <= 2 * width) return level;
    }
    return track.levels[0];
  };

  const seconds = ns => {
    const units = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]];
    const [unit, size] = units.find(([, size]) => Math.abs(ns) >= size) || units[3];
    return `${+(ns / size).toPrecision(4)} ${unit}`;
  };
  const words = (level, i) => {
    const kind = level.level === 'passes' ? 'micro-batch' : 'layer';
    const name = data.names[level.name[i]].name;
    return `${name}, ${kind} ${level.number[i]}: ${seconds(level.end[i] - level.start[i])} ` +
        `from ${seconds(level.start[i])}`;
  };

  const pen = canvas.getContext('2d', {alpha: false});
  let width = 0, height = 0, ratio = 1;
  const resize = () => {
    ratio = window.devicePixelRatio || 1;
    width = box.clientWidth;
    height = box.clientHeight;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    canvas.style.marginBottom = `-${height}px`;  // the rows behind it scroll
    draw();
  };

  const bars = (track, top) => {
    const room = width - NAMES;
    const level = chosen(track, room);
    const scale = room / (to - from);
    const label = level.level === 'passes';
    let left = -1, right = -1, colour = '';
    const flush = () => {
      if (right <= left) return;
      pen.fillStyle = colour;
      pen.fillRect(left, top, Math.max(right - left, 0.5), BAR);
    };
    for (let i = first(level, from); i < level.n && level.start[i] < to; ++i) {
      const a = NAMES + Math.max(level.start[i] - from, 0) * scale;
      const b = NAMES + Math.min(level.end[i] - from, to - from) * scale;
      const now = palette[level.name[i]];
      if (now === colour && a - right < 0.4 && b - a < 3) {
        right = b;
      } else if (b - left < 0.6 && right > left) {
        right = Math.max(right, b);  // less than a pixel: it is part of the span before
      } else {
        flush();
        [left, right, colour] = [a, b, now];
      }
      if (label && b - a > 18) {
        flush();
        pen.fillStyle = '#000';
        pen.fillText(level.number[i], (a + b) / 2 - 4, top + 12);
        left = right = b;
      } else if (b - a < 0.25) {  // jumps over what would fall into the same quarter of a pixel
        const until = first(level, from + (b - NAMES + 0.25) / scale);
        if (until > i + 1) {
          i = until - 1;
          right = Math.max(right, NAMES + Math.min(level.end[i] - from, to - from) * scale);
        }
      }
    }
    flush();
  };

  const times = window.foreshardFrames = [];
  const draw = () => {
    const begin = performance.now();
    const {color, backgroundColor} = page();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = backgroundColor;
    pen.fillRect(0, 0, width, height);
    pen.font = '11px system-ui, sans-serif';
    const top = box.scrollTop;
    for (let i = Math.floor(top / ROW); i < rows.length; ++i) {
      const y = AXIS + i * ROW - top;
      if (y > height) break;
      if (y < AXIS - ROW) continue;
      const track = rows[i];
      pen.fillStyle = color;
      const name = track.of === null ? track.stream : data.classes[track.of];
      pen.fillText((i === selected ? '▸ ' : '') + (track.main ? name : '  ' + track.stream), 4, y + 12,
          NAMES - 8);
      bars(track, y);
    }
    pen.fillStyle = backgroundColor;
    pen.fillRect(0, 0, width, AXIS - 4);
    pen.fillStyle = color;
    for (let i = 0; i < 8; ++i) {
      const time = from + (to - from) * i / 8;
      const x = NAMES + (width - NAMES) * i / 8;
      pen.fillRect(x, AXIS - 6, 1, 4);
      pen.fillText(seconds(time), x + 2, 11);
    }
    times.push(performance.now() - begin);
    if (times.length > 2000) times.shift();
  };
  let asked = false;
  const later = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };

  const show = (a, b) => {
    const least = Math.min(100, last);
    const span = Math.min(Math.max(b - a, least), last);
    from = Math.min(Math.max(a, 0), last - span);
    to = from + span;
    later();
  };
  const zoom = (factor, at = (from + to) / 2) =>
    show(at - (at - from) * factor, at + (to - at) * factor);
  const time = x => from + (x - NAMES) / (width - NAMES) * (to - from);
  const place = event => {
    const bounds = canvas.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  const row = y => Math.floor((y - AXIS + box.scrollTop) / ROW);

  const count = () => {
    const track = rows[selected];
    const level = track.levels[track.levels.length - 1];
    const sums = new Map();
    for (let i = first(level, from); i < level.n && level.start[i] < to; ++i) {
      const sum = sums.get(level.name[i]) || [0, 0];
      sums.set(level.name[i], [sum[0] + 1, sum[1] + level.end[i] - level.start[i]]);
    }
    const body = kernels.tBodies[0];
    body.textContent = '';
    const sorted = [...sums].sort((a, b) => b[1][1] - a[1][1]).slice(0, 50);
    for (const [name, [tasks, total]] of sorted) {
      const line = body.insertRow();
      line.insertCell().textContent = data.names[name].name;
      for (const text of [tasks, seconds(total)]) {
        const cell = line.insertCell();
        cell.className = 'number';
        cell.textContent = text;
      }
    }
    const who = track.of === null ? '' : data.classes[track.of] + ', ';
    kernels.caption.textContent =
        `Tasks of ${who}${track.stream} between ${seconds(from)} and ${seconds(to)}`;
    kernels.hidden = false;
  };
  const toggle = track => {
    if (track.of === null) return;
    if (!open.delete(track.of)) open.add(track.of);
    arrange();
    const at = rows.indexOf(track);
    select(at < 0 ? rows.findIndex(row => row.of === track.of) : at);
  };
  const select = next => {
    selected = Math.min(Math.max(next, 0), rows.length - 1);
    const y = selected * ROW;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + ROW + AXIS > box.scrollTop + height) box.scrollTop = y + ROW + AXIS - height;
    const track = rows[selected];
    told.textContent = track.of === null ? track.stream : `${data.classes[track.of]}: ${track.stream}`;
    later();
  };

  const keys = {
    ArrowLeft: () => show(from - (to - from) / 8, to - (to - from) / 8),
    ArrowRight: () => show(from + (to - from) / 8, to + (to - from) / 8),
    ArrowUp: () => select(selected - 1),
    ArrowDown: () => select(selected + 1),
    '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7),
    '0': () => show(0, last),
    ' ': () => toggle(rows[selected]),
    Enter: count,
    '?': () => { told.textContent = canvas.title; },
  };
  canvas.addEventListener('keydown', event => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  let held = null;
  canvas.addEventListener('pointerdown', event => {
    canvas.focus({preventScroll: true});
    canvas.setPointerCapture(event.pointerId);
    held = {x: place(event)[0], from, to};
    const at = row(place(event)[1]);
    if (at >= 0 && at < rows.length) {
      selected = at;
      if (place(event)[0] < NAMES) toggle(rows[at]);
    }
    later();
  });
  for (const end of ['pointerup', 'pointercancel'])
    canvas.addEventListener(end, () => { held = null; });
  canvas.addEventListener('pointermove', event => {
    const [x, y] = place(event);
    if (held) {
      const by = (x - held.x) / (width - NAMES) * (held.to - held.from);
      show(held.from - by, held.to - by);
      return;
    }
    const track = rows[row(y)];
    if (!track || x < NAMES) return;
    const level = chosen(track, width - NAMES);
    const i = first(level, time(x));
    told.textContent = i < level.n && level.start[i] <= time(x) ? words(level, i) : '';
  });
  canvas.addEventListener('wheel', event => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 500), time(place(event)[0]));
  }, {passive: false});
  box.addEventListener('scroll', later);
  for (const button of document.querySelectorAll('#line-tools button'))
    button.addEventListener('click', () => keys[button.value]());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    palette = colours();
    later();
  });
  new ResizeObserver(resize).observe(box);
  arrange();
  resize();
  document.documentElement.dataset.ready = 'yes';
})().catch(fault => {
  document.getElementById('line-told').textContent = `The time line cannot be shown: ${fault}`;
});
