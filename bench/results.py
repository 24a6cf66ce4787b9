"""Writes the table of results as text, into docs/performance.md, and as a chart. Must not know how the results are
measured. Read next: table."""

from xml.sax.saxutils import escape

BEGIN, END = "<!-- measured by make bench-compare: begin -->", "<!-- measured: end -->"
HEAD = ["workload", "Weft", "best peer", "variant", "times as fast", "target", "memory, MB", "of torch's", "target", "commit"]


def seconds(value):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def asked(row):
    if row["seconds_asked"]:
        return f"at most {seconds(row['seconds_asked'])}"
    if "copy_gb_per_s" in row:
        return f"{row['ratio_asked']:g}, or 90 % of a copy: {100 * row['gb_per_s'] / row['copy_gb_per_s']:.0f} %"
    return f"{row['ratio_asked']:g}" if row["ratio_asked"] else "-"


def cells(row):
    memory = ["", "", ""]
    if "memory_mb" in row:
        memory = [f"{row['memory_mb']:.0f} (plan {row['plan_mb']:.0f})", f"{row['memory_ratio']:.2f}" + (" (above)" if row["memory_ratio"] > row["memory_asked"] else ""),
                  f"{row['memory_asked']:g}"]
    ratio = f"{row['ratio']:.2f}" + ("" if row["reached"] else " (below)")
    return [row["workload"], seconds(row["weft"]), seconds(row["peer_seconds"]), row["peer"], ratio, asked(row), *memory,
            f"{row['commit']} x {row['runs']}"]


def show(rows):
    """Returns the lines of a Markdown table."""
    table = [HEAD] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in table]
    return lines[:1] + ["| " + " | ".join("-" * width for width in widths) + " |"] + lines[1:]


def publish(results, page):
    """Replaces the part of the page between the two markers."""
    text, c = page.read_text(), results["conditions"]
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    kann = f", KANN {c['kann']}" if c["kann"] else ""
    lines = [
        f"{c['threads']} threads of {c['processor']}; {c['system']};",
        f"{c['peers']}{kann}; data {c['data']}; latest run {c['date']}.",
        "",
        "- Times are medians of runs in turns. The last column gives the commit of the measured sources (+: with local changes) and",
        "  the number of runs.",
        "- *Warm memory*: glibc's malloc keeps freed memory, in huge pages.",
        "- *Below*, *above*: the target is missed.",
        "- Memory is the peak of the whole process. torch's is measured with default settings.", "",
        *show(results["rows"]), "", "![Times as fast as the best peer](../bench/results.svg)"]
    page.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


# ---- the chart ----

LEFT, WIDTH, ROW, TOP = 270, 480, 22, 46
STYLE = ("text{font:12px sans-serif;fill:#1b1b1b}.note{fill:#666}.grid{stroke:#ddd}.one{stroke:#555}"
         ".asked{stroke:#1b1b1b;stroke-width:2}.good{fill:#2a7f62}.less{fill:#c8703a}"
         ".figure{paint-order:stroke;stroke:#fff;stroke-width:4px}")


def draw(results, path):
    """Draws a bar for each row: how many times as fast as the best peer, up to 4. A mark shows the target."""
    most, rows = 4.0, results["rows"]
    scale, height = WIDTH / most, TOP + ROW * len(rows) + 34

    def x(ratio):
        return LEFT + scale * min(ratio, most)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 90}" height="{height}" role="img">',
             f"<style>{STYLE}</style>", '<rect width="100%" height="100%" fill="#fff"/>',
             '<text x="10" y="20">Weft: times as fast as the best variant of the best peer</text>',
             '<text class="note" x="10" y="37">mark: target; orange: below the target</text>']
    for tick in range(int(most) + 1):
        kind = "one" if tick == 1 else "grid"
        parts.append(f'<line class="{kind}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{height - 28}"/>'
                     f'<text class="note" x="{x(tick) - 3:.1f}" y="{height - 12}">{tick}</text>')
    for i, row in enumerate(rows):
        y, kind = TOP + ROW * i, "good" if row["reached"] else "less"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(row["workload"])}</text>'
                     f'<rect class="{kind}" x="{LEFT}" y="{y + 4}" width="{x(row["ratio"]) - LEFT:.1f}" height="{ROW - 8}">'
                     f'<title>{escape(row["peer"])}: {seconds(row["peer_seconds"])}, Weft: {seconds(row["weft"])}</title></rect>'
                     f'<text class="figure" x="{x(row["ratio"]) + 8:.1f}" y="{y + 15}">{row["ratio"]:.2f}</text>')
        if row["ratio_asked"]:
            at = x(row["ratio_asked"])
            parts.append(f'<line class="asked" x1="{at:.1f}" x2="{at:.1f}" y1="{y + 2}" y2="{y + ROW - 2}"/>')
    path.write_text("\n".join(parts + ["</svg>"]) + "\n")
