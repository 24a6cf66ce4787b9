/* The script of report.html: round axes for the charts, the values of a step, zoom, and a page that loads itself again
 * while the run is under way. The page is complete without this script. It reads the numbers of a chart from the
 * paths of its SVG (chart.c), and puts text into the page as text only. Must not know: what is measured. Read next:
 * report.css. */
"use strict";
(() => {
  const SIZE = 1000; // of the drawing of a chart: browsers draw with single precision, so it has no numbers of the run
  const charts = [...document.querySelectorAll(".chart")].map(open);
  const live = document.body.dataset.written; // when a running process wrote the page, in seconds; else undefined
  let zoom = null; // the first and the last step that are shown; null: all
  let pressed = null; // where a selection began

  function add(parent, tag, style) {
    const made = document.createElement(tag);
    made.className = style;
    parent.append(made);
    return made;
  }

  /* The numbers of a path that only has M and L. */
  function points(path) {
    const n = path.getAttribute("d").match(/-?[0-9.]+(e[-+]?[0-9]+)?/g).map(Number);
    return n.flatMap((x, i) => (i % 2 || i < 2 ? [] : [{ x, y: n[i + 1] }]));
  }

  function open(figure) {
    const plot = figure.querySelector(".plot"), svg = plot.querySelector("svg");
    const [, top, end, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const grid = svg.querySelector(".line").cloneNode(), area = add(plot, "div", "area");
    const series = [...svg.querySelectorAll(".line")].map((path) => {
      const style = path.classList[1], key = figure.querySelector(".key." + style);
      return { path, dots: svg.querySelector(".dot." + style), style, name: key ? key.textContent : "", points: points(path) };
    });
    grid.setAttribute("class", "grid");
    svg.querySelector("g").prepend(grid);
    svg.querySelector("g").removeAttribute("transform");
    svg.setAttribute("viewBox", `0 0 ${SIZE} ${SIZE}`);
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", svg.getAttribute("aria-label") + ": arrow keys show the values of a step");
    const chart = {
      plot, svg, grid, area, series, limits: [-top - height, -top], end,
      steps: [...new Set(series.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b),
      x: plot.querySelector(".x"), y: plot.querySelector(".y"),
      cursor: add(area, "i", "cursor"), selection: add(area, "i", "selection"), tip: add(area, "div", "tip"),
    };
    chart.tip.setAttribute("aria-live", "polite");
    listen(chart);
    return chart;
  }

  /* ---- axes ---- */

  /* A step of 1, 2 or 5 times a power of ten, so that there are about `wanted` steps. */
  function roundStep(size, wanted) {
    const raw = size / wanted, power = 10 ** Math.floor(Math.log10(raw)), part = raw / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
  }

  function number(value, digits) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size < 1e-3) return Number(value.toPrecision(digits)).toExponential();
    const [unit, name] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
    return Number((value / unit).toPrecision(digits)) + name;
  }

  function ticks(axis, low, high, step, side, flip) {
    const all = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && all.length < 40; i++) all.push(i * step);
    axis.replaceChildren();
    for (const value of all) {
      const digits = Math.floor(Math.log10(Math.abs(value) * 1.0001)) - Math.floor(Math.log10(step * 1.0001)) + 1;
      const part = ((value - low) / (high - low)) * 100, label = add(axis, "span", part > 97 ? "end" : part < 3 ? "begin" : "");
      label.textContent = number(value, Math.min(Math.max(digits, 1), 7));
      label.style[side] = (flip ? 100 - part : part) + "%";
    }
    return all;
  }

  function span() {
    return zoom || [0, Math.max(...charts.map((c) => c.end))];
  }

  /* The limits of y in the steps that are shown. */
  function limits(chart, low, high) {
    const seen = zoom ? chart.series.flatMap((s) => s.points.filter((p) => p.x >= low && p.x <= high).map((p) => p.y)) : [];
    const [least, most] = seen.length ? [seen.reduce((a, b) => Math.min(a, b)), seen.reduce((a, b) => Math.max(a, b))] : chart.limits;
    const size = Math.max(Math.abs(least), Math.abs(most)), room = least === most ? 0.1 * size || 1 : 0.5e-4 * size - (most - least) / 2;
    return room > 0 ? [least - room, most + room] : [least, most]; // a ten-thousandth of the numbers is seen at most
  }

  function draw(chart) {
    const [low, high] = span();
    let [least, most] = limits(chart, low, high);
    const step = roundStep(most - least, 5);
    least = Math.floor(least / step + 1e-6) * step;
    most = Math.ceil(most / step - 1e-6) * step;
    const x = (value) => (((value - low) / (high - low)) * SIZE).toFixed(2), y = (value) => (((most - value) / (most - least)) * SIZE).toFixed(2);
    for (const s of chart.series) {
      const near = s.points.filter((p, i, all) => (all[i + 1] ?? p).x >= low && (all[i - 1] ?? p).x <= high);
      s.path.setAttribute("d", near.map((p, i) => `${i ? "L" : "M"}${x(p.x)} ${y(p.y)}`).join("") + (near.length === 1 ? "h0" : ""));
      if (s.dots) s.dots.setAttribute("d", near.map((p) => `M${x(p.x)} ${y(p.y)}h0`).join(""));
    }
    chart.svg.style.overflow = zoom ? "hidden" : ""; // else the edges would halve lines and dots
    chart.grid.setAttribute("d", ticks(chart.y, least, most, step, "top", true).map((at) => `M0 ${y(at)}H${SIZE}`).join(""));
    ticks(chart.x, low, high, Math.max(1, roundStep(high - low, Math.max(2, chart.area.clientWidth / 80))), "left", false);
  }

  function show(range) {
    const end = Math.max(...charts.map((c) => c.end));
    zoom = range && range[1] - range[0] < end ? [Math.max(0, range[0]), Math.min(end, range[1])] : null;
    reset.hidden = !zoom;
    point(null);
    charts.forEach(draw);
  }

  /* ---- the values of a step ---- */

  function nearest(list, x, of) {
    return list.reduce((best, p) => (Math.abs(of(p) - x) < Math.abs(of(best) - x) ? p : best), list[0]);
  }

  /* Marks a step in all charts and tells its values in one. */
  function point(chart, x) {
    const [low, high] = span();
    for (const c of charts) {
      const shown = chart && x >= low && x <= high;
      c.cursor.style.display = shown ? "block" : "none";
      c.tip.style.display = shown && c === chart ? "block" : "none";
      c.cursor.style.left = ((x - low) / (high - low)) * 100 + "%";
    }
    if (!chart) return;
    chart.at = x;
    chart.tip.replaceChildren();
    add(chart.tip, "b", "").textContent = "step " + Math.round(x);
    for (const s of chart.series) {
      const p = nearest(s.points, x, (q) => q.x);
      const away = Math.abs(p.x - x), other = away > 0.5 ? ` (step ${Math.round(p.x)})` : "";
      if (away > Math.max(0.5, (high - low) / 50)) continue;
      add(chart.tip, "span", "key " + s.style).textContent = (s.name ? s.name + " " : "") + number(p.y, 5) + other;
    }
    const right = x > (low + high) / 2, place = ((x - low) / (high - low)) * 100;
    chart.tip.style.left = right ? "" : place + "%";
    chart.tip.style.right = right ? 100 - place + "%" : "";
  }

  /* The step under the pointer. */
  function under(chart, event) {
    const box = chart.area.getBoundingClientRect(), [low, high] = span();
    return low + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (high - low);
  }

  function visible(chart) {
    const [low, high] = span(), inside = chart.steps.filter((x) => x >= low && x <= high);
    return inside.length ? inside : chart.steps;
  }

  /* ---- input ---- */

  function select(chart, from, to) {
    const [low, high] = span(), place = (x) => ((x - low) / (high - low)) * 100;
    chart.selection.style.display = "block";
    chart.selection.style.left = place(Math.min(from, to)) + "%";
    chart.selection.style.width = Math.abs(place(to) - place(from)) + "%";
  }

  function release(chart, event, takes) {
    if (!pressed) return;
    const from = pressed.x, to = under(chart, event), moved = Math.abs(event.clientX - pressed.pixel);
    pressed = null;
    chart.selection.style.display = "none";
    if (takes && moved > 6) show([Math.floor(Math.min(from, to)), Math.max(Math.ceil(Math.max(from, to)), Math.floor(Math.min(from, to)) + 1)]);
  }

  function listen(chart) {
    const { area, plot } = chart;
    area.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      pressed = { x: under(chart, event), pixel: event.clientX };
      area.setPointerCapture(event.pointerId);
      point(chart, nearest(visible(chart), pressed.x, (x) => x));
    });
    area.addEventListener("pointermove", (event) => {
      const x = under(chart, event);
      if (pressed) select(chart, pressed.x, x);
      point(chart, nearest(visible(chart), x, (at) => at));
    });
    area.addEventListener("pointerup", (event) => release(chart, event, true));
    area.addEventListener("pointercancel", (event) => release(chart, event, false));
    area.addEventListener("pointerleave", () => pressed || point(null));
    area.addEventListener("dblclick", () => show(null));
    plot.addEventListener("blur", () => point(null));
    plot.addEventListener("keydown", (event) => key(chart, event));
  }

  function key(chart, event) {
    const steps = visible(chart), [low, high] = span(), size = high - low;
    const at = steps.indexOf(nearest(steps, chart.at ?? low, (x) => x)), middle = steps[at];
    const does = {
      ArrowLeft: () => point(chart, steps[Math.max(0, at - 1)]),
      ArrowRight: () => point(chart, steps[Math.min(steps.length - 1, at + 1)]),
      Home: () => point(chart, steps[0]),
      End: () => point(chart, steps[steps.length - 1]),
      "+": () => size >= 4 && show([Math.floor(middle - size / 4), Math.ceil(middle + size / 4)]),
      "-": () => show([Math.floor(middle - size), Math.ceil(middle + size)]),
      Escape: () => show(null),
    }[event.key];
    if (!does || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    does();
  }

  /* ---- a run that is under way ---- */

  const name = "weft-report " + location.pathname;

  function restore() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(name));
      sessionStorage.removeItem(name);
      if (!kept) return;
      document.querySelectorAll("details").forEach((d, i) => (d.open = kept.open[i]));
      show(kept.zoom);
      scrollTo(0, kept.top);
    } catch (ignored) { /* a browser that keeps nothing for a file: the page begins at its top */ }
  }

  function again() {
    if (pressed || document.hidden) return setTimeout(again, 1000);
    try {
      const open = [...document.querySelectorAll("details")].map((d) => d.open);
      sessionStorage.setItem(name, JSON.stringify({ top: scrollY, zoom, open }));
    } catch (ignored) { /* as above */ }
    location.reload();
  }

  /* Loads the page again: often if it is new, seldom if it was written long ago, since its process may have died. */
  function follow() {
    const age = Date.now() / 1000 - live, written = new Date(live * 1000).toLocaleTimeString();
    add(document.querySelector(".sub"), "span", "").textContent = `; written at ${written}, this page loads itself again`;
    setTimeout(again, Math.min(60, Math.max(3, age / 5)) * 1000);
  }

  /* ---- begin ---- */

  const reset = add(document.body, "button", "reset");
  reset.textContent = "show all steps";
  reset.addEventListener("click", () => show(null));
  if (charts.length) {
    const hint = add(charts[0].plot.parentNode, "p", "note");
    hint.textContent = "Drag over a chart to zoom, double click to see all steps. Keys: arrows, +, - and Escape.";
  }
  show(null);
  addEventListener("resize", () => charts.forEach(draw));
  restore();
  if (live) follow();
})();
