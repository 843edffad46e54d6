#!/usr/bin/env python3
"""What one part of a report shows, every other part shows too: tiles, ratios, maps, winners, cells, opened cells, and the page against Markdown, CSV,
JUnit and the terminal. On the records that are committed, and on made ones with every kind of status; all numbers are counted anew from what is shown.

usage: test_report_page.py ASSAY SOURCE_ROOT
"""
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

ASSAY, ROOT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(Path(__file__).resolve().parent))
WORDS = {"inconclusive": "undecided", "xfail": "waived"}  # of a record, as people read it
TONES = {"pass": "good", "invalid": "void", "undecided": "unsure", "waived": "none", "skip": "none"}  # else bad

passed = failed = 0


def check(what, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED {what}   {str(detail)[:300]}")


class Page(HTMLParser):
    """Tables by section, as lists of {heading: (text, class of its chip)}; tiles as {label: (value, tone)}."""

    def __init__(self, text):
        super().__init__()
        self.section, self.tables, self.tiles, self.heats, self.templates = None, {}, [], {}, {}
        self.where, self.table, self.row, self.cell, self.heat = [], None, None, None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == "section":
            self.section = a.get("id", self.section)
        elif tag == "template":
            self.section = a["id"]
        elif tag == "article":
            self.tiles.append({})
        elif tag == "table":
            self.table = {"heads": [], "rows": []}
            self.tables.setdefault(self.section, []).append(self.table)
        elif tag == "tr" and self.table is not None:
            self.row = []
        elif tag in ("td", "th") and self.row is not None:
            self.cell = {"text": "", "chip": None, "head": a.get("scope") != "row" and tag == "th"}
        elif tag == "span" and self.cell is not None and "chip" in a.get("class", ""):
            self.cell["chip"] = a["class"].split()[-1]
        elif tag == "button" and "heat" in a.get("class", ""):
            self.heats.setdefault(int(a["data-file"]), {})[int(a["data-open"])] = (a.get("data-r"), a["class"].split()[1:])
        elif tag == "div" and a.get("class", "").startswith("tile "):
            self.where.append((a["class"].split()[1] if len(a["class"].split()) > 1 else "", []))

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self.cell is not None:
            self.row.append(self.cell)
            self.cell = None
        elif tag == "tr" and self.row is not None:
            if self.row and all(c["head"] for c in self.row):
                self.table["heads"] = [c["text"].strip() for c in self.row]
            elif self.table["heads"]:
                self.table["rows"].append(self.row)
            self.row = None
        elif tag == "table":
            self.table = None
        elif tag == "div" and self.where:
            tone, texts = self.where.pop()
            self.tiles[-1][texts[1]] = (texts[0], tone)

    def handle_data(self, data):
        if self.cell is not None:
            self.cell["text"] += data
        elif self.where:
            self.where[-1][1].append(data)

    def rows(self, section, n=0):
        t = self.tables.get(section, [])
        return [dict(zip(t[n]["heads"], r)) for r in t[n]["rows"]] if len(t) > n else []


def text(*args):
    return subprocess.run([ASSAY, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False).stdout.decode()


def number(s):
    return float(s) if re.fullmatch(r"-?[\d.]+", s) else None


def near(a, b, unit):
    return a is not None and b is not None and abs(a - b) <= unit


def md_table(md, head):
    """Rows of the Markdown table whose first heading this is."""
    lines = md.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith(f"| {head} |")), None)
    if at is None:
        return []
    heads = [c.strip() for c in lines[at].strip("|").split("|")]
    out = []
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            break
        out.append(dict(zip(heads, [c.strip().replace("\\", "") for c in line.strip().strip("|").split(" | ")])))
    return out


def one(path):
    name = f"{path.parent.name}/{path.name}"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    cells = [r for r in records if r["kind"] == "cell"]
    bars = [r for r in records if r["kind"] == "aggregate" and r.get("check")]
    page = Page(text("report", path, "-o", "-", "--format", "html", "--no-plots"))
    md = text("report", path, "-o", "-", "--format", "md")
    junit = ET.fromstring(text("report", path, "-o", "-", "--format", "junit"))
    lines = list(csv.DictReader(io.StringIO(text("report", path, "-o", "-", "--format", "csv"))))
    told = text("show", path).rstrip().splitlines()[-1]

    # How many of what: the record, tiles, chips, Markdown, CSV, JUnit and the terminal's last line count alike, in the same words.
    want = Counter(WORDS.get(c["status"], c["status"]) for c in cells)
    shown = page.rows("cells")
    check(f"{name}: a line a cell", len(shown) == len(cells), len(shown))
    check(f"{name}: chips", Counter(r["status"]["text"] for r in shown) == want, want)
    check(f"{name}: colours of chips", all(r["status"]["chip"] == TONES.get(r["status"]["text"], "bad") for r in shown))
    tiles = page.tiles[0]
    for word, n in want.items():
        value, tone = tiles.get(word, ("", ""))
        check(f"{name}: tile '{word}'", value.split(" / ")[0] == str(n), tiles)
        if word != "pass":
            check(f"{name}: colour of tile '{word}'", (tone or "none") == TONES.get(word, "bad"), tone)
    check(f"{name}: 'failed' where something did", ("failed" in tiles) == all(w in TONES for w in want), tiles)
    said = Counter({w: int(n) for n, w in re.findall(r"\*\*(\d+)\*\* ([a-z]+)", md.split(" of ")[0])})
    check(f"{name}: Markdown counts", said == want, said)
    check(f"{name}: CSV counts", Counter({line["id"]: WORDS.get(line["status"], line["status"]) for line in lines}.values()) == want)
    check(f"{name}: the terminal counts", Counter({w: int(n.replace(",", "")) for n, w in re.findall(r"([\d,]+) ([a-z]+)", told.split(";")[0].split(":")[0])
                                                   if w in want}) == want, told)
    cases = junit.findall(".//testcase")[:len(cells)]
    for word, element in (("invalid", "error"), ("error", "error"), ("timeout", "error"), ("mismatch", "failure"), ("wrong", "failure"),
                          ("regression", "failure"), ("xpass", "failure")):
        check(f"{name}: JUnit's '{word}'", sum(c.find(element) is not None and c.find(element).get("type") == word for c in cases) == want[word])
    check(f"{name}: JUnit skips", sum(c.find("skipped") is not None for c in cases) == want["undecided"] + want["waived"] + want["skip"])

    # The judged arm and its ratio: the record's verdict, cells, maps, opened cells, CSV, the script's data.
    judged_title = next((h for h in ("compared", "served", "head") if shown and h in shown[0]), None)
    data = json.loads(re.search(r'(?s)id="data">(.*?)</script>', text("report", path, "-o", "-", "--format", "html", "--no-plots")).group(1))
    judged_n, ratio_of, best_n = Counter(), {}, Counter()
    for i, (cell, row) in enumerate(zip(cells, shown)):
        ratio_check = cell.get("ratio_check")
        arm = ratio_check["of"] if ratio_check else cell.get("selected") or ""
        verdict = cell.get("timing") or {}
        if ratio_check:
            verdict = verdict.get("of_over") or {}
        ratio = verdict.get("ratio")
        at = f"{name}: {cell['id']}"
        check(f"{at}: judged arm", row[judged_title]["text"] == arm and (data["cells"][i][0]["served"] or "") == arm, row[judged_title]["text"])
        mine = [line for line in lines if line["id"] == cell["id"] and line["arm"] == arm]
        timed = [a["name"] for a in cell["arms"] if a.get("summary") and a["role"] != "null"]
        if arm in timed:
            judged_n[cell["kernel"], arm] += 1
        if row["fastest" if "fastest" in row else "status"]["text"].split(" ")[0] in timed:
            best_n[cell["kernel"], row["fastest"]["text"].split(" ")[0]] += 1
        for a, x in data["cells"][i][0]["arms"].items():
            ratio_of.setdefault((cell["kernel"], a), []).append((x, cell["status"]))
        roles = {a["name"]: a["role"] for a in cell["arms"]}
        rivals = {a: x for a, x in data["cells"][i][0]["arms"].items() if roles[a] != "headroom"}
        if rivals:
            check(f"{at}: the fastest is", rivals[row["fastest"]["text"].split(" ")[0]] <= min(rivals.values()) + 2e-5, (row["fastest"]["text"], rivals))
        if not isinstance(ratio, (int, float)) or arm not in timed:
            continue
        trivial = verdict.get("reason") == "trivial"
        want_ratio = 1 if trivial else ratio
        check(f"{at}: ratio in cells", near(number(row["ratio"]["text"]), want_ratio, 6e-4), row["ratio"]["text"])
        check(f"{at}: in the map", near(float(page.heats[0][i][0]), want_ratio, 1e-5 * want_ratio), page.heats[0][i])
        check(f"{at}: for the script", near(data["cells"][i][0]["arms"][arm], want_ratio, 1e-5), data["cells"][i][0])
        check(f"{at}: in CSV", trivial or near(number(mine[0]["ratio"]), want_ratio, 1e-6 * want_ratio), mine)
        arms = {r["arm"]["text"].split(" ")[0]: r for r in page.rows(f"cell-{i}")}
        check(f"{at}: opened", near(number(arms[arm]["ratio"]["text"]), want_ratio, 6e-4), arms[arm]["ratio"]["text"])
        if not trivial:
            check(f"{at}: its interval", arms[arm]["interval"]["text"] == row["interval"]["text"], row["interval"]["text"])
        if row.get("fastest") and row["fastest"]["text"].startswith(arm + " "):
            check(f"{at}: as the fastest", row["fastest"]["text"] == f"{arm} {row['ratio']['text']}", row["fastest"]["text"])

    # Winners: from the cells that the page shows.
    for r in page.rows("winners"):
        key = r["kernel"]["text"], r["arm"]["text"]
        xs = ratio_of.get(key, [])
        at = f"{name}: winners {key}"
        check(f"{at}: cells", int(r["cells"]["text"]) == len(xs), len(xs))
        check(f"{at}: geomean", xs and near(number(r["geomean"]["text"]), math.exp(sum(math.log(x) for x, _ in xs) / len(xs)), 6e-4), r["geomean"])
        check(f"{at}: judged", int(r[judged_title]["text"]) == judged_n[key], (r[judged_title]["text"], judged_n[key]))
        check(f"{at}: fastest", int(r["fastest"]["text"]) == best_n[key], (r["fastest"]["text"], best_n[key]))
        check(f"{at}: invalid", "invalid" not in want or int(r["invalid"]["text"]) == sum(s == "invalid" for _, s in xs))

    # Bars: the record, the table, the tile, what needs a look, Markdown, JUnit.
    table, in_md = page.rows("ratios"), md_table(md, "ratio")
    check(f"{name}: a line a ratio", len(table) == len(bars) == len(in_md), (len(table), len(in_md), len(bars)))
    asked = met = 0
    before = None
    for b, r, m in zip(bars, table, in_md):
        least = (b.get("bar") or {}).get("at_least")
        bar = "none" if least is None else f"at least {100 * (least - 1):+.3g} pp"
        at = f"{name}: {b['name']}"
        check(f"{at}: bar", r["bar"]["text"] == bar == m["bar"], (r["bar"]["text"], m["bar"], bar))
        check(f"{at}: verdict", r["verdict"]["text"] == b["verdict"] == m["verdict"], r["verdict"]["text"])
        tone = {"met": "good", "none": "none", "invalid": "void"}.get(b["verdict"], "bad")
        check(f"{at}: its colour", r["verdict"]["chip"] == tone, r["verdict"]["chip"])
        check(f"{at}: geomean", near(number(r["geomean"]["text"]), b["geomean"]["ratio"], 6e-4) and r["geomean"]["text"] == m["geomean"])
        check(f"{at}: interval", r["interval"]["text"] == m["95 % interval"])
        check(f"{at}: cells", r["cells"]["text"] == m["n"] == f"{b['geomean']['n']} of {b['geomean']['of']}")
        why = b["reason"]
        if not why and least is not None:
            why = f"the {b['bar']['by']}'s lower end is {100 * (b[b['bar']['by']]['lo'] - 1):+.1f} pp: the bar is {bar}"
        check(f"{at}: why", r["why"]["text"] == m["why"] == ("as above" if why and why == before else why or ""), (r["why"]["text"], m["why"], why))
        before = why
        asked += least is not None
        met += least is not None and b["verdict"] == "met"
    if asked:
        check(f"{name}: tile of bars", tiles["ratios that meet their bar"][0] == f"{met} / {asked}", tiles)
    ends = junit.findall(".//testcase")[len(cells):]
    for b, c in zip([b for b in bars if b["verdict"] != "none"], ends):
        child = c.find("error" if b["verdict"] == "invalid" else "failure")
        check(f"{name}: JUnit {b['name']}", (child is None) == (b["verdict"] == "met"))
        if b["verdict"] == "missed":
            check(f"{name}: JUnit says the bar of {b['name']}", "lower end is" in child.get("message") and " pp" in child.get("message"), child.attrib)


def main():
    for path in sorted(ROOT.glob("results/*/*.jsonl")):
        if True:  # subjects that must fail: each cell is another suite's
            one(path)
    with tempfile.TemporaryDirectory() as tmp:
        os.environ["PATH"] = f"{ASSAY.parent}:{os.environ['PATH']}"
        os.chdir(tmp)
        import report_maker
        report_maker.everything("every.jsonl")
        one(Path(tmp) / "every.jsonl")
        os.chdir("/")
    check("something was looked at", passed > 500, passed)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
