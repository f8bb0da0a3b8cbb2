'use strict';
// The page of `foreshard serve`: settings of one or two sides go to the server, which answers with
// figures and sections. All state is in the fragment of the link:
// #strategy.micro_batch=2&B&B.strategy.zero_stage=1
(() => {
  const sides = [];
  const $ = (root, selector) => root.querySelector(selector);
  const beside = document.getElementById('beside');

  class Side {
    constructor(name) {
      this.name = name;
      this.set = {};    // Key -> value, of what differs from the study.
      this.fill = true;
      this.ahead = new Map();  // Question -> its control.
      this.root = document.querySelector('template').content.cloneNode(true).firstElementChild;
      this.root.id = name;
      this.root.setAttribute('aria-label', `strategy ${name}`);
      $(this.root, 'h2').textContent = name;
      document.getElementById('sides').append(this.root);
      this.form = $(this.root, 'form');
      this.form.addEventListener('submit', event => event.preventDefault());
      this.form.addEventListener('input', event => this.changed(event.target));
      for (const button of this.root.querySelectorAll('.tools button'))
        button.addEventListener('click', () => this[button.value]());
      for (const field of this.fields()) this.wire(field);
    }

    // Arrows and the buttons beside a number move it; a control that is looked at is asked ahead.
    wire(field) {
      const box = field.closest('.field');
      for (const what of ['pointerenter', 'focusin'])
        box.addEventListener(what, () => { this.near = field; this.askAhead(); });
      if (field.type !== 'number') return;
      const move = up => {
        const value = neighbours(field)[up ? 0 : 1];
        if (value === undefined) return;
        field.value = value;
        this.changed(field);
      };
      field.addEventListener('keydown', event => {
        if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
        event.preventDefault();
        move(event.key === 'ArrowUp');
      });
      for (const button of box.querySelectorAll('button'))
        button.addEventListener('click', () => move(button.value === '+'));
    }

    // Has the neighbours of the control that is looked at simulated while nothing else is asked.
    askAhead() {
      if (!this.near || this.root.dataset.drawn === undefined) return;
      for (const value of neighbours(this.near).filter(one => one !== undefined)) {
        const body = this.question({[this.near.name]: value});
        if (this.ahead.has(body)) continue;
        const control = new AbortController();
        this.ahead.set(body, control);
        post('ahead', body, control.signal);
      }
    }

    fields() { return [...this.form.elements].filter(one => one.dataset.own !== undefined); }

    // Puts what is set into the controls; others have what the study has in the end.
    show(values = {}) {
      for (const field of this.fields()) {
        const own = this.set[field.name] === undefined;
        const value = own ? values[field.name] ?? field.dataset.own : this.set[field.name];
        if (field !== document.activeElement || field.checkValidity()) {
          if (field.options && ![...field.options].some(one => one.value === value))
            field.append(new Option(value));
          field.value = value;
        }
        field.closest('.field').classList.toggle('changed', value !== field.dataset.own);
      }
      this.form.elements.fill.checked = this.fill;
    }

    changed(field) {
      if (field.name === 'fill') this.fill = field.checked;
      else if (!field.checkValidity()) { this.refuse(`${field.name}: ${field.validationMessage}`); return; }
      else {
        if (field.value === field.dataset.own) delete this.set[field.name];
        else this.set[field.name] = field.value;
        this.values = {...this.values, [field.name]: field.value};
        if (field.name === 'strategy.data_parallel') this.fill = false;
      }
      this.ask();
    }

    reset() { this.set = this.values = {}; this.fill = true; this.ask(); }

    question(more) { return JSON.stringify({set: this.with(more), fill: this.fills(more)}); }

    // The settings with some more; a value that is the study's own is none.
    with(more = {}) {
      const set = {...this.set, ...more};
      for (const field of this.fields()) if (set[field.name] === field.dataset.own) delete set[field.name];
      return Object.fromEntries(Object.entries(set).sort());
    }

    fills(more = {}) { return this.fill && !('strategy.data_parallel' in more); }

    stop() {
      for (const one of [this.asked, this.drawn, this.searched, ...this.ahead.values()]) one?.abort();
      clearTimeout(this.later);
    }

    // The figures at once; pictures that need the time line when nothing more is changed.
    async ask() {
      this.asked?.abort();
      this.drawn?.abort();
      clearTimeout(this.later);
      for (const [body, control] of this.ahead) if (body !== this.question()) control.abort();
      this.ahead.clear();
      keep();
      this.show(this.values);
      const asked = this.asked = new AbortController();
      this.root.classList.add('stale');
      this.tell('simulating ...');
      const begun = performance.now();
      const answer = await post('simulate', this.question(), asked.signal);
      if (asked.signal.aborted) return;
      if (answer.fault) { this.refuse(answer.fault); return; }
      this.draw(answer);
      this.tell(`simulated in ${Math.round(performance.now() - begun)} ms`);
      this.later = setTimeout(() => this.askPictures(), 300);
      this.askAhead();
    }

    async askPictures() {
      const drawn = this.drawn = new AbortController();
      const answer = await post('pictures', this.question(), drawn.signal);
      if (drawn.signal.aborted || answer.fault) return;
      $(this.root, '.sections').innerHTML = answer.html;
      this.root.dataset.drawn = 'all';
    }

    draw(answer) {
      this.values = answer.values;
      for (const field of this.fields())  // the study's file may have changed
        field.dataset.own = answer.own[field.name] ?? field.dataset.own;
      this.figures = answer.figures;
      this.show(answer.values);
      const list = document.createElement('dl');
      for (const one of answer.figures) {
        const box = document.createElement('div');
        for (const [tag, text] of [['dt', one.name], ['dd', one.text]])
          box.appendChild(document.createElement(tag)).textContent = text;
        box.dataset.value = one.value;
        list.append(box);
      }
      $(this.root, '.figures').replaceChildren(list);
      $(this.root, '.sections').innerHTML = answer.html;
      $(this.root, '.fault').hidden = true;
      this.root.classList.remove('stale');
      this.root.dataset.drawn = 'figures';
      compare();
    }

    tell(text) { $(this.root, '.told').textContent = text; }

    refuse(message) {
      this.figures = null;
      this.tell('');
      const fault = $(this.root, '.fault');
      fault.hidden = false;
      fault.textContent = message;
      this.root.dataset.drawn = 'fault';
      compare();
    }

    yaml() { this.copy('yaml'); }
    command() { this.copy('command'); }

    async copy(what) {
      const answer = await post(what, this.question());
      if (answer.fault) { this.refuse(answer.fault); return; }
      const box = $(this.root, '.text');
      box.hidden = false;
      box.value = answer.text;
      box.select();
      let copied = true;
      try { await navigator.clipboard.writeText(answer.text); } catch { copied = false; }
      this.tell(copied ? 'copied' : 'ready to copy');
    }

    async search() {
      if (this.searched) { this.searched.abort(); return; }
      const button = $(this.root, 'button[value=search]');
      const searched = this.searched = new AbortController();
      const found = $(this.root, '.found');
      button.textContent = 'stop the search';
      found.replaceChildren();
      const progress = found.appendChild(document.createElement('p'));
      progress.setAttribute('role', 'status');
      progress.textContent = 'searching ...';
      try {
        const response = await fetch('search', request(this.question(), searched.signal));
        if (!response.ok) throw new Error(await response.text());
        for await (const {event, data} of events(response)) {
          const told = JSON.parse(data);
          if (event === 'progress') progress.textContent = told.text;
          else if (event === 'fault') progress.textContent = told.fault;
          else this.offer(found, told);
        }
      } catch (fault) {
        progress.textContent = searched.signal.aborted ? 'stopped' : String(fault.message);
      }
      this.searched = null;
      button.textContent = 'search';
    }

    // What a search found, each with a button that takes it over.
    offer(found, told) {
      found.innerHTML = told.html;
      const rows = found.querySelectorAll('tbody tr');
      told.strategies.forEach((set, i) => {
        const take = document.createElement('button');
        take.type = 'button';
        take.textContent = 'take it';
        take.addEventListener('click', () => {
          for (const [key, value] of Object.entries(set)) {
            if (value === null) delete this.set[key];  // as the study has it
            else this.set[key] = value;
          }
          this.fill = false;
          this.ask();
        });
        rows[i]?.insertCell().append(take);
      });
    }

    remove() { this.stop(); this.root.remove(); }
  }

  // The values beside a control's: the next larger one first.
  function neighbours(field) {
    if (field.options) {
      const at = field.selectedIndex;
      return [at + 1, at - 1].filter(i => field.options[i]).map(i => field.options[i].value);
    }
    const value = Number(field.value);
    const doubles = field.min === '1';
    const [up, down] = doubles ? [2 * value, value / 2] : [value + 1, value - 1];
    const fits = one => Number.isInteger(one) && one >= Number(field.min) && one <= Number(field.max);
    return [fits(up) ? String(up) : undefined, fits(down) ? String(down) : undefined];
  }

  function request(body, signal) {
    return {method: 'POST', headers: {'Content-Type': 'application/json'}, body, signal};
  }

  async function post(path, body, signal) {
    try {
      const response = await fetch(path, request(body, signal));
      return response.ok ? await response.json() : {fault: await response.text()};
    } catch (fault) {
      return {fault: signal?.aborted ? 'stopped' : 'foreshard serve does not answer: has it ended?'};
    }
  }

  // Server-sent events of a response to a POST, which EventSource cannot send.
  async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      text += value;
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        const lines = text.slice(0, end).split('\n');
        const of = name => lines.filter(one => one.startsWith(name)).map(one => one.slice(name.length));
        yield {event: of('event: ')[0], data: of('data: ').join('\n')};
      }
    }
  }

  // What B changes against A.
  function compare() {
    const [a, b] = sides;
    let text = '';
    if (a?.figures && b?.figures)
      for (const one of a.figures) {
        const other = b.figures.find(each => each.name === one.name);
        if (!other || !(one.value > 0) || !Number.isFinite(other.value)) continue;
        const change = 100 * (other.value / one.value - 1);
        text += `${text ? ', ' : 'B against A: '}${one.name} ${change < 0 ? '' : '+'}${change.toFixed(1)} %`;
      }
    document.getElementById('difference').textContent = text;
  }

  // State to the link, and back.
  function keep() {
    const state = new URLSearchParams();
    sides.forEach((side, i) => {
      const prefix = i ? `${side.name}.` : '';
      if (i) state.append(side.name, '');
      if (!side.fill) state.append(`${prefix}fill`, '0');
      for (const [key, value] of Object.entries(side.set)) state.append(prefix + key, value);
    });
    const fragment = String(state);
    if (fragment !== location.hash.slice(1)) history.replaceState(null, '', `#${fragment}`);
  }

  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    resize(state.has('B') ? 2 : 1);
    sides.forEach((side, i) => {
      const prefix = i ? `${side.name}.` : '';
      side.set = {};
      side.fill = !state.has(`${prefix}fill`);
      for (const [key, value] of state)
        if (key.startsWith(`${prefix}strategy.`) || key.startsWith(`${prefix}cluster.`) || key === `${prefix}model`)
          side.set[key.slice(prefix.length)] = value;
    });
    for (const side of sides) side.ask();
  }

  function resize(count) {
    while (sides.length > count) sides.pop().remove();
    while (sides.length < count) sides.push(new Side('AB'[sides.length]));
    beside.setAttribute('aria-expanded', String(count > 1));
    beside.textContent = count > 1 ? 'only A' : 'another beside it';
  }

  beside.addEventListener('click', () => {
    if (sides.length > 1) { resize(1); keep(); compare(); return; }
    resize(2);
    sides[1].set = {...sides[0].set};
    sides[1].fill = sides[0].fill;
    sides[1].ask();
  });
  window.addEventListener('hashchange', restore);
  window.addEventListener('pagehide', () => sides.forEach(side => side.stop()));
  window.addEventListener('pageshow', event => { if (event.persisted) restore(); });
  restore();
})();
