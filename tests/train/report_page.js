/* Measures report.html inside a browser, for report_page.py, which puts this script behind that of the page. Each function
 * returns a list of what is wrong. */
"use strict";
const page = {
  /* What is wider than the window or lies outside it; only a .wide may scroll. */
  overflow(width) {
    const wrong = [], root = document.documentElement;
    if (innerWidth !== width) wrong.push(`the window has ${innerWidth} pixels, not ${width}`);
    if (root.scrollWidth > innerWidth) wrong.push(`the page has ${root.scrollWidth} pixels in ${innerWidth}`);
    for (const e of document.body.querySelectorAll("*")) {
      const box = e.getBoundingClientRect(), wide = e.closest(".wide");
      if (!box.width || e.closest("svg") || (wide && wide !== e)) continue;
      if (box.left < -0.5 || box.right > innerWidth + 0.5)
        wrong.push(`<${e.localName} class="${e.className}"> is at ${box.left} to ${box.right} of ${innerWidth}`);
    }
    return wrong;
  },

  /* Labels of axes that leave their figure, cover each other or say the same; plots of a column that are not aligned. */
  charts() {
    const wrong = [], left = new Map(), inside = (a, b) => a.left >= b.left - 0.5 && a.right <= b.right + 0.5 && a.top >= b.top && a.bottom <= b.bottom;
    for (const figure of document.querySelectorAll(".chart")) {
      const frame = figure.getBoundingClientRect(), title = figure.querySelector("svg").getAttribute("aria-label");
      const plot = figure.querySelector("svg").getBoundingClientRect();
      if (plot.width < 150 || plot.height < 100) wrong.push(`${title}: a plot of ${plot.width} x ${plot.height}`);
      const column = left.get(frame.left);
      if (column && (column.left !== plot.left || (column.frame === frame.width && column.width !== plot.width))) wrong.push(`${title}: not aligned`);
      left.set(frame.left, { left: plot.left, width: plot.width, frame: frame.width });
      if (figure.querySelector(".grid")) /* else without the script */
        for (const path of figure.querySelectorAll(".line")) {
          const box = path.getBoundingClientRect(), close = (a, b) => a.left >= b.left - 3 && a.right <= b.right + 3 && a.top >= b.top - 3 && a.bottom <= b.bottom + 3;
          if (!(box.width > 0) || (document.querySelector(".reset").hidden && !close(box, plot)))
            wrong.push(`${title}: a curve at ${box.left} to ${box.right}, ${box.top} to ${box.bottom} is outside the plot`);
        }
      for (const axis of [".x", ".y"]) {
        const labels = [...figure.querySelectorAll(axis + " span")], boxes = labels.map((e) => e.getBoundingClientRect());
        if (labels.length < 2) wrong.push(`${title}: ${labels.length} labels at ${axis}`);
        if (new Set(labels.map((e) => e.textContent)).size < labels.length) wrong.push(`${title}: equal labels at ${axis}`);
        boxes.forEach((box, i) => {
          if (!box.width || !inside(box, frame)) wrong.push(`${title}: the label ${labels[i].textContent} is cut`);
          if (axis === ".y" ? box.right > plot.left : box.top < plot.bottom) wrong.push(`${title}: ${labels[i].textContent} covers the plot`);
          for (const other of boxes.slice(0, i))
            if (box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom)
              wrong.push(`${title}: the label ${labels[i].textContent} covers another`);
        });
      }
    }
    return wrong;
  },

  /* Text that is hard to read on its background, by the contrast ratio of WCAG 2: at least 4.5. */
  colours(theme) {
    const wrong = [], numbers = (text) => text.match(/[0-9.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const over = (e) => {
      if (!e) return theme === "dark" ? [0, 0, 0] : [255, 255, 255];
      const [r, g, b, a = 1] = numbers(getComputedStyle(e).backgroundColor), below = a < 1 ? over(e.parentElement) : [r, g, b];
      return [r, g, b].map((c, i) => c * a + below[i] * (1 - a));
    };
    if (light(over(document.body)) > 0.1 !== (theme === "light")) wrong.push(`the background is not ${theme}`);
    for (const e of document.querySelectorAll("h1, .sub, .note, .key:not(.raw), .card b, .card span, .plot .x span, td, th, pre, figure.picture *")) {
      const a = light(numbers(getComputedStyle(e).color)), b = light(over(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (e.textContent && ratio < 4.5) wrong.push(`<${e.localName} class="${e.className}"> ${e.textContent.slice(0, 20)}: contrast ${ratio.toFixed(2)}`);
    }
    return [...new Set(wrong)];
  },

  /* The values that the arrow keys and the pointer show, and the part that a drag shows. */
  use(first, last, loss) {
    const wrong = [], want = (what, right) => right || wrong.push(what);
    const figure = document.querySelector(".chart"), plot = figure.querySelector(".plot"), area = figure.querySelector(".area");
    const tip = figure.querySelector(".tip"), reset = document.querySelector(".reset"), box = area.getBoundingClientRect();
    const key = (name) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
    const mouse = (type, part) => area.dispatchEvent(new PointerEvent(type, { clientX: box.left + part * box.width, clientY: box.top + 20, bubbles: true }));
    /* the limits of the steps, by the places of two labels */
    const limit = (part) => {
      const number = (e) => Number(e.textContent.replace("k", "e3").replace("M", "e6")), place = (e) => parseFloat(e.style.left) / 100;
      const labels = [...figure.querySelectorAll(".x span")], [a, b] = [labels[0], labels[labels.length - 1]];
      return number(a) + ((part - place(a)) / (place(b) - place(a))) * (number(b) - number(a));
    };
    const low = () => Math.round(limit(0)), high = () => Math.round(limit(1));
    Element.prototype.setPointerCapture = () => {}; /* which wants a real pointer */
    want("a tip before it is wanted", getComputedStyle(tip).display === "none");
    key("Home");
    want(`the first step is ${first} with ${loss}, not: ${tip.textContent}`, tip.textContent.startsWith(`step ${first}`) && tip.textContent.includes(loss));
    key("End");
    want(`the last step is ${last}, not: ${tip.textContent}`, tip.textContent.startsWith(`step ${last}`));
    want("the tip is inside the window", tip.getBoundingClientRect().right <= innerWidth && tip.getBoundingClientRect().left >= 0);
    key("ArrowLeft");
    want(`the step before is shown, not: ${tip.textContent}`, !tip.textContent.startsWith(`step ${last}`));
    mouse("pointermove", 0);
    want(`the pointer shows the first step, not: ${tip.textContent}`, tip.textContent.startsWith(`step ${first}`));
    want("all charts mark the step", [...document.querySelectorAll(".cursor")].every((e) => getComputedStyle(e).display === "block"));
    mouse("pointerleave", 0);
    want("a tip after the pointer left", getComputedStyle(tip).display === "none");
    mouse("pointerdown", 0.25), mouse("pointermove", 0.5), mouse("pointerup", 0.75);
    want(`a drag shows the middle, not ${low()} to ${high()}`, Math.abs(low() - last / 4) <= 2 && Math.abs(high() - last * 3 / 4) <= 2);
    want("the button shows", getComputedStyle(reset).display !== "none");
    wrong.push(...page.charts().map((text) => "zoomed: " + text));
    area.dispatchEvent(new MouseEvent("dblclick"));
    want(`a double click shows all steps, not ${low()} to ${high()}`, low() === 0 && high() === last);
    want("the button is gone", getComputedStyle(reset).display === "none");
    key("Home"), key("+");
    want("+ shows fewer steps", high() < last);
    key("Escape");
    want("Escape shows all steps", low() === 0 && high() === last);
    return wrong;
  },

  /* The page was at a place, zoomed and opened before it loaded itself again, and is so still. */
  again() {
    const count = Number(sessionStorage.getItem("loads") || 0) + 1, details = document.querySelector("details");
    sessionStorage.setItem("loads", count);
    if (count === 1) {
      details.open = true;
      scrollTo(0, 150);
      const plot = document.querySelector(".plot");
      plot.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
      plot.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
      return ["it did not load itself again"];
    }
    const wrong = [];
    if (scrollY !== 150) wrong.push(`it is at ${scrollY}, not at 150`);
    if (!details.open) wrong.push("what was open is shut");
    if (document.querySelector(".reset").hidden) wrong.push("it shows all steps");
    if (!document.querySelector(".sub").textContent.includes("loads itself again")) wrong.push("it does not say so");
    return wrong;
  },
};
