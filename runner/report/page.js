"use strict";
(() => {
const $ = (id) => document.getElementById(id), all = (sel, at = document) => [...at.querySelectorAll(sel)];
const data = JSON.parse($("data").textContent);
const table = $("cell-table"), body = table.tBodies[0];

/* ---- light and dark: the system's, until one is chosen ---- */
const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const keep = (v) => { try { return v === undefined ? localStorage.getItem("assay-theme") : localStorage.setItem("assay-theme", v); } catch (e) { return null; } };
const kept = keep();
if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
const theme = () => { const t = dark() ? "light" : "dark"; document.documentElement.dataset.theme = t; keep(t); };
$("theme").addEventListener("click", theme);

/* ---- colours of the maps: full at 1.25 of shipped either way ---- */
const paint = (b, ratio) => {
	const d = Math.log(ratio) / Math.log(1.25);
	b.style.setProperty("--d", Math.min(1, Math.abs(d)).toFixed(3));
	b.style.setProperty("--tone", d < 0 ? "var(--fast)" : "var(--slow)");
};
const heats = all(".heat");
for (const b of heats) { b.dataset.served = b.firstChild.data; b.dataset.servedR = b.dataset.r || ""; if (b.dataset.r) paint(b, +b.dataset.r); }
const names = new Set();
for (const line of data.cells) for (const c of line) if (c) for (const a in c.arms) names.add(a);
for (const n of names) { const o = document.createElement("option"); o.value = "=" + n; o.textContent = n; $("map-arm").append(o); }
$("map-arm").addEventListener("change", (e) => {
	for (const b of heats) {
		const c = data.cells[+b.dataset.open][+b.dataset.file], v = e.target.value;
		const r = v === "" ? +b.dataset.servedR : v === "*" ? c.arms[c.best] : c.arms[v.slice(1)];
		b.firstChild.data = v === "" ? b.dataset.served : r ? r.toFixed(3) : "-";
		if (v === "*" && c.best) b.title = c.best;
		if (r) paint(b, r); else b.style.removeProperty("--tone");
	}
});

/* ---- a narrow window has wide tables as lists: each field then says what it is ---- */
const label = (at) => {
	for (const t of all("table.stack", at)) {
		const heads = [...t.tHead.rows[0].cells].map((h) => h.textContent);
		for (const r of t.tBodies[0].rows) [...r.cells].forEach((c, i) => {
			c.dataset.l = heads[i];
			c.classList.toggle("nil", ["", "-"].includes(c.textContent.trim()));
		});
	}
};
label(document);

/* ---- filter: terms that must all hold ---- */
const rows = [...body.rows];
const glob = (p) => new RegExp("^" + p.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".") + "$");
const number = (s) => s !== "" && !isNaN(s) ? +s : null;
const term = (word) => {
	const m = word.match(/^([A-Za-z_][\w.]*)(!=|<=|>=|=|<|>)(.+)$/), low = word.toLowerCase();
	if (word === "is:failed") return (row) => row.classList.contains("failed");
	if (!m) return (row) => row.textContent.toLowerCase().includes(low);
	const [, key, op, want] = m, alts = want.split("|").map((w) => [number(w), glob(w)]);
	const same = (v) => alts.some(([x, g]) => x !== null && number(v) !== null ? x === number(v) : g.test(v));
	return (row) => {
		const values = row.dataset.k.split("\n").filter((l) => l.startsWith(key + "=")).map((l) => l.slice(key.length + 1));
		if (op === "=") return values.some(same);
		if (op === "!=") return values.length > 0 && !values.some(same);
		const w = number(want);
		return w !== null && values.some((v) => { const x = number(v);
			return x !== null && (op === "<" ? x < w : op === "<=" ? x <= w : op === ">" ? x > w : x >= w); });
	};
};
const filter = () => {
	const terms = $("filter").value.split(/\s+/).filter(Boolean).map(term);
	let n = 0;
	for (const row of rows) { row.hidden = !terms.every((t) => t(row)); n += !row.hidden; }
	$("count").textContent = n + " of " + rows.length;
	for (const q of all(".quick")) q.setAttribute("aria-pressed", String(q.dataset.filter === $("filter").value));
};
$("filter").addEventListener("input", filter);
for (const q of all(".quick")) q.addEventListener("click", () => { $("filter").value = q.dataset.filter; filter(); });

/* ---- sort: a click rises, the next one falls; empty ones stay last ---- */
const key = (cell) => { if (!cell) return null; const t = cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim();
	return t === "" || t === "-" ? null : number(t) !== null ? +t : t; };
const sort = (th) => {
	const head = th.parentElement, t = th.closest("table"), i = [...head.cells].indexOf(th);
	const down = th.getAttribute("aria-sort") === "ascending";
	for (const h of head.cells) h.removeAttribute("aria-sort");
	th.setAttribute("aria-sort", down ? "descending" : "ascending");
	const list = [...t.tBodies[0].rows].map((r, at) => [key(r.cells[i]), at, r]);
	list.sort(([a, x], [b, y]) => {
		if (a === null || b === null) return (a === null) - (b === null) || x - y;
		const c = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
		return (down ? -c : c) || x - y;
	});
	t.tBodies[0].append(...list.map((l) => l[2]));
};
for (const b of all(".sort")) b.addEventListener("click", () => sort(b.closest("th")));

/* ---- a cell: its address is in the URL, so that it can be sent and gone back from ---- */
const box = $("cell");
let open = -1;
const order = () => [...body.rows].filter((r) => !r.hidden).map((r) => +r.dataset.i);
const show = (i) => {
	const t = $("cell-" + i);
	if (!t || !(t instanceof HTMLTemplateElement)) return;
	open = i;
	$("cell-title").textContent = t.dataset.name;
	$("cell-body").replaceChildren(t.content.cloneNode(true));
	label(box);
	for (const c of all(".copy", box)) c.addEventListener("click", () => {
		const text = c.previousElementSibling.textContent, done = () => { c.textContent = "copied"; };
		if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => getSelection().selectAllChildren(c.previousElementSibling));
		else getSelection().selectAllChildren(c.previousElementSibling);
	});
	if (!box.open) box.showModal();
	box.scrollTop = 0;
	if (location.hash !== "#cell-" + i) history.pushState(null, "", "#cell-" + i);
};
const step = (by) => { const o = order(), at = o.indexOf(open); const to = at < 0 ? o[0] : o[at + by]; if (to !== undefined) show(to); };
const route = () => { const m = location.hash.match(/^#cell-(\d+)$/); if (m) show(+m[1]); else if (box.open) box.close(); };
document.addEventListener("click", (e) => {
	const b = e.target.closest("[data-open]");
	if (b && !e.ctrlKey && !e.metaKey) { e.preventDefault(); show(+b.dataset.open); }
});
box.addEventListener("close", () => { if (location.hash.startsWith("#cell-")) history.pushState(null, "", location.pathname + location.search + "#cells"); open = -1; });
box.addEventListener("click", (e) => { if (e.target === box) box.close(); });
$("close").addEventListener("click", () => box.close());
$("prev").addEventListener("click", () => step(-1));
$("next").addEventListener("click", () => step(1));
addEventListener("popstate", route);
addEventListener("hashchange", route);

/* ---- keys ---- */
$("help").addEventListener("click", () => $("keys").showModal());
let now = null;
const move = (by) => {
	const list = [...body.rows].filter((r) => !r.hidden), at = list.indexOf(now);
	const to = list[at < 0 ? 0 : Math.max(0, Math.min(list.length - 1, at + by))];
	if (!to) return;
	if (now) now.classList.remove("now");
	now = to;
	now.classList.add("now");
	now.querySelector("a").focus({preventScroll: true});
	now.scrollIntoView({block: "nearest"});
};
addEventListener("keydown", (e) => {
	if (e.ctrlKey || e.metaKey || e.altKey) return;
	const typing = e.target.matches("input, select, textarea");
	if (e.key === "Escape" && e.target === $("filter")) { $("filter").value = ""; filter(); $("filter").blur(); return; }
	if (typing) return;
	if (box.open) {
		if (e.key === "ArrowLeft" || e.key === "k") step(-1);
		else if (e.key === "ArrowRight" || e.key === "j") step(1);
		return;
	}
	if (e.key === "/") { e.preventDefault(); $("filter").focus(); }
	else if (e.key === "j" || e.key === "k") move(e.key === "j" ? 1 : -1);
	else if (e.key === "t") theme();
	else if (e.key === "?") $("keys").showModal();
});

/* ---- on paper what failed or is invalid is opened, of what is alike one ---- */
addEventListener("beforeprint", () => {
	const at = $("printed");
	at.replaceChildren();
	for (const t of all("template.print")) {
		const s = document.createElement("section"), h = document.createElement("h2");
		h.textContent = t.dataset.name;
		s.append(h, t.content.cloneNode(true));
		label(s);
		at.append(s);
	}
});
addEventListener("afterprint", () => $("printed").replaceChildren());

filter();
route();
})();
