"use strict";
// Draws the timeline and the map of sectors from the data in the page, and steps through them. Text
// of a run is only ever set as text.
(() => {
  const $ = (id) => document.getElementById(id);
  const data = $("data");
  if (!data) return;
  const story = JSON.parse(data.textContent);
  const moments = story.moments || [];
  const last = moments.length - 1;
  if (last < 0) return;

  const LANE = 26, TOP = 42, GAP = 13;
  const SVG = "http://www.w3.org/2000/svg";
  const make = (parent, name, attributes, text) => {
    const e = document.createElementNS(SVG, name);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (text !== undefined) e.textContent = text;
    parent.append(e);
    return e;
  };
  const node = (parent, name, className, text) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    parent.append(e);
    return e;
  };
  const micros = (ns) => (ns / 1000).toFixed(3).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u202f");

  // Positions: each moment stands behind the one before it, further the more time has passed.
  const xs = [];
  let x = 22;
  moments.forEach((m, i) => {
    if (i > 0) x += GAP + 7 * Math.log10(1 + Math.max(0, m.t - moments[i - 1].t) / 100);
    xs.push(x);
  });
  const width = x + 40;
  const at = (t, from) => { // the position of a time at or after a moment
    let i = from;
    while (i < last && moments[i + 1].t <= t) i++;
    if (i === last) return Math.min(width, xs[i] + 20);
    const share = (t - moments[i].t) / Math.max(1, moments[i + 1].t - moments[i].t);
    return xs[i] + share * (xs[i + 1] - xs[i]);
  };

  // Bars: a step of an effect from its issue to its completion, or to the end of its process.
  const bars = [];
  const lives = [];
  const trouble = [];
  moments.forEach((m, i) => {
    if (lives.length === 0 || m.l !== lives[lives.length - 1].life) lives.push({ life: m.l, from: xs[i] });
    if (m.f || ["failed", "cut", "died", "lost", "violated"].includes(m.k)) trouble.push(i);
    if (m.k !== "issued") return;
    let end = m.u, bad = false;
    for (let j = i + 1; j <= last && moments[j].t <= m.u; j++) {
      if (moments[j].k === "died" || moments[j].l !== m.l) { end = moments[j].t; break; }
      if (moments[j].w === m.w && moments[j].k === "failed") bad = true;
      if (moments[j].w === m.w && moments[j].k === "issued") break;
    }
    bars.push({ lane: m.w, from: xs[i], to: Math.max(xs[i] + 4, at(end, i)), bad });
  });

  const glyphs = {
    asked: (g, x, y) => make(g, "circle", { class: "mark asked", cx: x, cy: y, r: 4 }),
    stepped: (g, x, y) => make(g, "rect", { class: "mark stepped", x: x - 2, y: y - 6, width: 4, height: 12, rx: 1 }),
    acked: (g, x, y) => make(g, "circle", { class: "mark acked", cx: x, cy: y, r: 5 }),
    unknown: (g, x, y) => make(g, "path", { class: "mark unknown", d: `M${x} ${y - 6}l6 6-6 6-6-6z` }),
    fetched: (g, x, y) => make(g, "path", { class: "mark fetched", d: `M${x - 4} ${y - 5}l9 5-9 5z` }),
    phase: (g, x, y) => make(g, "rect", { class: "mark phase", x: x - 3.5, y: y - 3.5, width: 7, height: 7 }),
    started: (g, x, y) => make(g, "path", { class: "mark started", d: `M${x - 4} ${y - 6}l10 6-10 6z` }),
    healed: (g, x, y) => make(g, "path", { class: "mark healed", d: `M${x - 1.5} ${y - 6}h3v4.5h4.5v3h-4.5v4.5h-3v-4.5h-4.5v-3h4.5z` }),
    violated: (g, x, y) => make(g, "path", { class: "mark violated", d: `M${x} ${y - 9}l9 9-9 9-9-9z` }),
    note: (g, x, y) => make(g, "circle", { class: "mark note", cx: x, cy: y, r: 2.5 }),
  };
  glyphs.failed = glyphs.cut = glyphs.died = glyphs.lost =
    (g, x, y) => make(g, "path", { class: "mark cross", d: `M${x - 5} ${y - 5}l10 10m0-10l-10 10` });
  const faultMark = (g, x, y) => make(g, "path", { class: "fault", d: `M${x + 2} ${y - 13}l-5 7h3l-2 6 6-8h-3l2-5z` });

  const scroll = $("scroll"), picture = $("picture");
  const height = TOP + LANE * story.tracks.length + 6;
  $("wide").style.width = width + "px";
  picture.setAttribute("height", height);
  story.tracks.forEach((name) => node($("names"), "div", "", name).title = name);
  let now = 0;

  function draw() {
    const left = scroll.scrollLeft, view = scroll.clientWidth;
    picture.setAttribute("width", view);
    picture.setAttribute("viewBox", `${left} 0 ${view} ${height}`);
    picture.replaceChildren();
    const right = left + view;
    lives.forEach((life, i) => {
      const end = i + 1 < lives.length ? lives[i + 1].from - GAP / 2 : width;
      const from = life.from - GAP / 2;
      if (from > right || end < left) return;
      if (i % 2 === 1) make(picture, "rect", { class: "life", x: from, y: TOP, width: end - from, height: height - TOP });
      make(picture, "line", { class: "tick", x1: from, x2: from, y1: 4, y2: height });
      make(picture, "text", { class: "lifename", x: Math.max(from, Math.min(left, end - 46)) + 6, y: 14 }, "life " + life.life);
    });
    for (let i = 0; i <= story.tracks.length; i++)
      make(picture, "line", { class: "rule", x1: left, x2: right, y1: TOP + i * LANE, y2: TOP + i * LANE });
    let label = -1e9;
    const shown = [];
    for (let i = 0; i <= last; i++) {
      if (xs[i] < left - 120) continue;
      if (xs[i] > right + 20) break;
      shown.push(i);
      if (xs[i] - label > 105) {
        make(picture, "line", { class: "tick", x1: xs[i], x2: xs[i], y1: TOP - 7, y2: TOP });
        make(picture, "text", { x: xs[i] + 3, y: TOP - 9 }, micros(moments[i].t) + " µs");
        label = xs[i];
      }
    }
    for (const b of bars)
      if (b.to >= left && b.from <= right)
        make(picture, "rect", { class: b.bad ? "bar failed" : "bar", x: b.from, y: TOP + b.lane * LANE + 6, width: b.to - b.from, height: LANE - 12, rx: 2 });
    for (const i of shown) {
      const m = moments[i], y = TOP + m.w * LANE + LANE / 2;
      if (m.k === "died" || m.k === "lost") make(picture, "line", { class: "crash", x1: xs[i], x2: xs[i], y1: TOP, y2: height });
      if (glyphs[m.k]) glyphs[m.k](picture, xs[i], y);
      if (m.f) faultMark(picture, xs[i], y);
    }
    make(picture, "line", { class: "cursor", x1: xs[now], x2: xs[now], y1: TOP - 6, y2: height });
  }

  // The disk at a step: all changes up to it.
  let disk = new Map(), drawn = -1;
  function diskAt(step) {
    if (step < drawn) { disk = new Map(); drawn = -1; }
    for (; drawn < step; drawn++)
      for (const c of moments[drawn + 1].d || []) {
        if (c.g) { disk.delete(c.f); continue; }
        const f = disk.get(c.f) || { cells: [] };
        Object.assign(f, { live: !!c.l, durable: !!c.s, kernel: c.k, device: c.d });
        f.cells.length = Math.min(f.cells.length, Math.ceil(Math.max(c.k, c.d) / 512));
        for (const [s, k, d, state] of c.c || []) f.cells[s] = { k, d, state };
        disk.set(c.f, f);
      }
    return disk;
  }
  const kernelClass = (c) => c.k < 0 ? "none" : c.state === 3 ? "bad" : c.k === c.d ? (c.k === 0 ? "zero" : "both")
    : c.state === 1 ? "dirty" : c.state === 2 ? "ghost" : "dirty";
  const deviceClass = (c) => c.d < 0 ? "none" : c.state === 3 ? "bad" : c.d === 0 ? "zero" : c.d === c.k ? "both" : "old";
  const contentWords = (n) => n < 0 ? "beyond the end" : n === 0 ? "zeros" : "content " + n;
  const stateWords = ["", "; the next sync writes it", "; no sync will write it", "; unreadable"];

  function drawFiles() {
    const files = $("files"), changed = new Map();
    for (const c of moments[now].d || []) changed.set(c.f, new Set((c.c || []).map((s) => s[0])));
    const at = diskAt(now);
    files.replaceChildren();
    const order = [...at.keys()].sort((a, b) => story.files[a] < story.files[b] ? -1 : 1);
    if (order.length === 0) node(files, "p", "missing", "No file yet.");
    for (const id of order) {
      const f = at.get(id), box = node(files, "div", "file"), head = node(box, "div", "name");
      node(head, "span", "", story.files[id]);
      node(head, "span", "size", f.kernel === f.device ? `${f.kernel} bytes` : `${f.kernel} bytes, ${f.device} on the device`);
      if (!f.live) node(head, "span", "tag warn", "removed or renamed, not synced");
      else if (!f.durable) node(head, "span", "tag warn", "name not on the device");
      const cells = node(box, "div", "cells");
      const count = { both: 0, dirty: 0, ghost: 0, bad: 0 };
      f.cells.forEach((c, s) => {
        const sector = node(cells, "span", "sector" + (changed.get(id)?.has(s) ? " changed" : ""));
        const k = kernelClass(c), differ = c.k !== c.d;
        if (k in count) count[k]++;
        node(sector, "i", "cell " + k, differ && c.k > 0 ? c.k : "");
        node(sector, "i", "cell " + deviceClass(c), differ && c.d > 0 ? c.d : "");
        sector.title = `bytes ${s * 512} to ${s * 512 + 511}\nkernel: ${contentWords(c.k)}\ndevice: ${contentWords(c.d)}${stateWords[c.state]}`;
      });
      cells.setAttribute("role", "img");
      cells.setAttribute("aria-label", `${f.cells.length} sectors: ${count.both} on both, ${count.dirty} in the kernel only, ` +
        `${count.ghost} that no sync will write, ${count.bad} unreadable`);
    }
  }

  const AROUND = 40;
  function drawSteps() {
    const list = $("steps");
    list.replaceChildren();
    let current;
    for (let i = Math.max(0, now - AROUND); i <= Math.min(last, now + AROUND); i++) {
      const m = moments[i], item = node(list, "li", m.k);
      node(item, "time", "", micros(m.t));
      const text = node(item, "span", "", (m.k === "issued" ? "issued: " : "") + m.x);
      for (const f of m.f || []) node(text, "span", "tag", f);
      item.dataset.step = i;
      if (i === now) { item.setAttribute("aria-current", "step"); current = item; }
    }
    list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 2;
  }

  function go(step, follow) {
    now = Math.max(0, Math.min(last, step));
    const m = moments[now], line = $("now");
    $("slider").value = now;
    $("slider").setAttribute("aria-valuetext", `step ${now + 1} of ${last + 1}`);
    line.replaceChildren();
    node(line, "span", "when", `step ${now + 1 + story.skipped} of ${last + 1 + story.skipped} · ${micros(m.t)} µs · life ${m.l} · ${story.tracks[m.w]}`);
    node(line, "span", "", (m.k === "issued" ? "issued: " : "") + m.x);
    for (const f of m.f || []) node(line, "span", "tag", f);
    if (follow !== false) {
      const left = xs[now] - scroll.clientWidth / 2;
      if (xs[now] < scroll.scrollLeft + 60 || xs[now] > scroll.scrollLeft + scroll.clientWidth - 60) scroll.scrollLeft = left;
    }
    draw();
    drawFiles();
    drawSteps();
  }
  const nextTrouble = () => go(trouble.find((i) => i > now) ?? trouble[0] ?? now);

  $("slider").max = last;
  $("slider").addEventListener("input", (e) => go(Number(e.target.value)));
  $("first").addEventListener("click", () => go(0));
  $("back").addEventListener("click", () => go(now - 1));
  $("next").addEventListener("click", () => go(now + 1));
  $("last").addEventListener("click", () => go(last));
  $("jump").addEventListener("click", nextTrouble);
  $("jump").disabled = trouble.length === 0;
  $("steps").addEventListener("click", (e) => {
    const item = e.target.closest("li");
    if (item) go(Number(item.dataset.step));
  });
  picture.addEventListener("click", (e) => {
    const x = e.clientX - picture.getBoundingClientRect().left + scroll.scrollLeft;
    const y = e.clientY - picture.getBoundingClientRect().top;
    const lane = Math.floor((y - TOP) / LANE);
    let best = now, distance = Infinity;
    xs.forEach((v, i) => {
      const d = Math.abs(v - x) + (moments[i].w === lane ? 0 : 8);
      if (d < distance) { distance = d; best = i; }
    });
    go(best, false);
  });
  document.addEventListener("keydown", (e) => {
    if (e.altKey || e.ctrlKey || e.metaKey || /^(INPUT|TEXTAREA|PRE)$/.test(e.target.tagName)) return;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[e.key];
    if (to !== undefined) { e.preventDefault(); go(to); }
    if (e.key === "j" || e.key === "J") nextTrouble();
  });
  $("copy").addEventListener("click", async () => {
    const code = $("replay");
    try {
      await navigator.clipboard.writeText(code.textContent);
      $("copy").textContent = "Copied";
    } catch { // a file: page may not write to the clipboard
      getSelection().selectAllChildren(code);
      $("copy").textContent = "Selected";
    }
    setTimeout(() => { $("copy").textContent = "Copy"; }, 1500);
  });
  scroll.addEventListener("scroll", draw);
  addEventListener("resize", draw);

  // The key of the timeline, from the same shapes.
  const words = { asked: "called", issued: "on its way", stepped: "carried out", acked: "acked", unknown: "unknown outcome",
    failed: "failed, or the process died", fetched: "read", phase: "log changed phase", started: "process starts", fault: "a fault struck", violated: "violated" };
  for (const kind in words) {
    const item = node($("key"), "span"), svg = make(item, "svg", { width: 18, height: 18, viewBox: "0 0 18 18", class: "drawing" });
    if (kind === "issued") make(svg, "rect", { class: "bar", x: 1, y: 5, width: 16, height: 9, rx: 2 });
    else if (kind === "fault") faultMark(svg, 9, 16);
    else glyphs[kind](svg, 9, 9);
    node(item, "span", "", words[kind]);
  }

  // The violation is where a reader wants to be; without one, the beginning.
  const violated = moments.findIndex((m) => m.k === "violated");
  go(violated < 0 ? 0 : violated);
})();
