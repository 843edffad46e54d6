#!/usr/bin/env python3
"""The page of `assay report` in a headless Chromium: it loads, filters, sorts, opens cells by mouse and keys, changes its theme, prints; with no error in the
console and no request for anything but the page itself. Python alone drives it, over the browser's debugging pipe.

usage: test_report_browser.py ASSAY [--shots FOLDER]     --shots keeps pictures of the page: two widths, light and dark
Exit status: 0; 1 where something fails; 77, said, where there is no browser (meson counts it as skipped), 1 then with ASSAY_NEED_BROWSER.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ASSAY = Path(sys.argv[1]).resolve()
SHOTS = Path(sys.argv[sys.argv.index("--shots") + 1]).resolve() if "--shots" in sys.argv else None
sys.path.insert(0, str(HERE))

passed = failed = 0


def check(what, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what}   {detail}")


class Browser:
    """Chromium with --remote-debugging-pipe: JSON messages, a NUL after each, on descriptors 3 and 4."""

    def __init__(self, program, profile):
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()

        def descriptors():
            # Both may be 3 or 4 already: out of the way first.
            a, b = os.dup(to_read), os.dup(from_write)
            a, b = (os.dup(x) if x in (3, 4) else x for x in (a, b))
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.p = subprocess.Popen([program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                                   "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
                                  preexec_fn=descriptors, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.n, self.buffer, self.events, self.session = 0, b"", [], None

    def message(self, timeout):
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            ready = select.select([self.back], [], [], max(0, end - time.monotonic()))[0]
            data = os.read(self.back, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("the browser does not answer")
            self.buffer += data
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.n += 1
        m = {"id": self.n, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.to, json.dumps(m).encode() + b"\0")
        while True:
            got = self.message(60)
            if got.get("id") == self.n:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.message(60))

    def go(self, url):
        for page in ("about:blank", url):
            self.events.clear()
            self.call("Page.navigate", url=page)
            self.wait("Page.loadEventFired")

    def js(self, text):
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(f"{text}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def key(self, key, code=None, text=None):
        more = {"text": text or key} if len(key) == 1 else {}
        number = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}.get(key, ord(key[0].upper()))
        if key == "Enter":
            more = {"text": "\r"}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code or key, windowsVirtualKeyCode=number, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code or key, windowsVirtualKeyCode=number)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.p.wait(10)
        except (OSError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            self.p.kill()
            self.p.wait()


class Kept(list):
    """Events: what is cleared is counted at the end all the same."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def clear(self):
        self.seen.extend(self)
        super().clear()


VISIBLE = "[...document.querySelectorAll('#cell-table tbody tr')].filter(r => !r.hidden)"


def column(name):
    return (f"(() => {{ const h = [...document.querySelectorAll('#cell-table thead tr:last-child th')], i = h.findIndex(t => t.textContent === '{name}');"
            f" h[i].querySelector('button').click(); return {VISIBLE}.map(r => r.cells[i].textContent).filter(t => t && t !== '-'); }})()")


def filtered(b, text):
    return b.js(f"(() => {{ const f = document.getElementById('filter'); f.value = {json.dumps(text)}; f.dispatchEvent(new Event('input'));"
                f" return {VISIBLE}.length; }})()")


def page_test(b, url):
    b.call("Page.enable")
    b.call("Runtime.enable")
    b.call("Log.enable")
    b.call("Network.enable")
    b.call("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)
    b.go(url)
    check("title", b.js("document.title").startswith("FAIL: mla"), b.js("document.title"))
    check("24 cells", b.js(VISIBLE + ".length") == 24)
    check("a map a kernel", b.js("document.querySelectorAll('.kernel').length") == 2)
    check("12 fields a map", b.js("document.querySelectorAll('.kernel')[0].querySelectorAll('.heat').length") == 12)
    check("no sideways scrolling", b.js("document.documentElement.scrollWidth <= innerWidth"))

    # Filter: expected numbers are counted from the fixture's grid: 2 kernels, 3 depths, 4 widths.
    for text, n in (("absorb", 12), ("kernel=mla.attn_*", 12), ("kv>=32768", 16), ("kv>=32768 t_q=1|2", 8), ("status!=pass", 5), ("is:failed", 4),
                    ("t_q<4 kernel=mla.absorb_q kv=2048", 2), ("arm=split=4", 24), ("arm=split=9", 0), ("served=split=4 status=regression", 1),
                    ("kv=32768.0 t_q=8", 2), ("no such text", 0), ("", 24)):
        check(f"filter '{text}'", filtered(b, text) == n, f"{filtered(b, text)} for {n}")
    check("count", b.js("document.getElementById('count').textContent") == "24 of 24")
    check("quick filter", b.js("document.querySelector('[data-filter=\"is:failed\"]').click(), " + VISIBLE + ".length") == 4)
    check("pressed", b.js("document.querySelector('[data-filter=\"is:failed\"]').getAttribute('aria-pressed')") == "true")
    filtered(b, "")

    # Sort.
    up = [float(x) for x in b.js(column("ratio"))]
    down = [float(x) for x in b.js(column("ratio"))]
    check("sort rises", up == sorted(up) and len(set(up)) > 3, up)
    check("sort falls", down == sorted(down, reverse=True), down)
    check("empty ones last", b.js(f"{VISIBLE}.at(-1).textContent").find("error") >= 0)
    check("aria-sort", b.js("document.querySelector('#cell-table th[aria-sort]').getAttribute('aria-sort')") == "descending")
    words = b.js(column("served"))
    check("sort of words", words == sorted(words))
    b.js("document.querySelector('#cell-table thead tr:last-child th button').click()")

    # A cell, by a click on the map.
    b.js("document.querySelector('.heat.fail').click()")
    check("a cell opens", b.js("document.getElementById('cell').open"))
    check("its name", "kv=2048,t_q=4" in b.js("document.getElementById('cell-title').textContent"), b.js("document.getElementById('cell-title').textContent"))
    check("its evidence", "3f9d70a5" in b.js("document.getElementById('cell-body').textContent"))
    check("its address", b.js("location.hash").startswith("#cell-"))
    pictures = b.js("document.querySelectorAll('#cell-body figure svg').length")
    if shutil.which("gnuplot"):
        check("its samples", pictures == 1 and b.js("document.querySelectorAll('#cell-body use').length") >= 60, pictures)
        drawn = b.js("(() => { const u = document.querySelector('#cell-body use').getBoundingClientRect(); return u.width > 0 && u.height > 0; })()")
        check("and they are drawn", drawn)
        ink = b.js("getComputedStyle(document.querySelector('#cell-body svg text')).fill")
        check("in the page's ink", ink == b.js("getComputedStyle(document.body).color"), ink)
    first = b.js("location.hash")
    b.key("ArrowRight")
    check("the next cell", b.js("location.hash") != first)
    b.key("ArrowLeft")
    check("and back", b.js("location.hash") == first)
    b.key("Escape")
    check("Esc closes", not b.js("document.getElementById('cell').open"))
    # The page hears of it a little later, and then leaves the cell's address.
    left = "new Promise(done => { const look = () => location.hash.startsWith('#cell-') ? setTimeout(look, 5) : done(location.hash); look(); })"
    check("and the address is that of the cells", b.js(left) == "#cells")

    # Keys alone.
    b.key("/", "Slash")
    check("/ goes to the filter", b.js("document.activeElement.id") == "filter")
    for c in "split":
        b.key(c)
    check("typing filters", b.js("document.getElementById('filter').value") == "split")
    b.key("Escape")
    check("Esc empties it", b.js("document.getElementById('filter').value") == "" and b.js(VISIBLE + ".length") == 24)
    b.key("j")
    b.key("j")
    check("j moves", b.js("[...document.querySelectorAll('#cell-table tbody tr')].findIndex(r => r.classList.contains('now'))") == 1)
    b.key("Enter")
    check("Enter opens the row", b.js("document.getElementById('cell').open") and b.js("location.hash") == "#cell-1", b.js("location.hash"))
    b.key("Escape")
    b.key("?", "Slash")
    check("? shows the keys", b.js("document.getElementById('keys').open"))
    b.key("Escape")

    # Another arm on the maps: split=2 is faster up to two rows and slower from four.
    b.js("(() => { const s = document.getElementById('map-arm'); s.value = '=split=2'; s.dispatchEvent(new Event('change')); })()")
    got = b.js("[...document.querySelectorAll('.kernel')[0].querySelectorAll('.heat')].map(h => +h.firstChild.data)")
    check("maps of another arm", [x < 1 for x in got] == [True, True, False, False] * 3, got)
    b.js("(() => { const s = document.getElementById('map-arm'); s.value = ''; s.dispatchEvent(new Event('change')); })()")

    # Light and dark: the system's, until the switch says otherwise.
    def ground():
        return b.js("getComputedStyle(document.body).backgroundColor")
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    light = ground()
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = ground()
    check("dark follows the system", light != dark, f"{light} {dark}")
    b.js("document.getElementById('theme').click()")
    check("the switch wins", ground() == light)
    b.js("document.getElementById('theme').click()")
    check("and back", ground() == dark)
    b.js("localStorage.clear(); delete document.documentElement.dataset.theme")

    # A link to a cell, a narrow window, paper.
    b.go(url + "#cell-5")
    check("a link opens its cell", b.js("document.getElementById('cell').open"))
    b.key("Escape")
    b.call("Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=False)
    check("narrow: no sideways scrolling", b.js("document.documentElement.scrollWidth <= innerWidth"), b.js("document.documentElement.scrollWidth"))
    pdf = base64.b64decode(b.call("Page.printToPDF", printBackground=True)["data"])
    check("it prints", pdf[:5] == b"%PDF-" and len(pdf) > 20000, len(pdf))


# Elements whose text is cut, and parts that only sideways scrolling shows.
CUT = ("[...document.querySelectorAll('main *, header *')].filter(e => !e.closest('svg, figure') && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1"
       " && getComputedStyle(e).display !== 'inline' && !e.matches('.scroll, nav, input')).map(e => e.tagName + ' ' + e.textContent.slice(0, 40))")
SIDEWAYS = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.querySelector('th').textContent)"
NARROW = ("[...document.querySelectorAll('#ratios .scroll, #controls .scroll, #changes .scroll, #winners .scroll')]"
          ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.closest('section').id)")
CHANGES = "[...document.querySelectorAll('#changes tbody tr')].map(r => [+r.dataset.n, r.querySelectorAll('a').length, r.querySelector('summary') !== null])"


def widths_test(b, name, url):
    for width in (520, 1300, 1600):
        b.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        b.go(url)
        check(f"{name} at {width}: no sideways scrolling", b.js("document.documentElement.scrollWidth <= innerWidth"))
        check(f"{name} at {width}: nothing cut", b.js(CUT) == [], b.js(CUT))
        if width >= 1300:
            check(f"{name} at {width}: every heading in sight", b.js(SIDEWAYS) == [], b.js(SIDEWAYS))
        else:
            check(f"{name} at {width}: words in sight", b.js(NARROW) == [], b.js(NARROW))
            label = "getComputedStyle(document.querySelector('#winners tbody td'), '::before').content"
            check(f"{name} at {width}: each field says what it is", "kernel" in b.js(label), b.js(label))


def noise(b, events):
    """What the browser complained of, and what it asked for beside the page."""
    errors, requests = [], []
    for e in events:
        p = e.get("params", {})
        if e.get("method") == "Runtime.exceptionThrown":
            errors.append(p["exceptionDetails"].get("text"))
        elif e.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            errors.append(p["entry"]["text"])
        elif e.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning"):
            errors.append(str(p["args"]))
        elif e.get("method") == "Network.requestWillBeSent":
            requests.append(p["request"]["url"])
    return errors, requests


def shots(b, url, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for width in (1400, 480):
        for scheme in ("light", "dark"):
            for name, where in (("page", ""), ("cell", "#cell-2")):
                b.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
                b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                b.go(url + where)
                data = b.call("Page.captureScreenshot", captureBeyondViewport=name == "page")["data"]
                (folder / f"{name}-{width}-{scheme}.png").write_bytes(base64.b64decode(data))


def one_undecided(r):
    if r["kind"] == "cell" and r["kernel"] == "mla.absorb_q" and r["point"]["kv"] == 32768 and r["point"]["t_q"] == 2:
        r["status"], r["reason"] = "inconclusive", "the interval reaches over the margin"


def three_slower(record):
    """One arm that is not served, in every depth of one kernel and width."""
    if record["kind"] == "cell" and record["kernel"] == "mla.absorb_q" and record["point"]["t_q"] == 1:
        for arm in record["arms"]:
            if arm["name"] == "split=2":
                arm["samples_ns"] = [round(x * 1.5) for x in arm["samples_ns"]]


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program and os.environ.get("ASSAY_NEED_BROWSER"):
        print("FAILED no chromium here (Debian: chromium)")
        return 1
    if not program:
        print("skipped: no chromium here (Debian: chromium)")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        os.environ["PATH"] = f"{ASSAY.parent}:{os.environ['PATH']}"
        os.chdir(tmp)
        import report_maker
        report_maker.everything()
        # Its path could be part of the page by mistake; the network could not be used unnoticed.
        subprocess.run([ASSAY, "report", "run.jsonl", "-o", "run.html"], check=True)
        b = Browser(program, tmp + "/profile")
        seen = []
        try:
            target = b.call("Target.createTarget", url="about:blank")["targetId"]
            b.session = b.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            url = "file://" + tmp + "/run.html"
            b.events = Kept(seen)
            page_test(b, url)
            for name in ("accprobe", "mla-decode"):
                subprocess.run([ASSAY, "report", HERE.parent / "results/h200" / f"{name}.jsonl", "-o", name + ".html", "--no-plots"], check=True)
                widths_test(b, name, f"file://{tmp}/{name}.html")
                if name == "accprobe":
                    check("what is invalid did not fail", (filtered(b, "is:failed"), filtered(b, "status=invalid")) == (0, 44))
            shutil.copy("run.jsonl", "open.jsonl")
            report_maker.edit("open.jsonl", one_undecided)
            subprocess.run([ASSAY, "report", "open.jsonl", "-o", "open.html", "--no-plots"], check=True)
            widths_test(b, "one undecided", f"file://{tmp}/open.html")
            check("undecided, as people say it", filtered(b, "status=undecided") == filtered(b, "status=inconclusive") == 1)
            report_maker.edit("run.jsonl", three_slower)
            report_maker.judge("run.jsonl")
            os.rename("run.jsonl", "slow.jsonl")
            report_maker.everything()
            subprocess.run([ASSAY, "report", "run.jsonl", "slow.jsonl", "-o", "two.html", "--no-plots"], check=True)
            widths_test(b, "two files", f"file://{tmp}/two.html")
            lines = b.js(CHANGES)
            check("changes that are alike are one line", [n for n, _, folded in lines if folded] == [3], lines)
            check("which opens each of its cells", all(n == links for n, links, _ in lines), lines)
            errors, requests = noise(b, [*seen, *b.events])
            check("no error in the console", not errors, errors[:3])
            strange = [r for r in requests if r.split("#")[0] not in (url, "about:blank", *(f"file://{tmp}/{n}.html" for n in ("accprobe", "mla-decode", "open", "two")))]
            check("no request but the page", len(requests) >= 2 and not strange, strange[:3])
            if SHOTS:
                shots(b, url, SHOTS)
        finally:
            b.close()
            os.chdir("/")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
