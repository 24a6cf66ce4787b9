#!/usr/bin/env python3
"""Checks report.html of a run. Without a browser: the file is well-formed HTML that loads nothing from elsewhere. With
Chromium: nothing leaves the window and no label is cut, at three widths in both themes, with and without the page's script;
the values of steps, zoom, and the page that loads itself again.

    report_page.py RUN...                              the checks without a browser
    report_page.py --browser CHROMIUM [--quick] RUN... the checks in the browser
"""
import argparse
import concurrent.futures
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

WIDTHS = {"phone": 390, "tablet": 820, "desktop": 1400}
THEMES = {"dark": 0, "light": 1}  # blink's numbers
VOID = {"meta", "img", "br"}
ATTRIBUTES = {"class", "style", "d", "viewbox", "role", "aria-label", "preserveaspectratio", "transform", "lang", "charset", "name",
              "content", "http-equiv", "src", "alt", "title", "data-written", "width", "height", "scope"}
BLOCKS = {"p", "h1", "h2", "table", "div", "figure", "pre", "details"}


class Page(html.parser.HTMLParser):
    """Notes what is wrong with the text of a page."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.scripts = [], [], 0

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        if tag in BLOCKS and "p" in self.open:
            self.wrong.append("<%s> inside of a paragraph" % tag)
        for name, value in attributes:
            if name not in ATTRIBUTES:
                self.wrong.append("<%s> has an attribute %s" % (tag, name))
            if name == "src" and not re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/]+=*", value or ""):
                self.wrong.append("<%s> loads %s" % (tag, value))
        if len({name for name, _ in attributes}) < len(attributes):
            self.wrong.append("<%s> has an attribute twice" % tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append("</%s> at line %d closes nothing" % (tag, self.getpos()[0]))


def check_text(run):
    text = (run / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    wrong = page.wrong
    if page.open:
        wrong.append("not closed: %s" % page.open)
    if page.scripts != 1:
        wrong.append("%d scripts: one is the page's, others come from the data" % page.scripts)
    if not text.startswith("<!doctype html>"):
        wrong.append("no doctype")
    for outside in ("://", "@import", "url(", "<link", "<iframe"):
        if outside in text:
            wrong.append("names something outside: %s" % outside)
    if "default-src 'none'" not in text:
        wrong.append("no policy that forbids to load anything")
    for number in re.findall(r' d="([^"]*)"', text):
        if not re.fullmatch(r"([ML]-?[0-9.]+(e[-+][0-9]+)? -?[0-9.]+(e[-+][0-9]+)?(h0)?)+", number):
            wrong.append("not a path: %.80s" % number)
    return wrong


def measure(browser, text, calls, width, theme="light", milliseconds=500):
    """Returns what the calls of report_page.js find in the page."""
    script = (pathlib.Path(__file__).parent / "report_page.js").read_text()
    text = text.replace("<body", '<script>var errors = []; addEventListener("error", (e) => errors.push(e.message));</script><body', 1)
    end = "<script>%s\nconst found = [%s].flat().concat(errors); const told = document.createElement('pre'); told.id = 'found'; " \
          "told.hidden = true; told.textContent = JSON.stringify(found); parent.document.body.append(told);</script></body>" % (script, calls)
    text = end.join(text.rsplit("</body>", 1))
    with tempfile.TemporaryDirectory(prefix="weft-report-") as folder:
        page = pathlib.Path(folder) / "page.html"
        if width < 500:  # Chromium has no window as narrow
            text = '<!doctype html><iframe style="border:0;width:%dpx;height:1000px" srcdoc="%s"></iframe>' % (width, html.escape(text))
        page.write_text(text, encoding="utf-8")
        out = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=%s/profile" % folder,
             "--window-size=%d,1000" % width, "--blink-settings=preferredColorScheme=%d" % THEMES[theme],
             "--virtual-time-budget=%d" % milliseconds, "--dump-dom", page.as_uri()],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    dom = out.stdout.decode("utf-8", "replace")
    found = re.search(r'<pre id="found"[^>]*>(.*?)</pre>', dom, re.S)
    if not found:
        return ["the browser measured nothing: %s" % out.stderr.decode("utf-8", "replace")[-500:]]
    return json.loads(html.unescape(found.group(1)))


def check_browser(browser, run, quick):
    text = (run / "report.html").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    first, last = lines[0], lines[-1]
    jobs = []  # what is looked at, and the arguments of measure
    for name, width in WIDTHS.items():
        for theme in THEMES:
            calls = "page.overflow(%d), page.charts(), page.colours('%s')" % (width, theme)
            if theme == "light":
                calls += ", page.use(%d, %d, '%.5g')" % (first["step"], last["step"], first["loss"])
            if not quick or (name, theme) == ("phone", "light"):
                jobs.append(("%s, %s" % (name, theme), text, calls, width, theme))
    if not quick:
        calls = "page.overflow(%d), page.charts()" % WIDTHS["phone"]
        jobs.append(("phone, without the script", re.sub(r"<script>.*</script>", "", text, flags=re.S), calls, WIDTHS["phone"]))
        written = text.replace("<body>", '<body data-written="%d">' % time.time(), 1)
        jobs.append(("under way", written, "page.again()", WIDTHS["desktop"], "light", 12000))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda job: measure(browser, *job[1:]), jobs)
        return ["%s: %s" % (job[0], w) for job, wrong in zip(jobs, found) for w in wrong]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--browser")
    options.add_argument("--quick", action="store_true", help="look at one width and theme only")
    options.add_argument("runs", nargs="+")
    asked = options.parse_args()
    fail = 0
    for name in asked.runs:
        run = pathlib.Path(name)
        wrong = check_browser(asked.browser, run, asked.quick) if asked.browser else check_text(run)
        fail += len(wrong)
        for line in wrong:
            print("FAIL: %s: %s" % (name, line))
    sys.exit(fail > 0)


main()
